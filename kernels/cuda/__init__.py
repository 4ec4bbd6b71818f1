"""CUDA sources. The head of each states its contract: what it computes, what it needs, its threads, what it reads.

`kernels.gpu.runtime.source` compiles them. Start with rows.cuh and peel.cu, which peels a subgraph on one GPU.
shards/ has rows cut by the third vertex, and compact/ has rows that are their own hash tables.
"""
