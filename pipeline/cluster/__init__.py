"""The only room that imports Dask: clusters, tasks and their results, lost workers.

Start with `engine`, which runs tasks in a `session` as an `execution` says. `connecting` starts or joins a cluster,
`workers` has the code that runs in each worker beside its tasks, and `carriers` connects groups of shards on different
workers. May import `settings` and `messages`.
"""
