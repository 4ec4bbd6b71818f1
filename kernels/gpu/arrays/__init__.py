"""Operations on plain arrays on the GPU: indexing, sorting, copies to and from the host.

May import `kernels.graph` and `kernels.gpu.runtime`. Start with `transfer`. A module of `kernels.cpu.arrays` with the
same name has the same operations for NumPy arrays.
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
