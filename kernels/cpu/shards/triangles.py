"""Counting triangles by their third vertex: a group stores the edges whose high endpoint is of its classes.

The forward algorithm (Schank and Wagner, "Finding, counting and listing all triangles in large graphs", WEA 2005), cut
by the third vertex: every edge (a, b) of the graph is streamed to every group, which intersects its rows of a and b.
Each common neighbour c is a triangle a < b < c, which no other group finds. A group receives the edges that it stores
in sorted runs, and merges them into rows first.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import IntArray, LongArray
from ...runtime.cache import cached_njit
from ...runtime.sizes import SizedArrays
from ..arrays.intrinsics import fetch_add, prefetch
from .cut import Cut
from .rows import NO_ROW, row_of

Ranks = NDArray[np.uint32]

SHORT = 24
"""A row of at most this many entries is sorted by insertion."""
RANGES = 8
"""Ranges of vertices per thread when runs are merged."""
EDGES_AT_ONCE = 2**16
"""Edges that a thread reorders at a time."""


@dataclass(frozen=True)
class MergedRows(SizedArrays):
    """Edges of several sorted runs as rows low → high. Only vertices with an edge have a row; see `row_of`."""

    word: NDArray[np.uint64]
    """[vertices // 64 + 1] bit v % 64 of word v // 64 is set if vertex v has a row."""
    before: LongArray
    """[vertices // 64 + 1] rows before those of each word."""
    begin: LongArray
    """[rows + 1] where each row starts."""
    high: Ranks
    """[edges] the other endpoint, ascending within a row."""
    origin: Ranks
    """[edges] index of the edge in the runs."""


@cached_njit(parallel=True)
def _mark_rows(low, bounds, word):
    """Set the bit of each vertex that has a row; no two ranges share a word."""
    for r in prange(bounds.shape[0] - 1):
        for run in range(bounds.shape[1]):
            for e in range(bounds[r, run], bounds[r + 1, run]):
                word[low[e] >> np.uint32(6)] |= np.uint64(1) << np.uint64(low[e] & np.uint32(63))


@cached_njit(parallel=True)
def _measure_rows(low, bounds, word, before, length):
    for r in prange(bounds.shape[0] - 1):
        for run in range(bounds.shape[1]):
            for e in range(bounds[r, run], bounds[r + 1, run]):
                length[row_of(word, before, low[e])] += 1


@cached_njit(parallel=True)
def _fill_rows(low, high, bounds, word, before, cursor, key):
    """Write the keys. A key has the high endpoint in its upper 32 bits, and the edge's index in the runs below."""
    for r in prange(bounds.shape[0] - 1):
        for run in range(bounds.shape[1]):
            for e in range(bounds[r, run], bounds[r + 1, run]):
                row = row_of(word, before, low[e])
                key[cursor[row]] = (np.uint64(high[e]) << np.uint64(32)) | np.uint64(e)
                cursor[row] += 1


@cached_njit
def _insert(key, start, stop):
    for i in range(start + 1, stop):
        value = key[i]
        j = i
        while j > start and key[j - 1] > value:
            key[j] = key[j - 1]
            j -= 1
        key[j] = value


@cached_njit(parallel=True)
def _sort_rows(begin, first_row, key, high, origin):
    """Sort each row; range r has the rows from `first_row[r]` to `first_row[r + 1]` - 1."""
    for r in prange(first_row.size - 1):
        for row in range(first_row[r], first_row[r + 1]):
            start, stop = begin[row], begin[row + 1]
            if stop - start <= SHORT:
                _insert(key, start, stop)
            else:
                key[start:stop].sort()
            for q in range(start, stop):
                high[q] = np.uint32(key[q] >> np.uint64(32))
                origin[q] = np.uint32(key[q] & np.uint64(0xFFFFFFFF))


def merge_rows(low: Ranks, high: Ranks, runs: LongArray, vertices: int) -> MergedRows:
    """Merge runs of edges into rows. Run i is the edges from `runs[i]` to `runs[i + 1]` - 1, sorted by (low, high).

    No edge occurs twice. `vertices` is the number of vertices of the graph. Takes 8 bytes per edge beside its arguments
    and its result.
    """
    ranges = RANGES * get_num_threads()
    samples = np.sort(low[:: max(1, len(low) // (64 * ranges))])
    inner = samples[np.arange(1, ranges) * len(samples) // ranges] if len(samples) else samples
    splitters = np.unique(inner & ~np.uint32(63)).astype(np.int64)
    bounds = np.array(
        [
            [start, *(start + np.searchsorted(low[start:stop], splitters.astype(np.uint32))), stop]
            for start, stop in pairwise(runs.tolist())
        ],
        np.int64,
    ).reshape(-1, len(splitters) + 2)
    bounds = np.ascontiguousarray(bounds.T)
    word = np.zeros(vertices // 64 + 1, np.uint64)
    _mark_rows(low, bounds, word)
    before = np.cumsum(np.bitwise_count(word), dtype=np.int64)
    rows = int(before[-1])
    before = np.concatenate([np.zeros(1, np.int64), before[:-1]])
    begin = np.zeros(rows + 1, np.int64)
    _measure_rows(low, bounds, word, before, begin[1:])
    np.cumsum(begin, out=begin)
    if bounds.shape[1] == 1:  # in order as it is
        return MergedRows(word, before, begin, high, np.arange(len(high), dtype=np.uint32))
    key = np.empty(len(low), np.uint64)
    _fill_rows(low, high, bounds, word, before, begin[:-1].copy(), key)
    first_row = np.concatenate([[0], before[splitters >> 6], [rows]]).astype(np.int64)
    merged, origin = np.empty(len(low), np.uint32), np.empty(len(low), np.uint32)
    _sort_rows(begin, first_row, key, merged, origin)
    return MergedRows(word, before, begin, merged, origin)


@cached_njit(parallel=True)
def _count_owned(origin, owned, chunk, counts):
    for c in prange(counts.size):
        total = 0
        for i in range(c * chunk, min((c + 1) * chunk, origin.size)):
            total += owned[origin[i]]
        counts[c] = total


@cached_njit
def _arrange_chunk(first, last, to, given, arranged):
    """Reorder the edges of a chunk. The sender and the row of its owned edges are written from index `to` on."""
    origin, owned, number, low, support, row, runs, senders = given
    low_to, support_to, bucket, row_to = arranged
    for i in range(first, last):
        o = origin[i]
        low_to[i] = low[o]
        support_to[i] = support[o]
        if owned[o]:
            run, stop = 0, senders.size
            while stop - run > 1:
                middle = (run + stop) >> 1
                if runs[middle] <= o:
                    run = middle
                else:
                    stop = middle
            bucket[to] = senders[run]
            row_to[to] = row[number[o] - np.uint32(1)]
            to += 1


@cached_njit(parallel=True)
def _arrange(chunk, start, given, arranged):
    """Reorder all chunks of edges; see `to_merged_order`. `start` is the number of owned edges before each chunk."""
    edges = given[0].size
    for c in prange(start.size - 1):
        first = np.int64(c) * chunk
        _arrange_chunk(first, min(first + chunk, edges), start[c], given, arranged)


def to_merged_order(
    origin: NDArray[np.uint32],
    owned: NDArray[np.bool_],
    low: NDArray[np.uint32],
    support: NDArray[np.int32],
    row: NDArray[np.int32],
    runs: LongArray,
    senders: NDArray[np.int16],
) -> tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.int16], NDArray[np.int32]]:
    """Reorder the values of edges from the order of the runs to that of the merged rows.

    `origin` [edges] is that of `MergedRows`. `low`, `support` and `owned` [edges] are in the order of the runs, and so
    is `row` [owned edges]. The edges of `senders[i]` start at `runs[i]`. Returns the low endpoints [edges], the
    supports [edges], and the sender and the row of each owned edge [owned edges].
    """
    number = np.cumsum(owned, dtype=np.uint32)
    counts = np.zeros(-(-len(origin) // EDGES_AT_ONCE), np.int64)
    _count_owned(origin, owned, EDGES_AT_ONCE, counts)
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    low_to, support_to = np.empty_like(low), np.empty_like(support)
    bucket, row_to = np.empty(len(row), np.int16), np.empty(len(row), np.int32)
    given = (origin, owned, number, low, support, row, runs, senders)
    _arrange(EDGES_AT_ONCE, start, given, (low_to, support_to, bucket, row_to))
    return low_to, support_to, bucket, row_to


AHEAD = 4
"""How many rows ahead a row is prefetched."""
CHUNK = 32
"""Lists that a thread takes at a time: few, as the list of a hub costs as much as thousands of others."""
SEARCH_COST = 12
"""If row a is more than this many times shorter than row b, its entries are searched in b; otherwise all of b is read.
"""
MARK_BYTES = 16
"""Marks may take this many bytes per edge of the group, or SMALL_MARKS bytes in all."""
SMALL_MARKS = 2**26
"""Bytes of marks that are always allowed. Above both limits rows are searched, as rows of such large graphs are short.
"""


@dataclass(frozen=True)
class ThirdVertexRows(SizedArrays):
    """The edges that a group owns, as rows a → c, where c is the third vertex of triangles of edges (a, b)."""

    word: NDArray[np.uint64]
    """As in MergedRows."""
    before: LongArray
    """As in MergedRows."""
    begin: LongArray
    """[rows + 1] where each row starts."""
    code: Ranks
    """[edges] number of the high endpoint among the vertices of the group's classes, ascending within a row."""
    last: Ranks
    """[rows] the vertex number of the highest neighbour."""
    width: int
    """Exclusive upper bound of `code`."""

    def __len__(self) -> int:
        return len(self.code)


@cached_njit(parallel=True)
def _number(high, vertices, shards, first, own, width, code):
    """Number high endpoints in ascending order among the vertices of the `own` classes from `first` on; see `Cut`."""
    for q in prange(high.size):
        rank = vertices - np.uint32(1) - high[q]
        block = rank // shards
        step = rank - block * shards
        at = step - first if block & np.uint32(1) == np.uint32(0) else step - (shards - first - own)
        code[q] = width - np.uint32(1) - (block * own + at)


def third_vertex_rows(rows: MergedRows, cut: Cut, first: int, shards: int) -> ThirdVertexRows:
    """The rows of the group of `shards` shards from class `first` on. The group must own all edges of `rows`."""
    width = cut.width * shards
    code = np.empty_like(rows.high)
    _number(rows.high, *map(np.uint32, (cut.vertices, cut.shards, first, shards, width)), code)
    return ThirdVertexRows(rows.word, rows.before, rows.begin, code, rows.high[rows.begin[1:] - 1], width)


@cached_njit
def _intersect_galloping(code, a, a_stop, b, b_stop, base_a, base_b, at, entry):
    """Find the common entries of row a and the longer row b, by galloping through b. Returns the number of hits.

    Writes the positions in b to `at`, relative to `base_b`, and those in a to `entry`, relative to `base_a`.
    """
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


class Rows(NamedTuple):
    """The arrays of `ThirdVertexRows`."""

    word: NDArray[np.uint64]
    before: LongArray
    begin: LongArray
    code: Ranks
    last: Ranks


class Scratch(NamedTuple):
    """Scratch memory of all threads that count triangles."""

    cursor: LongArray
    """[1] the first list that no thread has taken."""
    marks: Ranks
    """[threads, width] the positions in the marked row, plus one; empty if rows are searched."""
    at: Ranks
    """[threads, widest + 1] positions of common neighbours in the row of b."""
    entry: Ranks
    """[threads, widest + 1] positions of common neighbours in the row of a."""
    gains: IntArray
    """[threads, widest + 1] triangles found so far at each entry of the row of a."""
    near_rows: LongArray
    """[threads, longest + 1] the rows of those members of a list that have rows."""
    near: LongArray
    """[threads, longest + 1] the streamed edges that lead to these members."""


@cached_njit
def _list_members(first, last, high, rows, limit, row_b, edge_b):
    """List the members of a streamed list that are below `limit` and have rows. Returns their number.

    Writes their rows to `row_b` and their edges to `edge_b`.
    """
    word, before, begin = rows.word, rows.before, rows.begin
    listed = 0
    for i in range(np.uintp(first), np.uintp(last)):
        b = high[i]
        if b >= limit:
            break
        other = row_of(word, before, b)
        if other != NO_ROW:
            row_b[listed] = other
            edge_b[listed] = i
            listed += 1
            prefetch(begin, other)
    return listed


@cached_njit
def _intersect(code, a, b, mark, at, entry):
    """Find the common entries of rows a and b, each given as (start, stop). Returns the number of hits.

    Writes the positions in b to `at` and those in a to `entry`. If `mark` is not empty, row a is marked in it. Hits in
    a marked row are gathered without a branch.
    """
    start, stop = a
    from_, to = b
    if np.uintp(SEARCH_COST) * (stop - start) < to - from_ or (mark.size == 0 and stop - start < to - from_):
        return _intersect_galloping(code, start, stop, from_, to, start, from_, at, entry)
    if mark.size == 0:
        return _intersect_galloping(code, from_, to, start, stop, from_, start, entry, at)
    hits = np.uintp(0)
    for q in range(from_, to):
        m = mark[code[q]]
        at[hits] = q - from_
        entry[hits] = m - np.uint32(1)
        hits += np.uintp(m != 0)
    return hits


@cached_njit
def _count_list(a, lists, rows, scratch, sums, found):
    """Count the triangles of streamed list a. Returns their number. `scratch` is the scratch memory of the thread."""
    starts, low, high = lists
    begin, code = rows.begin, rows.code
    mark, at, entry, gain, row_b, edge_b = scratch
    row = row_of(rows.word, rows.before, low[a])
    if row == NO_ROW:
        return np.int64(0)
    listed = _list_members(starts[a], starts[a + 1], high, rows, rows.last[row], row_b, edge_b)
    if listed == 0:
        return np.int64(0)
    total = np.int64(0)
    start, stop = np.uintp(begin[row]), np.uintp(begin[row + 1])
    if mark.size:
        for q in range(start, stop):
            mark[code[q]] = q - start + np.uintp(1)
    for k in range(listed):
        if k + AHEAD < listed:
            prefetch(code, begin[row_b[k + AHEAD]])
        from_, to = np.uintp(begin[row_b[k]]), np.uintp(begin[row_b[k] + 1])
        hits = _intersect(code, (start, stop), (from_, to), mark, at, entry)
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
    return total


@cached_njit
def _count_some(thread, lists, rows, scratch, sums, found):
    """Count the triangles of the lists that a thread takes. Returns their number."""
    cursor, lists_of_all, total = scratch.cursor, lists[1].size, np.int64(0)
    own = (
        *(scratch.marks[thread], scratch.at[thread], scratch.entry[thread]),
        *(scratch.gains[thread], scratch.near_rows[thread], scratch.near[thread]),
    )
    while True:
        first = fetch_add(cursor, 0, np.int64(CHUNK))
        if first >= lists_of_all:
            return total
        for a in range(first, min(first + CHUNK, lists_of_all)):
            total += _count_list(a, lists, rows, own, sums, found)


@cached_njit(parallel=True)
def _count_lists(lists, rows, scratch, sums, found):
    """Count the triangles of all lists; threads take lists from a shared cursor. Returns the number of triangles.

    Indices are unsigned: Numba tests every signed index for being negative.
    """
    triangles = np.int64(0)
    for thread in prange(scratch.at.shape[0]):
        triangles += _count_some(np.int64(thread), lists, rows, scratch, sums, found)
    return triangles


def count_by_third_vertex(
    rows: ThirdVertexRows, starts: Ranks, low: Ranks, high: Ranks, sums: IntArray
) -> tuple[IntArray, int]:
    """Count the triangles a < b < c of the streamed edges (a, b) with c in the group's classes.

    List i of the streamed edges has the edges from low[i] to high[starts[i] : starts[i + 1]], ascending; no vertex has
    two lists. Returns the number of triangles of each streamed edge, int32 [len(high)], and their total. Adds to
    `sums`, int32 [edges of the group], in place, the number of triangles of each edge (a, c) and (b, c).
    """
    threads = get_num_threads()
    widest = int(np.diff(rows.begin).max(initial=0)) + 1
    longest = int(np.diff(starts).max(initial=0)) + 1
    marked = 4 * threads * rows.width <= max(MARK_BYTES * len(rows), SMALL_MARKS)
    found = np.zeros(len(high), np.int32)
    scratch = Scratch(
        cursor=np.zeros(1, np.int64),
        marks=np.zeros((threads, rows.width if marked else 0), np.uint32),
        at=np.empty((threads, widest), np.uint32),
        entry=np.empty((threads, widest), np.uint32),
        gains=np.zeros((threads, widest), np.int32),
        near_rows=np.empty((threads, longest), np.int64),
        near=np.empty((threads, longest), np.int64),
    )
    own = Rows(rows.word, rows.before, rows.begin, rows.code, rows.last)
    triangles = _count_lists((starts, low, high), own, scratch, sums, found)
    return found, int(triangles)
