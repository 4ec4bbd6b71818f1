"""What a group of shards stores: for each shard, the rows of all vertices that have a neighbour of its class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit, prange, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ...graph import LongArray
from ...held import Held
from .cut import Cut, class_of, index_of
from .room import MEMORY, Room

NO_ROW = np.int64(-1)
"""What `row_of` gives for a vertex without neighbours of the shard's class."""
MOST_HALVES = 2**32 - 2
"""Halves that one group may have, since they are numbered by uint32."""


@intrinsic
def popcount(typing_context: Any, word: Any) -> Any:
    """Bits set in a uint64."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), codegen


@dataclass(frozen=True)
class ShardRows(Held):
    """Rows of the shards `first` to `first + shards - 1`, one shard behind the other.

    Only vertices with a neighbour in the class have a row. A bitmap over all vertices says which, and its prefix sums
    give the row's number: 2 bits a vertex and shard instead of 96. An edge inside a class has two entries and one
    half, any other edge has one entry and one half in each of its two shards.
    """

    cut: Cut
    first: int
    """The class of the group's first shard."""
    word: NDArray[np.uint64]
    """[shards, vertices // 64 + 1] bit v % 64 of word v // 64 is set where vertex v has a row."""
    before: LongArray
    """[shards, vertices // 64 + 1] rows before those of the word."""
    begin: LongArray
    """[rows] where each row starts."""
    length: NDArray[np.int32]
    """[rows] entries in each row; peeling shortens rows in place."""
    row_start: LongArray
    """[shards + 1] first row of each shard."""
    neighbour: NDArray[np.uint32]
    """[entries] number of the neighbour within the shard's class, ascending within a row."""
    half: NDArray[np.uint32]
    """[entries] the half of the entry's edge."""
    half_start: LongArray
    """[shards + 1] first half of each shard."""
    edge: NDArray[np.uint32]
    """[halves] the edge of each half, by its number in the arrays that the rows were built from."""

    @property
    def shards(self) -> int:
        """Shards of the group."""
        return len(self.half_start) - 1

    @property
    def widest(self) -> int:
        """Entries of the longest row."""
        return int(self.length.max(initial=0))


@njit(cache=True, nogil=True, inline="always")
def row_of(word, before, vertex):
    """The row of a vertex in one shard, NO_ROW if it has none."""
    bits = word[vertex >> np.uint32(6)]
    bit = np.uint64(vertex & np.uint32(63))
    if (bits >> bit) & np.uint64(1) == np.uint64(0):
        return NO_ROW
    return before[vertex >> np.uint32(6)] + np.int64(popcount(bits & ((np.uint64(1) << bit) - np.uint64(1))))


@njit(cache=True, nogil=True)
def entry_of(neighbour, start, stop, number):
    """Where a row has the neighbour, which it must have; binary search."""
    low, high = np.uint64(start), np.uint64(stop)
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if neighbour[middle] < number:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low


