"""Rows of a subgraph in both directions, their compaction, and the common neighbours of two rows.

Common neighbours are found by a search of the shorter row in the longer row, or by marks of one row's neighbours. Inner
loops index with unsigned numbers: Numba tests whether each signed index is negative.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange

from ..graph import Adjacency, IntArray, LongArray, Topology
from ..runtime.cache import cached_njit


@cached_njit
def search_shorter(neighbour, edge, a, a_stop, b, b_stop, to_f, to_g):
    """Write the edges to the common neighbours of two rows to `to_f` and `to_g`. Returns the number of neighbours.

    Uses galloping search.
    The first row must be the shorter one; both ascend.
    """
    hits = np.uintp(0)
    b = np.uintp(b)
    b_stop = np.uintp(b_stop)
    for q in range(np.uintp(a), np.uintp(a_stop)):
        w = neighbour[q]
        step = np.uintp(1)
        while b + step < b_stop and neighbour[b + step] < w:
            b += step
            step += step
        hi = min(b + step, b_stop)
        while b < hi:
            middle = (b + hi) >> np.uintp(1)
            if neighbour[middle] < w:
                b = middle + np.uintp(1)
            else:
                hi = middle
        if b >= b_stop:
            break
        if neighbour[b] == w:
            to_f[hits] = edge[q]
            to_g[hits] = edge[b]
            hits += np.uintp(1)
    return np.int64(hits)


@cached_njit
def mark_row(mark, neighbour, edge, start, stop):
    """Store at each neighbour of a row the edge to it, plus one."""
    for q in range(np.uintp(start), np.uintp(stop)):
        mark[neighbour[q]] = edge[q] + 1


@cached_njit
def unmark_row(mark, neighbour, start, stop):
    """Undo `mark_row`."""
    for q in range(np.uintp(start), np.uintp(stop)):
        mark[neighbour[q]] = 0


@cached_njit
def probe(mark, neighbour, edge, start, stop, to_f, to_g):
    """As `search_shorter`, for a row and the marked row, without branches."""
    hits = np.uintp(0)
    for q in range(np.uintp(start), np.uintp(stop)):
        m = mark[neighbour[q]]
        to_f[hits] = edge[q]
        to_g[hits] = m - 1
        hits += np.uintp(m != 0)
    return np.int64(hits)


PARTS = 4
"""Parts of the rows for each thread."""
BLOCK_BITS = 10
"""Rows are built in at most 2^BLOCK_BITS + 1 blocks. Each block should fit a cache."""


@cached_njit(parallel=True)
def _count(low, high, runs, shift, above, found):
    """Count the entries of the upper halves of rows, and the edges of each run in each block of rows of high ends."""
    for t in prange(runs.size - 1):
        for e in range(runs[t], runs[t + 1]):
            above[np.uintp(low[e])] += 1
            found[t, np.uintp(high[e] >> shift)] += 1


@cached_njit(parallel=True)
def _sort(low, high, runs, shift, slot, sorted_low, sorted_high, number):
    """Sort the edges stably by the blocks of their high ends. `slot` [runs, blocks] is the place of the next edge."""
    for t in prange(runs.size - 1):
        for e in range(runs[t], runs[t + 1]):
            block = np.uintp(high[e] >> shift)
            at = np.uintp(slot[t, block])
            slot[t, block] += 1
            sorted_low[at] = low[e]
            sorted_high[at] = high[e]
            number[at] = e


@cached_njit(parallel=True)
def _count_lower(sorted_high, cuts, below):
    for t in prange(cuts.size - 1):
        for i in range(cuts[t], cuts[t + 1]):
            below[np.uintp(sorted_high[i])] += 1


@cached_njit
def _append(v, other, e, slot, neighbour, edge):
    """Append an entry to the half of a row whose next place is in `slot`."""
    at = np.uintp(slot[v])
    slot[v] += 1
    neighbour[at] = other
    edge[at] = e


@cached_njit(parallel=True)
def _fill_lower(sorted_low, sorted_high, number, cuts, slot, neighbour, edge):
    """Fill the lower halves of rows. The rows of a block are close to each other in memory."""
    for t in prange(cuts.size - 1):
        for i in range(cuts[t], cuts[t + 1]):
            _append(np.uintp(sorted_high[i]), sorted_low[i], number[i], slot, neighbour, edge)


@cached_njit(parallel=True)
def _fill_upper(low, high, runs, slot, neighbour, edge):
    for t in prange(runs.size - 1):
        for e in range(runs[t], runs[t + 1]):
            _append(np.uintp(low[e]), high[e], e, slot, neighbour, edge)


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
    """The rows of a subgraph in both directions. Takes 12 bytes an edge meanwhile.

    Edges are sorted by (low, high), so the upper halves of rows are in order already. For the lower halves edges are
    first sorted by blocks of rows, so that each block is filled in cache.
    """
    low, high, vertices = topology.low, topology.high, topology.vertices
    threads = get_num_threads()
    shift = max(vertices.bit_length() - BLOCK_BITS, 0)
    runs = _runs(low, threads)
    below, above = np.zeros((2, vertices), np.int64)
    found = np.zeros((threads, (vertices >> shift) + 1), np.int64)
    _count(low, high, runs, shift, above, found)
    ends = np.ascontiguousarray(np.cumsum(found.T).reshape(found.T.shape).T)
    sorted_low, sorted_high, number = np.empty((3, len(low)), np.int32)
    _sort(low, high, runs, shift, ends - found, sorted_low, sorted_high, number)
    cuts = _thread_cuts(ends[-1], threads)
    _count_lower(sorted_high, cuts, below)
    length = below + above
    begin = np.cumsum(length) - length
    neighbour, edge = np.empty((2, 2 * len(low)), np.int32)
    _fill_lower(sorted_low, sorted_high, number, cuts, begin.copy(), neighbour, edge)
    _fill_upper(low, high, runs, begin + below, neighbour, edge)
    return Adjacency(begin, length.astype(np.int32), neighbour, edge)


def _thread_cuts(ends: LongArray, threads: int) -> LongArray:
    """Where each thread's share of edges sorted by blocks starts, and the number of edges. Blocks end at `ends`."""
    total = int(ends[-1])
    cuts = ends[np.searchsorted(ends, np.arange(threads + 1) * total // threads)]
    cuts[0], cuts[-1] = 0, total
    return cuts


def _runs(low: IntArray, parts: int) -> LongArray:
    """The edges at which `parts` parts begin, and the number of edges. No two parts have edges of one low end."""
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
