"""What CUDA kernels need to run: compiled sources, shared constants, launches, and the memory pool of arrays.

May import `kernels.graph`, `kernels.runtime` and `kernels.gpu.rows`. Start with `source`.
"""
