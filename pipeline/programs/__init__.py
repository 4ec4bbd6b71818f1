"""Vertex programs of a run: their names, settings and columns, and their execution on the cluster.

May import `stages`, `cluster`, `monitor`, `output` and `settings`; `declared` imports none, as `settings` reads it.
Start with `declared`: what a run knows of a program, from its class.
"""
