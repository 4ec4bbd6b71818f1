"""Dense groups and values of vertices of a result brought up to date: from the earlier ones where few edges changed.

May import what `updating` may. Start with `finding`; `earlier` reads the tables of the earlier result. What is done to
the groups is in `tasks.dense.regrouping`. `vertices` has the values of vertices, and
`files` writes the tables of groups or takes their files over.
"""
