"""What CUDA kernels need to run: compiled sources, shared constants, and memory for arrays.

May import `kernels.graph`, `kernels.gpu_shards` and `kernels.runtime`. Start with `source`.
"""
