"""Compilation of all GPU kernels of a run before its first use, in several processes.

May import `kernels.gpu` and `kernels.runtime`. Start with `first_run`, which lists what is compiled at the first run on
a machine. `ahead` compiles this project's own kernels without a GPU.
"""
