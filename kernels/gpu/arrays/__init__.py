"""Operations on plain arrays on the GPU: sorting, lookup, scatter, copies to and from the host.

Start with `transfer`. A module of `kernels.cpu.arrays` with the same name has the same operations for NumPy arrays.
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
