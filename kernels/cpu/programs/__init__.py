"""Gathers of vertex programs on the CPU: several threads read rows of in-edges.

May import `kernels.graph`, `kernels.in_rows`, `kernels.cpu.arrays`, `kernels.runtime` and Numba. Start with
`kernels.programs`: it has the contract of each function and selects the implementation by array type.
"""

from .exact import exact_sum
from .extremes import first_active_sources, row_extremes
from .links import count_all_links, count_links
from .modes import row_h_indices, row_modes
from .push import push
from .sums import row_sums
from .transpose import touched_rows, transpose_rows

__all__ = [
    "count_all_links",
    "count_links",
    "exact_sum",
    "first_active_sources",
    "push",
    "row_extremes",
    "row_h_indices",
    "row_modes",
    "row_sums",
    "touched_rows",
    "transpose_rows",
]
