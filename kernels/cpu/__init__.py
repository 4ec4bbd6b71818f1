"""The CPU twins: Numba kernels over NumPy arrays."""

from .adjacency import adjacency, compact
from .cascade import Cascade
from .fixpoint import Fixpoint
from .intersect import intersect
from .lists import pack_lists
from .lookup import lookup
from .scan import Live, below, reband
from .sort import order_pairs, sort_keys

__all__ = [
    "Cascade",
    "Fixpoint",
    "Live",
    "adjacency",
    "below",
    "compact",
    "intersect",
    "lookup",
    "order_pairs",
    "pack_lists",
    "reband",
    "sort_keys",
]
