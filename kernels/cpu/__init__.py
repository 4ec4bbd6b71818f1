"""The CPU twins: Numba kernels over NumPy arrays."""

from .adjacency import adjacency, compact, row_numbers
from .cascade import Cascade
from .fixpoint import Fixpoint
from .intersect import intersect
from .lists import pack_lists
from .lookup import lookup
from .nest import add_up, least_up, nest
from .peel import Peeling
from .places import maxima_at, positions, sums_at
from .scan import reband
from .shards.arrivals import arrange
from .shards.closing import close_rows, count_closed, merge_rows
from .sort import order_pairs, sort_keys
from .strings import hash_strings, sort_strings

__all__ = [
    "Cascade",
    "Fixpoint",
    "Peeling",
    "add_up",
    "adjacency",
    "arrange",
    "close_rows",
    "compact",
    "count_closed",
    "hash_strings",
    "intersect",
    "least_up",
    "lookup",
    "maxima_at",
    "merge_rows",
    "nest",
    "order_pairs",
    "pack_lists",
    "positions",
    "reband",
    "row_numbers",
    "sort_keys",
    "sort_strings",
    "sums_at",
]
