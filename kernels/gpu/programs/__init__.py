"""Gathers of vertex programs on the GPU. Modules and functions have the names of their twins in `kernels.cpu.programs`.

May import `kernels.graph`, `kernels.gpu.adjacency`, `kernels.gpu.runtime` and CuPy. Start with `kernels.programs`,
which has the contract of each function. `classes` sorts rows by length for the kernels.
"""

from .components import connected_sources, lower_values, lowered_rows
from .links import count_all_links, count_links
from .pagerank import next_ranks, rank_shares
from .push_pull import count_entries, count_selected, first_active_sources, push
from .reductions import exact_sums, row_extremes, row_h_indices, row_modes, row_sums
from .transpose import both_ways, touched_rows, transpose_rows

__all__ = [
    "both_ways",
    "connected_sources",
    "count_all_links",
    "count_entries",
    "count_links",
    "count_selected",
    "exact_sums",
    "first_active_sources",
    "lower_values",
    "lowered_rows",
    "next_ranks",
    "push",
    "rank_shares",
    "row_extremes",
    "row_h_indices",
    "row_modes",
    "row_sums",
    "touched_rows",
    "transpose_rows",
]
