"""The rows that a group of shards stores: for each shard, the rows of all vertices with a neighbour of its class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ...graph import LongArray
from ...runtime.cache import cached_njit
from ...runtime.sizes import NUMPY_ALLOCATOR, Allocator, SizedArrays
from ..arrays.intrinsics import popcount
from .cut import Cut, class_of, index_of

NO_ROW = np.int64(-1)
"""The result of `row_of` for a vertex without a row."""
LENGTH = np.uint64(2**32 - 1)
"""Mask of the bits of a row that hold its length. The higher bits hold its start."""
MAX_ENTRIES = 2**32 - 1
"""Maximum number of entries of one shard."""
MAX_HALVES = 2**32 - 2
"""Maximum number of halves of one group, since uint32 numbers them."""


@dataclass(frozen=True)
class ShardRows(SizedArrays):
    """Rows of the shards `first` to `first + shards - 1`, in the order of shards.

    Only vertices with a neighbour in the class have a row. A bitmap over all vertices marks them, and its prefix sums
    give the number of the row: 2 bits per vertex and shard instead of 64. An edge inside a class has two entries and
    one half. Any other edge has one entry and one half in each of its two shards. Values that are read together are
    adjacent in memory: most rows are short, so that the cache lines touched determine the time to read one.
    """

    cut: Cut
    first: int
    """The class of the group's first shard."""
    has_row: NDArray[np.uint64]
    """[shards, 2 x (vertices // 64 + 1)] two words for each 64 vertices: a bitmap of the vertices that have a row, and
    the number of rows of all earlier vertices.
    """
    row: NDArray[np.uint64]
    """[rows] the start of the row among the shard's entries (high half) and its length (low half). Peeling shortens
    rows in place.
    """
    row_start: LongArray
    """[shards + 1] first row of each shard."""
    entry: NDArray[np.uint64]
    """[entries] number of the neighbour within the shard's class (high half), ascending within a row, and the half of
    the entry's edge (low half).
    """
    entry_start: LongArray
    """[shards + 1] first entry of each shard."""
    half_start: LongArray
    """[shards + 1] first half of each shard."""
    edge: NDArray[np.uint32]
    """[halves] the edge of each half: its index in the arrays that the rows were built from."""

    @property
    def shards(self) -> int:
        """Shards of the group."""
        return len(self.half_start) - 1

    @property
    def widest(self) -> int:
        """Entries of the longest row."""
        return int((self.row & LENGTH).max(initial=0))


@cached_njit(inline="always")
def row_of(word, before, vertex):
    """The number of a vertex's row, NO_ROW if it has none. `word` is the bitmap, `before` are its prefix sums."""
    bits = word[vertex >> np.uint32(6)]
    bit = np.uint64(vertex & np.uint32(63))
    if (bits >> bit) & np.uint64(1) == np.uint64(0):
        return NO_ROW
    return before[vertex >> np.uint32(6)] + np.int64(popcount(bits & ((np.uint64(1) << bit) - np.uint64(1))))


@cached_njit(inline="always")
def row_number(has_row, vertex):
    """The number of a vertex's row in its shard; the vertex must have one."""
    at = (vertex >> np.uint32(6)) << np.uint32(1)
    below = (np.uint64(1) << np.uint64(vertex & np.uint32(63))) - np.uint64(1)
    return has_row[at + np.uint32(1)] + popcount(has_row[at] & below)


@cached_njit(inline="always")
def row_at(has_row, rows, vertex):
    """The row of a vertex in one shard, 0 if the vertex has none. `has_row` and `rows` are those of the shard."""
    bits = has_row[(vertex >> np.uint32(6)) << np.uint32(1)]
    if (bits >> np.uint64(vertex & np.uint32(63))) & np.uint64(1) == np.uint64(0):
        return np.uint64(0)
    return rows[row_number(has_row, vertex)]


@cached_njit(inline="always")
def span(row):
    """Start and end of a row among the shard's entries."""
    start = row >> np.uint64(32)
    return start, start + (row & LENGTH)


