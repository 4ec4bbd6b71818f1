"""Peeling of a whole graph that is the only partition of one GPU, in compact rows while plain rows do not fit.

Start with `peeling`. `room` says what fits the device, and places arrays in host memory if they do not. May import
`kernels.gpu`.
"""
