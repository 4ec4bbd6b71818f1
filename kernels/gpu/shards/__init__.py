"""Rows cut by the third vertex, on GPUs: the counterpart of `kernels.cpu.shards`.

May import the rest of `kernels`, but of `kernels.cpu` only `arrays.shared_words`. Start with `peel`, the peeling of one
shard. `mail` and `nccl` are the transports by which shards tell each other which edges they remove; `shared_memory`
opens the GPU memory of other processes.
"""