@njit(parallel=True, cache=True, nogil=True)
def _count_listed(low, high, vertices, shards, first, counted):
    """Count the edges of each part of the edges that have an end in each class of the group: [parts, shards + 1]."""
    parts, own = counted.shape[0], np.uint32(counted.shape[1] - 1)
    for part in prange(parts):
        for e in range(low.size * part // parts, low.size * (part + 1) // parts):
            at = class_of(low[e], vertices, shards) - first
            to = class_of(high[e], vertices, shards) - first
            if at < own:
                counted[part, at + 1] += 1
            if to < own and to != at:
                counted[part, to + 1] += 1


@njit(parallel=True, cache=True, nogil=True)
def _list_edges(low, high, vertices, shards, first, position, listed):
    """List the edges of each class in their order; `position` is where each part's edges of each class go."""
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


@njit(parallel=True, cache=True, nogil=True)
def _mark_rows(low, high, vertices, shards, first, half_start, listed, word, before, rows, entries):
    """Set the bit of each vertex that has a row, and count each shard's rows and entries."""
    for s in prange(rows.size):
        own, bits = np.uint32(first + s), word[s]
        total = np.int64(0)
        for h in range(half_start[s], half_start[s + 1]):
            u, v = low[listed[h]], high[listed[h]]
            if class_of(v, vertices, shards) == own:
                bits[u >> np.uint32(6)] |= np.uint64(1) << np.uint64(u & np.uint32(63))
                total += 1
            if class_of(u, vertices, shards) == own:
                bits[v >> np.uint32(6)] |= np.uint64(1) << np.uint64(v & np.uint32(63))
                total += 1
        entries[s] = total
        total = np.int64(0)
        for w in range(word.shape[1]):
            before[s, w] = total
            total += np.int64(popcount(bits[w]))
        rows[s] = total


@njit(parallel=True, cache=True, nogil=True)
def _fill_rows(
    low,
    high,
    vertices,
    shards,
    first,
    half_start,
    word,
    before,
    row_start,
    entry_start,
    begin,
    length,
    neighbour,
    half,
    listed,
    at_low,
    at_high,
):
    """Write the rows, number the halves in the order of the entries, and put the edges in that order into `listed`.

    Edges are read backwards: a row gets its neighbours in descending order of their vertex numbers, which are
    ascending numbers in the class. Entries hold the numbers of their edges until the halves are numbered.
    """
    for s in prange(half_start.size - 1):
        own, bits, ranks = np.uint32(first + s), word[s], before[s]
        for h in range(half_start[s], half_start[s + 1]):
            u, v = low[listed[h]], high[listed[h]]
            if class_of(v, vertices, shards) == own:
                length[row_of(bits, ranks, u)] += 1
            if class_of(u, vertices, shards) == own:
                length[row_of(bits, ranks, v)] += 1
        q = entry_start[s]
        for row in range(row_start[s], row_start[s + 1]):
            begin[row] = q
            q += length[row]
            length[row] = 0
        for i in range(half_start[s + 1] - half_start[s]):
            e = listed[half_start[s + 1] - 1 - i]
            u, v = low[e], high[e]
            if class_of(v, vertices, shards) == own:
                row = row_of(bits, ranks, u)
                neighbour[begin[row] + length[row]] = index_of(v, vertices, shards)
                half[begin[row] + length[row]] = e
                length[row] += 1
            if class_of(u, vertices, shards) == own:
                row = row_of(bits, ranks, v)
                neighbour[begin[row] + length[row]] = index_of(u, vertices, shards)
                half[begin[row] + length[row]] = e
                length[row] += 1
        h = half_start[s]
        for q in range(entry_start[s], entry_start[s + 1]):
            e = half[q]
            here_low = class_of(low[e], vertices, shards) == own
            here_high = class_of(high[e], vertices, shards) == own
            if here_low and here_high and at_low[e] != 0:  # the second entry of the edge
                half[q] = np.uint32(half_start[s] + np.int64(at_low[e]) - 1)
                continue
            number = np.uint32(h - half_start[s] + 1)
            if here_low:
                at_low[e] = number
            if here_high:
                at_high[e] = number
            half[q] = h
            listed[h] = e
            h += 1


def build_rows(
    low: NDArray[np.uint32], high: NDArray[np.uint32], cut: Cut, first: int, shards: int, room: Room = MEMORY
) -> tuple[ShardRows, NDArray[np.uint32]]:
    """Build the rows of `shards` shards from class `first` on.

    `low`, `high` [edges] uint32 are all edges with an end of these classes, and may hold others; sorted by (low, high),
    each once, low < high, vertices numbered by ascending degree. Gives the rows, and [2, edges] the number of the half
    of each edge, within its shard and plus one, in the shard of the low and in that of the high endpoint; 0 where the
    shard is not of this group. Raises ValueError for more halves than can be numbered.
    """
    total, own = np.uint32(cut.vertices), np.uint32(cut.shards)
    parts = max(1, min(shards, len(low)))
    counted = np.zeros((parts, shards + 1), np.int64)
    _count_listed(low, high, total, own, np.uint32(first), counted)
    half_start = np.cumsum(counted.sum(axis=0))
    if half_start[-1] > MOST_HALVES:
        raise ValueError(f"{half_start[-1]:,} halves of edges in one group of shards, {MOST_HALVES:,} at most")
    position = half_start[:-1] + np.cumsum(counted[:, 1:], axis=0) - counted[:, 1:]
    listed = room.array(int(half_start[-1]), np.uint32)
    _list_edges(low, high, total, own, np.uint32(first), position, listed)
    word = np.zeros((shards, cut.vertices // 64 + 1), np.uint64)
    before = np.empty(word.shape, np.int64)
    rows, entries = np.empty(shards, np.int64), np.empty(shards, np.int64)
    _mark_rows(low, high, total, own, first, half_start, listed, word, before, rows, entries)
    row_start, entry_start = np.append(0, np.cumsum(rows)), np.append(0, np.cumsum(entries))
    before += row_start[:-1, None]
    begin, length = np.empty(row_start[-1], np.int64), np.zeros(row_start[-1], np.int32)
    neighbour, half = (room.array(int(entry_start[-1]), np.uint32) for _ in range(2))
    sides = room.array(2 * len(low), np.uint32).reshape(2, -1)
    sides[:] = 0
    places = (half_start, word, before, row_start, entry_start, begin, length, neighbour, half, listed, *sides)
    _fill_rows(low, high, total, own, first, *places)
    return ShardRows(cut, first, word, before, begin, length, row_start, neighbour, half, half_start, listed), sides
