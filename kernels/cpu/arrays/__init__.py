"""Operations on plain arrays on the CPU: sorting, lookup, scatter, strings, atomics.

May import `kernels.graph` and `kernels.runtime`. Start with `lookup`. A module of `kernels.gpu.arrays` with the same
name has the same operations for CuPy arrays.
"""

from .gather import join, nonzero, number_marked, store, take
from .lookup import lookup
from .scatter import bincount, scatter_max, scatter_sum
from .sort import order_pairs, positions_by_group

__all__ = [
    "bincount",
    "join",
    "lookup",
    "nonzero",
    "number_marked",
    "order_pairs",
    "positions_by_group",
    "scatter_max",
    "scatter_sum",
    "store",
    "take",
]
