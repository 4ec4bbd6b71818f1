"""Searches for edges among other edges. All edges are sorted by (low, high)."""

from __future__ import annotations

import numpy as np
from numba import prange

from ...graph import AnyArray, LongArray, Topology
from ...runtime.cache import cached_njit

BLOCK = 1 << 16
"""Edges of one step of a parallel pass."""
FEW = 16
"""Edges are searched for one by one if the others are this many times as many; else both are merged."""


@cached_njit
def _search_edge(low, high, u, v):
    """The number of edges before (u, v)."""
    first = 0
    last = low.size
    while first < last:
        middle = (first + last) >> 1
        if low[middle] < u or (low[middle] == u and high[middle] < v):
            first = middle + 1
        else:
            last = middle
    return first


@cached_njit(parallel=True)
def _rows_before(low, high, some_low, some_high, found):
    for i in prange(some_low.size):
        found[i] = _search_edge(low, high, some_low[i], some_high[i])


def rows_before(edges: Topology, some: Topology) -> LongArray:
    """How many of `edges` come before each edge of `some`, int64 [some]. `some` may be in any order."""
    found = np.empty(some.edges, np.int64)
    _rows_before(edges.low, edges.high, some.low, some.high, found)
    return found


@cached_njit(parallel=True)
def _among(low, high, other_low, other_high, found):
    for block in prange((low.size + BLOCK - 1) // BLOCK):
        start = block * BLOCK
        at = _search_edge(other_low, other_high, low[start], high[start])
        for i in range(start, min(start + BLOCK, low.size)):
            u = low[i]
            v = high[i]
            while at < other_low.size and (other_low[at] < u or (other_low[at] == u and other_high[at] < v)):
                at += 1
            found[i] = at < other_low.size and other_low[at] == u and other_high[at] == v


def among(edges: Topology, others: Topology) -> AnyArray:
    """Whether each edge is among the others, bool [edges].

    Merges blocks of `edges` with the others: reads each array once. If there are few of one kind, each of them is
    searched for.
    """
    found = np.zeros(edges.edges, np.bool_)
    if not edges.edges or not others.edges:
        return found
    if others.edges > FEW * edges.edges:
        at = np.minimum(rows_before(others, edges), others.edges - 1)
        return (others.low[at] == edges.low) & (others.high[at] == edges.high)
    if edges.edges > FEW * others.edges:
        at = np.minimum(rows_before(edges, others), edges.edges - 1)
        found[at[(edges.low[at] == others.low) & (edges.high[at] == others.high)]] = True
        return found
    _among(edges.low, edges.high, others.low, others.high, found)
    return found


@cached_njit(parallel=True)
def _mark_ends(low, high, left_out, marked):
    for e in prange(low.size):
        if not left_out[e]:
            marked[low[e]] = True
            marked[high[e]] = True


def mark_ends(edges: Topology, left_out: AnyArray, marked: AnyArray) -> None:
    """Set `marked`, bool [vertices], for the ends of all edges for which `left_out`, bool [edges], is false."""
    _mark_ends(edges.low, edges.high, left_out, marked)
