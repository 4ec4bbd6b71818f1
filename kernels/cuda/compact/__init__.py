"""CUDA sources of compact rows. The head of each states its contract.

Start with peel.cu, then rows.cuh and word.cuh, which describe the entries. May include headers of `kernels.cuda`.
"""
