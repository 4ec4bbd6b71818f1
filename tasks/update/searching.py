"""Searches for edges among others, all sorted by (low, high), and for ends of edges: few by NumPy, many by kernels.

A batch is small in most nights. Searched here, it needs no kernel, so that Numba is not loaded where nothing changes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...kernels.graph import Topology

FEW = 2**14
"""At most so many edges are searched for without kernels. It takes 30 passes over arrays of their number."""


def rows_before(edges: Topology, some: Topology) -> NDArray[np.int64]:
    """How many of `edges` come before each edge of `some`, int64 [some]. `some` may be in any order."""
    if some.edges > FEW:
        from ...kernels.cpu.update import rows_before as by_kernel  # loads Numba

        found: NDArray[np.int64] = by_kernel(edges, some)
        return found
    first = np.searchsorted(edges.low, some.low, "left")
    last = np.searchsorted(edges.low, some.low, "right")
    for _ in range(int((last - first).max(initial=0)).bit_length()):
        middle = (first + last) >> 1
        open_ = first < last
        before = open_.copy()
        before[open_] = edges.high[middle[open_]] < some.high[open_]
        first = np.where(before, middle + 1, first)
        last = np.where(open_ & ~before, middle, last)
    return first


def among(edges: Topology, others: Topology) -> NDArray[np.bool_]:
    """Whether each edge is among the others, bool [edges]."""
    if min(edges.edges, others.edges) > FEW:
        from ...kernels.cpu.update import among as by_kernel  # loads Numba

        merged: NDArray[np.bool_] = by_kernel(edges, others)
        return merged
    found: NDArray[np.bool_] = np.zeros(edges.edges, np.bool_)
    if not edges.edges or not others.edges:
        return found
    if edges.edges <= others.edges:
        at = np.minimum(rows_before(others, edges), others.edges - 1)
        found[:] = (others.low[at] == edges.low) & (others.high[at] == edges.high)
        return found
    at = np.minimum(rows_before(edges, others), edges.edges - 1)
    found[at[(edges.low[at] == others.low) & (edges.high[at] == others.high)]] = True
    return found


def mark_ends(edges: Topology, left_out: NDArray[np.bool_], marked: NDArray[np.bool_]) -> None:
    """Set `marked` [vertices] for the ends of all edges for which `left_out` [edges] is false."""
    if edges.edges > FEW:
        from ...kernels.cpu.update import mark_ends as by_kernel  # loads Numba

        by_kernel(edges, left_out, marked)
        return
    for ends in (edges.low, edges.high):
        marked[ends[~left_out]] = True
