"""Checkpoints, from which a later run resumes: the edges, the graph, and the state of bounding.

Start with `checkpoint`. May import `plan`, `settings` and `monitor`.
"""
