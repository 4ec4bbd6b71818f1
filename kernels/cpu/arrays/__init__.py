"""Operations on plain arrays on the CPU: indexing, sorting, strings, memory shared by processes.

May import `kernels.graph` and `kernels.runtime`. Start with `indexing`. `intrinsics` has what kernels use that Numba
lacks. A module of `kernels.gpu.arrays` with the same name has the same operations for CuPy arrays.
"""

from .indexing import bincount, join, lookup, nonzero, number_marked, scatter_max, scatter_sum, store, take
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
