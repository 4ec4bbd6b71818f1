"""The stages of a run, each a few exchanges between tasks: read, number, partition, triangulate, extract, publish.

A stage takes a `TaskEngine`. In a run this is the engine of `cluster`; `SequentialEngine` runs the same stages in the
calling thread, for tests, benchmarks and compilation. `kernels` loads or compiles on each worker the kernels that
stages call. A plan asks the stages for the tasks that they would start, by the sizes in `layout`, and for the memory
that they would take: of rows in `ingesting`, of shards in `shard_memory`, and on GPUs in `gpu_memory`. May import
`cluster`, and what reading and writing share. Start with `exchange`, then `ingesting`.
"""
