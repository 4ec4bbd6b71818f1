"""Compilation of all GPU kernels of a run before its first use, in several processes.

May import `kernels.gpu` and `kernels.runtime`. Start with `processes`; `operations` lists what is compiled. `ahead`
compiles our own kernels without a GPU; `variants` lists those.
"""
