"""Shards on GPUs, one shard for each group: peeling, and the transports of their messages.

May import `kernels`, `tasks.storage` and the rest of `tasks.shards`. Start with `groups`, then `shard` (the peeling)
and `transport` (the choice of a transport, and the threads that run beside the kernels).
"""
