"""Gathers of vertex programs on the CPU: rows of in-edges, read by several threads.

Each function has its contract in `kernels.programs`, which picks by array type.
"""

from .closing import count_closing, count_closing_whole
from .exact import exact_sum
from .extremes import first_speakers, row_extremes
from .modes import row_h_indices, row_modes
from .pushing import push
from .sums import row_sums
from .turned import rows_of_sources, touched_rows

__all__ = [
    "count_closing",
    "count_closing_whole",
    "exact_sum",
    "first_speakers",
    "push",
    "row_extremes",
    "row_h_indices",
    "row_modes",
    "row_sums",
    "rows_of_sources",
    "touched_rows",
]
