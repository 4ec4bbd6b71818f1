"""Searches from up to 512 sources at once on the CPU: one bit for each source in the words of a vertex.

May import `kernels.graph`, `kernels.in_rows`, `kernels.cpu.arrays`, `kernels.cpu.programs.chunks`, `kernels.runtime`
and Numba. Start with `kernels.searches`: it has the contract of each function and selects the implementation by array
type.
"""

from .brandes import BlockPaths
from .counts import column_counts
from .levels import search_level
from .paths import path_counts, path_dependencies
from .reached import reached_rows

__all__ = ["BlockPaths", "column_counts", "path_counts", "path_dependencies", "reached_rows", "search_level"]
