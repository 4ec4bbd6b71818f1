"""The CPU twins: Numba kernels over NumPy arrays."""

from .adjacency import adjacency, compact
from .cascade import Cascade
from .fixpoint import Fixpoint
from .intersect import intersect
from .lookup import lookup
from .scan import Live, below, reband
from .lists import pack_lists
