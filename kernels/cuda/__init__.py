"""CUDA sources, each headed by its contract; `kernels.gpu.source` compiles them."""
