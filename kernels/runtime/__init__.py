"""What kernels need to run: the device, threads, sizes of values in memory, and the cache of compiled kernels.

May import `kernels.graph` and `kernels.gpu_shards`; `side_by_side` and `warm` import CPU kernels, `device` and `warm`
load `kernels.gpu` when a GPU is used. Start with `device`, which finds out whether this process has a GPU, and `cache`,
which defines `cached_njit`.
"""
