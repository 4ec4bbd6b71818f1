"""Counting triangles by their third vertex: a group stores the edges whose high endpoint is of its classes.

The forward algorithm (Schank and Wagner, "Finding, counting and listing all triangles in large graphs", WEA 2005), cut
by the third vertex: every edge (a, b) of the graph is streamed to every group, which intersects its rows of a and b.
Each common neighbour c is a triangle a < b < c, which no other group finds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import IntArray, LongArray
from ...runtime.cache import cached_njit
from ...runtime.sizes import SizedArrays
from ..arrays.atomics import fetch_add, prefetch
from .cut import Cut
from .merged_order import MergedRows, Ranks
from .rows import NO_ROW, row_of

AHEAD = 4
"""How many rows ahead a row is prefetched."""
CHUNK = 32
"""Lists that a thread takes at a time: few, as the list of a hub costs as much as thousands of others."""
SEARCH_COST = 12
"""A row is searched for the entries of a row that is this many times shorter; otherwise all of it is read."""
MARK_BYTES = 16
"""Marks may take this many bytes per edge of the group, or SMALL_MARKS bytes in all."""
SMALL_MARKS = 2**26
"""Bytes of marks that are always allowed. Above the limits rows are searched: they are short in such large graphs."""


@dataclass(frozen=True)
class ThirdVertexRows(SizedArrays):
    """The edges that a group owns, as rows a → c: c is the third vertex of triangles of edges (a, b)."""

    word: NDArray[np.uint64]
    """As in MergedRows."""
    before: LongArray
    """As in MergedRows."""
    begin: LongArray
    """[rows + 1] where each row starts."""
    code: Ranks
    """[edges] number of the high endpoint among the vertices of the group's classes, ascending within a row."""
    last: Ranks
    """[rows] the highest neighbour."""
    width: int
    """Upper bound of these numbers, exclusive."""

    def __len__(self) -> int:
        return len(self.code)


@cached_njit(parallel=True)
def _number(high, vertices, shards, first, own, width, code):
    """Number the vertices of the `own` classes from `first` on by ascending rank; see `Cut` for the classes."""
    for q in prange(high.size):
        rank = vertices - np.uint32(1) - high[q]
        block = rank // shards
        step = rank - block * shards
        at = step - first if block & np.uint32(1) == np.uint32(0) else step - (shards - first - own)
        code[q] = width - np.uint32(1) - (block * own + at)


def third_vertex_rows(rows: MergedRows, cut: Cut, first: int, shards: int) -> ThirdVertexRows:
    """The rows of a group of `shards` shards from class `first` on, which must own all of these edges."""
    width = cut.width * shards
    code = np.empty_like(rows.high)
    _number(rows.high, *map(np.uint32, (cut.vertices, cut.shards, first, shards, width)), code)
    return ThirdVertexRows(rows.word, rows.before, rows.begin, code, rows.high[rows.begin[1:] - 1], width)


@cached_njit
def _intersect_galloping(code, a, a_stop, b, b_stop, base_a, base_b, at, entry):
    """Find the entries of row a in the longer row b by galloping; writes both positions, relative to the bases."""
    hits = np.uintp(0)
    for q in range(np.uintp(a), np.uintp(a_stop)):
        c = code[q]
        step = np.uintp(1)
        while b + step < b_stop and code[b + step] < c:
            b += step
            step += step
        stop = min(b + step, b_stop)
        while b < stop:
            middle = (b + stop) >> np.uintp(1)
            if code[middle] < c:
                b = middle + np.uintp(1)
            else:
                stop = middle
        if b >= b_stop:
            break
        if code[b] == c:
            at[hits] = b - base_b
            entry[hits] = q - base_a
            hits += np.uintp(1)
    return hits


