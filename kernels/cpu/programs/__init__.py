"""Gathers of vertex programs on the CPU, and algorithms that compute a whole graph in one block from start to end.

May import `kernels.graph`, `kernels.cpu.arrays`, `kernels.runtime` and Numba. `kernels.programs` has the contract of
each gather and selects the implementation by array type; start there. `breadth_first`, `shortest_paths`, `components`
and `pagerank` have the algorithms. Their results are bitwise those of supersteps of gathers, but they save the time
between the kernels of a superstep. `tasks.programs.running` says when they are used.
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
