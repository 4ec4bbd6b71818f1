"""Checkpoints, from which a later run resumes: the edges, the graph, and the state of bounding.

Start with `checkpoint`. `files` has their place, their files and their indexes, and `made_of` the values that a resumed
run must have in common. May import `plan`, `settings` and `monitor`.
"""
