"""Vertex programs of a run: their parameters and vertices, and their execution on the cluster.

Start with `making`, which makes programs from the settings. `running` runs them on the cluster, `one_block` in an
update, and `trying` on a small graph in memory. `settings.declared_programs` has what a run knows of a program from
its class. May import `checkpoint`, `stages`, `cluster`, and what reading and writing share.
"""
