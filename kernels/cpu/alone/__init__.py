"""Vertex programs on a graph in one block, each from its start to its end in a few compiled functions.

On many cores, a superstep of some milliseconds spends most of its time between kernels: in NumPy's passes, which one
thread makes, in new memory, and in starting threads. These functions give the bits that supersteps give.

May import `kernels.graph`, `kernels.in_rows`, `kernels.cpu.arrays`, `kernels.cpu.programs`, `kernels.runtime` and
Numba. Start with `breadth_first`. `tasks.programs.orders.at_once` says when they are used.
"""
