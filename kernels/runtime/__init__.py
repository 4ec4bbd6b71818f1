"""What kernels need to run: the device, threads, sizes of values in memory, and the cache of compiled kernels.

May import `kernels.graph`; `warm` imports all kernels, and `device` loads `kernels.gpu` when a GPU is used. Start with
`device`, which finds out whether this process has a GPU, and `cache`, which defines `cached_njit`.
"""
