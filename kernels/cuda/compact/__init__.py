"""CUDA sources of compact rows, each headed by its contract.

Start with peel.cu, then rows.cuh and word.cuh, which say what an entry holds. May include headers of `kernels.cuda`.
"""
