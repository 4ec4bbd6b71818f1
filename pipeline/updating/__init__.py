"""A result brought up to date: what changed since an earlier result, λ and tables from that where it is less work.

`updating` is called by a run before it starts a cluster, and makes the tables in this thread and its pool. It returns
None where the full run is to go on. `batches` has the input of `edgemill update`. May import what `run` may, but not
`run` itself. Start with `updating`.
"""
