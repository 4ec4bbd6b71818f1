"""The stages of a run, each a few exchanges between tasks: read, number, partition, triangulate, extract, publish.

A stage takes a `TaskEngine`. In a run this is the engine of `cluster`; `SequentialEngine` runs the same stages in the
calling thread, for tests, benchmarks and compilation. May import `plan.limits`, `settings`, `cluster`, `monitor` and
`output`.
Start with `exchange`, then `ingesting`.
"""
