"""The stages of a run, each a few exchanges between tasks: read, number, partition, triangulate, extract, publish.

A stage takes a `TaskEngine`. In a run this is the engine of `cluster`; `SequentialEngine` runs the same stages in the
calling thread, for tests, benchmarks and compilation. `kernels` loads or compiles on each worker the kernels that
stages call. May import `cluster`, and what reading and writing share. Start with `exchange`, then `ingesting`.
"""
