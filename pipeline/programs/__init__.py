"""Vertex programs of a run: their names, settings and columns, and their execution on the cluster.

Start with `declared`: what a run knows of a program, from its class. `running` runs programs on the cluster,
`one_block` in an update, and `trying` on a small graph in memory. May import `stages`, `cluster`, `monitor`, `output`
and `settings`; `declared` imports none, as `settings` reads it.
"""
