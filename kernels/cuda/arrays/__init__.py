"""CUDA sources of operations on plain arrays, for `kernels.gpu.arrays`.

Start with total.cu. May include common.cuh of `kernels.cuda`.
"""