@cached_njit(parallel=True)
def _count_chunks(
    starts, low, high, word, before, begin, code, last, marks, ats, entries, gains, near_rows, near, cursor, sums, found
):
    """Count the triangles of all lists; threads take lists from a shared cursor. Returns the number of triangles.

    Hits are gathered without a branch. Indices are unsigned: Numba tests every signed index for being negative.
    """
    triangles = np.int64(0)
    for thread in prange(ats.shape[0]):
        mark, at, entry, gain = marks[thread], ats[thread], entries[thread], gains[thread]
        row_b, edge_b = near_rows[thread], near[thread]
        total = np.int64(0)
        while True:
            first = fetch_add(cursor, 0, np.int64(CHUNK))
            if first >= low.size:
                break
            for a in range(first, min(first + CHUNK, low.size)):
                row = row_of(word, before, low[a])
                if row == NO_ROW:
                    continue
                limit = last[row]
                listed = 0
                for i in range(np.uintp(starts[a]), np.uintp(starts[a + 1])):
                    b = high[i]
                    if b >= limit:
                        break
                    other = row_of(word, before, b)
                    if other != NO_ROW:
                        row_b[listed] = other
                        edge_b[listed] = i
                        listed += 1
                        prefetch(begin, other)
                if listed == 0:
                    continue
                start, stop = np.uintp(begin[row]), np.uintp(begin[row + 1])
                if mark.size:
                    for q in range(start, stop):
                        mark[code[q]] = q - start + np.uintp(1)
                for k in range(listed):
                    if k + AHEAD < listed:
                        prefetch(code, begin[row_b[k + AHEAD]])
                    from_ = np.uintp(begin[row_b[k]])
                    to = np.uintp(begin[row_b[k] + 1])
                    hits = np.uintp(0)
                    if np.uintp(SEARCH_COST) * (stop - start) < to - from_ or (
                        mark.size == 0 and stop - start < to - from_
                    ):
                        hits = _intersect_galloping(code, start, stop, from_, to, start, from_, at, entry)
                    elif mark.size == 0:
                        hits = _intersect_galloping(code, from_, to, start, stop, from_, start, entry, at)
                    else:
                        for q in range(from_, to):
                            m = mark[code[q]]
                            at[hits] = q - from_
                            entry[hits] = m - np.uint32(1)
                            hits += np.uintp(m != 0)
                    for h in range(hits):
                        fetch_add(sums, from_ + np.uintp(at[h]), np.int32(1))
                        gain[entry[h]] += np.int32(1)
                    found[edge_b[k]] = np.int32(hits)
                    total += np.int64(hits)
                for q in range(stop - start):
                    if gain[q] != 0:
                        fetch_add(sums, start + q, gain[q])
                        gain[q] = 0
                if mark.size:
                    for q in range(start, stop):
                        mark[code[q]] = 0
        triangles += total
    return triangles


def count_by_third_vertex(
    rows: ThirdVertexRows, starts: Ranks, low: Ranks, high: Ranks, sums: IntArray
) -> tuple[IntArray, int]:
    """Count the triangles a < b < c of the streamed edges (a, b) with c in the group's classes.

    List i of the streamed edges is low[i] → high[starts[i] : starts[i + 1]], ascending; no vertex has two lists.
    Returns the triangles of each streamed edge, int32 [len(high)], and their total. Adds to `sums`, int32 [edges of the
    group], in place, the triangles of each edge (a, c) and (b, c).
    """
    threads = get_num_threads()
    widest = int(np.diff(rows.begin).max(initial=0)) + 1
    longest = int(np.diff(starts).max(initial=0)) + 1
    marked = 4 * threads * rows.width <= max(MARK_BYTES * len(rows), SMALL_MARKS)
    found = np.zeros(len(high), np.int32)
    triangles = _count_chunks(
        starts,
        low,
        high,
        rows.word,
        rows.before,
        rows.begin,
        rows.code,
        rows.last,
        np.zeros((threads, rows.width if marked else 0), np.uint32),
        np.empty((threads, widest), np.uint32),
        np.empty((threads, widest), np.uint32),
        np.zeros((threads, widest), np.int32),
        np.empty((threads, longest), np.int64),
        np.empty((threads, longest), np.int64),
        np.zeros(1, np.int64),
        sums,
        found,
    )
    return found, int(triangles)
