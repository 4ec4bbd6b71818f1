"""CUDA sources of the gathers of vertex programs.

Start with `classes.cuh`, which distributes rows over lanes. `kernels.gpu.programs` launches the kernels.
"""
