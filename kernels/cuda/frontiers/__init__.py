"""CUDA sources of lists of edges or vertices: many warps append to them, and large ones are grouped.

Start with lists.cuh. May include common.cuh of `kernels.cuda`.
"""
