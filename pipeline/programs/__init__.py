"""Vertex programs of a run: their names, settings and columns, and their execution on the cluster.

May import `stages`, `cluster`, `monitor`, `output` and `settings`; `catalogue` imports none, as `settings` reads it.
Start with `catalogue`.
"""