@cached_njit(parallel=True)
def _count_listed(low, high, vertices, shards, first, counted):
    """Count the edges with an endpoint in each class of the group, for each part of the edges: [parts, shards + 1]."""
    parts, own = counted.shape[0], np.uint32(counted.shape[1] - 1)
    for part in prange(parts):
        for e in range(low.size * part // parts, low.size * (part + 1) // parts):
            at = class_of(low[e], vertices, shards) - first
            to = class_of(high[e], vertices, shards) - first
            if at < own:
                counted[part, at + 1] += 1
            if to < own and to != at:
                counted[part, to + 1] += 1


@cached_njit(parallel=True)
def _list_edges(low, high, vertices, shards, first, position, listed):
    """List the edges of each class, in order. `position` [parts, shards] is where each part of the edges writes its
    next edge to `listed`, and is advanced.
    """
    parts, own = position.shape[0], np.uint32(position.shape[1])
    for part in prange(parts):
        for e in range(low.size * part // parts, low.size * (part + 1) // parts):
            at = class_of(low[e], vertices, shards) - first
            to = class_of(high[e], vertices, shards) - first
            if at < own:
                listed[position[part, at]] = e
                position[part, at] += 1
            if to < own and to != at:
                listed[position[part, to]] = e
                position[part, to] += 1


@cached_njit(parallel=True)
def _mark_rows(low, high, vertices, shards, first, half_start, listed, has_row, rows, entries):
    """Set the bit of each vertex with a row, and count the rows and entries of each shard."""
    for s in prange(rows.size):
        own, bits = np.uint32(first + s), has_row[s]
        total = np.int64(0)
        for h in range(half_start[s], half_start[s + 1]):
            u, v = low[listed[h]], high[listed[h]]
            if class_of(v, vertices, shards) == own:
                bits[(u >> np.uint32(6)) << np.uint32(1)] |= np.uint64(1) << np.uint64(u & np.uint32(63))
                total += 1
            if class_of(u, vertices, shards) == own:
                bits[(v >> np.uint32(6)) << np.uint32(1)] |= np.uint64(1) << np.uint64(v & np.uint32(63))
                total += 1
        entries[s] = total
        total = np.int64(0)
        for w in range(0, bits.size, 2):
            bits[w + 1] = total
            total += np.int64(popcount(bits[w]))
        rows[s] = total


@cached_njit(inline="always")
def _add_entry(has_row, rows, entries, vertex, neighbour, edge):
    number = row_number(has_row, vertex)
    row = rows[number]
    entries[(row >> np.uint64(32)) + (row & LENGTH)] = (np.uint64(neighbour) << np.uint64(32)) | np.uint64(edge)
    rows[number] = row + np.uint64(1)


@cached_njit
def _fill_one(s, ends, rows_made, listed, at_low, at_high):
    low, high, vertices, shards, first = ends
    half_start, has_row, row_start, row, entry_start, entry = rows_made
    own, bits, rows = np.uint32(first + s), has_row[s], row[row_start[s] : row_start[s + 1]]
    entries = entry[entry_start[s] : entry_start[s + 1]]
    for h in range(half_start[s], half_start[s + 1]):
        u, v = low[listed[h]], high[listed[h]]
        if class_of(v, vertices, shards) == own:
            rows[row_number(bits, u)] += np.uint64(1)
        if class_of(u, vertices, shards) == own:
            rows[row_number(bits, v)] += np.uint64(1)
    begin = np.uint64(0)
    for i in range(rows.size):
        length = rows[i]
        rows[i] = begin << np.uint64(32)
        begin += length
    for i in range(half_start[s + 1] - half_start[s]):
        e = listed[half_start[s + 1] - 1 - i]
        u, v = low[e], high[e]
        if class_of(v, vertices, shards) == own:
            _add_entry(bits, rows, entries, u, index_of(v, vertices, shards), e)
        if class_of(u, vertices, shards) == own:
            _add_entry(bits, rows, entries, v, index_of(u, vertices, shards), e)
    h = half_start[s]
    for q in range(entries.size):
        e = np.uint32(entries[q] & LENGTH)
        neighbour = entries[q] & ~LENGTH
        here_low = class_of(low[e], vertices, shards) == own
        here_high = class_of(high[e], vertices, shards) == own
        if here_low and here_high and at_low[e] != 0:  # the second entry of the edge
            entries[q] = neighbour | np.uint64(half_start[s] + np.int64(at_low[e]) - 1)
            continue
        number = np.uint32(h - half_start[s] + 1)
        if here_low:
            at_low[e] = number
        if here_high:
            at_high[e] = number
        entries[q] = neighbour | np.uint64(h)
        listed[h] = e
        h += 1


@cached_njit(parallel=True)
def _fill_rows(ends, rows_made, listed, at_low, at_high):
    """Write the rows, number the halves in the order of the entries, and reorder `listed` accordingly.

    `ends` are the endpoints, the numbers of vertices and of shards, and the first class. Edges are read backwards,
    since the number of a vertex within its class ascends as the number of the vertex descends. Entries hold the numbers
    of their edges until the halves are numbered.
    """
    for s in prange(rows_made[0].size - 1):
        _fill_one(np.int64(s), ends, rows_made, listed, at_low, at_high)


def build_rows(
    low: NDArray[np.uint32],
    high: NDArray[np.uint32],
    cut: Cut,
    first: int,
    shards: int,
    allocator: Allocator = NUMPY_ALLOCATOR,
) -> tuple[ShardRows, NDArray[np.uint32]]:
    """Build the rows of `shards` shards from class `first` on.

    `low`, `high` [edges] uint32 contain all edges with an endpoint in these classes, and may contain other edges. They
    are sorted by (low, high), each once, low < high, with vertices numbered by ascending degree. Returns the rows, and
    the endpoint words uint32 [2, edges]: row 0 is for the shard of the low endpoint, row 1 for that of the high
    endpoint. A word is the number of the edge's half within the shard plus one, or 0 if the shard is not in this group.
    Raises ValueError for more halves or entries than can be numbered.
    """
    total, own = np.uint32(cut.vertices), np.uint32(cut.shards)
    parts = max(1, min(shards, len(low)))
    counted = np.zeros((parts, shards + 1), np.int64)
    _count_listed(low, high, total, own, np.uint32(first), counted)
    half_start = np.cumsum(counted.sum(axis=0))
    if half_start[-1] > MAX_HALVES:
        raise ValueError(f"{half_start[-1]:,} halves of edges in one group of shards, {MAX_HALVES:,} at most")
    position = half_start[:-1] + np.cumsum(counted[:, 1:], axis=0) - counted[:, 1:]
    listed = allocator.allocate(int(half_start[-1]), np.uint32)
    _list_edges(low, high, total, own, np.uint32(first), position, listed)
    has_row = np.zeros((shards, 2 * (cut.vertices // 64 + 1)), np.uint64)
    rows, entries = np.empty(shards, np.int64), np.empty(shards, np.int64)
    _mark_rows(low, high, total, own, first, half_start, listed, has_row, rows, entries)
    if entries.max(initial=0) > MAX_ENTRIES:
        raise ValueError(f"{entries.max():,} entries in one shard, {MAX_ENTRIES:,} at most")
    row_start, entry_start = np.append(0, np.cumsum(rows)), np.append(0, np.cumsum(entries))
    row, entry = np.zeros(row_start[-1], np.uint64), allocator.allocate(int(entry_start[-1]), np.uint64)
    words = allocator.allocate(2 * len(low), np.uint32).reshape(2, -1)
    words[:] = 0
    rows_made = half_start, has_row, row_start, row, entry_start, entry
    _fill_rows((low, high, total, own, first), rows_made, listed, *words)
    return ShardRows(cut, first, has_row, row, row_start, entry, entry_start, half_start, listed), words
