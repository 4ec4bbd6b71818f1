"""Checkpoints, from which a later run resumes: the edges, the graph, and the state of bounding.

Start with `checkpoint`. `output.checkpoint_files` has their place, files and indexes. May import `stages`, `cluster`,
and what reading and writing share.
"""
