"""Updates of an earlier result: they find what changed since, and make λ and tables from that where it is less work.

A run calls `updating` before it starts a cluster. The steps are `unchanged` (all files are taken over), `beginning`
(what changed), `deciding` (how λ is found), `finding_lambda`, `groups`, `tables` and `result_manifest`. `planning` says
which way a run would go. The tables are made in this thread and its pool. May import what `run` may, but not `run`
itself. Start with `updating`.
"""
