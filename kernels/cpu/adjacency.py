"""Rows of a subgraph in both directions, and their compaction."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange

from ..graph import Adjacency, IntArray, LongArray, Topology
from ..runtime.cache import cached_njit

PARTS = 4
"""Parts of the rows for each thread."""


@cached_njit(parallel=True)
def _count(low, high, rows, runs, below, above):
    """Part t counts the entries from the edges [runs[t], runs[t + 1]), and those of [rows[t], rows[t + 1]) from all."""
    for t in prange(rows.size - 1):
        for e in range(runs[t], runs[t + 1]):
            above[low[e]] += 1
        first = rows[t]
        last = rows[t + 1]
        for e in range(high.size):
            v = high[e]
            if first <= v < last:
                below[v] += 1


@cached_njit(parallel=True)
def _fill(low, high, rows, runs, lower, upper, neighbour, edge):
    """Part t fills rows from the edges [runs[t], runs[t + 1]), and the rows [rows[t], rows[t + 1]) from all edges.

    Edges are sorted by (low, high), so both halves of each row are filled in ascending order.
    """
    for t in prange(rows.size - 1):
        for e in range(runs[t], runs[t + 1]):
            u = low[e]
            neighbour[upper[u]] = high[e]
            edge[upper[u]] = e
            upper[u] += 1
        first = rows[t]
        last = rows[t + 1]
        for e in range(high.size):
            v = high[e]
            if first <= v < last:
                neighbour[lower[v]] = low[e]
                edge[lower[v]] = e
                lower[v] += 1


@cached_njit(parallel=True)
def _count_live(begin, length, edge, live, cuts, kept):
    for t in prange(cuts.size - 1):
        for v in range(cuts[t], cuts[t + 1]):
            n = 0
            for q in range(np.uintp(begin[v]), np.uintp(begin[v] + length[v])):
                n += live[edge[q]]
            kept[v] = n


@cached_njit(parallel=True)
def _copy_live(begin, length, neighbour, edge, live, cuts, new_begin, new_neighbour, new_edge):
    """Copy the live entries of each row to its new place."""
    for t in prange(cuts.size - 1):
        for v in range(cuts[t], cuts[t + 1]):
            target = np.uintp(new_begin[v])
            for q in range(np.uintp(begin[v]), np.uintp(begin[v] + length[v])):
                e = edge[q]
                if live[e]:
                    new_neighbour[target] = neighbour[q]
                    new_edge[target] = e
                    target += np.uintp(1)


def row_numbers(offsets: LongArray) -> IntArray:
    """The row of each entry of a CSR; see `kernels.row_numbers`."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))


def adjacency(topology: Topology) -> Adjacency:
    """The rows of a subgraph in both directions. Each thread makes a range of rows, and reads all high ends twice."""
    low, high, vertices = topology.low, topology.high, topology.vertices
    threads = get_num_threads()
    runs = _runs(low, threads)
    below, above = np.zeros((2, vertices), np.int64)
    _count(low, high, np.arange(threads + 1) * vertices // threads, runs, below, above)
    length = below + above
    begin = np.cumsum(length) - length
    neighbour = np.empty(2 * len(low), np.int32)
    edge = np.empty(2 * len(low), np.int32)
    cuts = np.searchsorted(np.cumsum(below), np.arange(threads + 1) * len(low) // threads)
    cuts[0], cuts[-1] = 0, vertices
    _fill(low, high, cuts, runs, begin.copy(), begin + below, neighbour, edge)
    return Adjacency(begin, length.astype(np.int32), neighbour, edge)


def _runs(low: IntArray, parts: int) -> LongArray:
    """The edges at which so many parts begin, and the number of edges. No two parts have edges of one low end."""
    cuts = np.arange(parts + 1) * len(low) // parts
    if len(low):
        cuts[1:-1] = np.searchsorted(low, low[cuts[1:-1]])
    return cuts


def compact(rows: Adjacency, live: np.ndarray) -> Adjacency:
    """The rows without the edges that are not live, packed."""
    kept = np.empty(len(rows.begin), np.int32)
    numbers, cuts = rows.edge.view(np.uint32), cuts_by_entries(rows, PARTS * get_num_threads())
    _count_live(rows.begin, rows.length, numbers, live, cuts, kept)
    total = np.cumsum(kept, dtype=np.int64)
    begin = total - kept
    entries = int(total[-1]) if len(total) else 0
    neighbour, edge = np.empty(entries, np.int32), np.empty(entries, np.uint32)
    _copy_live(rows.begin, rows.length, rows.neighbour, numbers, live, cuts, begin, neighbour, edge)
    return Adjacency(begin, kept, neighbour, edge.view(np.int32))


def cuts_by_entries(rows: Adjacency, parts: int) -> LongArray:
    """Rows at which `parts` parts begin, with about equally many entries each, and the number of rows.

    Rows of high degree follow each other, so parts of equally many rows would be very unequal.
    """
    ends = np.cumsum(rows.length, dtype=np.int64)
    cuts = np.searchsorted(ends, np.arange(parts + 1) * (int(ends[-1]) if len(ends) else 0) // parts)
    cuts[0], cuts[-1] = 0, len(ends)
    return cuts
