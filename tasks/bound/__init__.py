"""λ of one partition: peeling for a single partition, or one step of banding or of fixpoint rounds between exchanges.

May import `kernels`, `graph`, `ingest`, `ids`, `messages`, `device` and `errors`. Start with `peel`, then `band`;
`fixpoint` is the method of the original publication, for study. `in_memory` is for graphs that are not read from files.
"""
