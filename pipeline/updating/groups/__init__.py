"""The dense groups of a result brought up to date: from those of the earlier result where few edges changed.

May import what `updating` may. Start with `finding`; `earlier` reads the tables of the earlier result. What is done to
the groups is in `tasks.dense.regrouping`.
"""
