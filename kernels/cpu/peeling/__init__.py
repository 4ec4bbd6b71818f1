"""Removal of edges with too few triangles, on the CPU: level by level, or in bands.

May import `kernels.graph`, `kernels.filters`, `kernels.cpu.adjacency`, `kernels.cpu.arrays`, `kernels.runtime` and
Numba. Start with `peel`, then `cascade`.
"""
