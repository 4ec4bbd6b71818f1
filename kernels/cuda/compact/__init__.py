"""CUDA sources of compact rows, each headed by its contract."""
