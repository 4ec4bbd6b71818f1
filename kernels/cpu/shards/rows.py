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

NO_ROW = np.int64(-1)
"""What `row_of` gives for a vertex without neighbours of the shard's class."""
NO_HALF = np.uint32(2**32 - 1)
"""In `EdgeHalves`: the shard is not of this group."""


@intrinsic
def _popcount(typing_context: Any, word: Any) -> Any:
    """Bits set in a uint64."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), codegen


@dataclass(frozen=True)
class ShardRows(Held):
    """Rows of the shards `first` to `first + shards - 1`, one shard behind the other.

    Only vertices with a neighbour in the class have a row. A bitmap over all vertices says which, and its prefix sums
    give the row's number: 1.5 bits a vertex and shard instead of 96. An edge inside a class has two entries and one
    half, any other edge has one entry and one half in each of its two shards.
    """

    cut: Cut
    first: int
    """The class of the group's first shard."""
    word: NDArray[np.uint64]
    """[shards, ceil(vertices / 64)] bit v % 64 of word v // 64 is set where vertex v has a row."""
    before: LongArray
    """[shards, ceil(vertices / 64)] rows before those of the word."""
    begin: LongArray
    """[rows] where each row starts."""
    length: NDArray[np.int32]
    """[rows] entries in each row."""
    row_start: LongArray
    """[shards + 1] first row of each shard."""
    neighbour: NDArray[np.uint32]
    """[entries] number of the neighbour within the shard's class, ascending within a row."""
    half: NDArray[np.uint32]
    """[entries] the half of the entry's edge."""
    half_start: LongArray
    """[shards + 1] first half of each shard."""
    low: NDArray[np.uint32]
    """[halves] the endpoint of lower degree."""
    high: NDArray[np.uint32]
    """[halves] the other endpoint."""

    @property
    def shards(self) -> int:
        """Shards of the group."""
        return len(self.half_start) - 1

    @property
    def widest(self) -> int:
        """Entries of the longest row."""
        return int(self.length.max(initial=0))


@dataclass(frozen=True)
class EdgeHalves:
    """Where a group has the halves of the edges that its rows were built from."""

    at_low: NDArray[np.uint32]
    """[edges] the half in the shard of the low endpoint; NO_HALF where that is not of the group."""
    at_high: NDArray[np.uint32]
    """[edges] the half in the shard of the high endpoint; the same one for an edge inside a class."""


@njit(cache=True, nogil=True, inline="always")
def row_of(word, before, vertex):
    """The row of a vertex in one shard, NO_ROW if it has none."""
    bits = word[vertex >> np.uint32(6)]
    bit = np.uint64(vertex & np.uint32(63))
    if (bits >> bit) & np.uint64(1) == np.uint64(0):
        return NO_ROW
    return before[vertex >> np.uint32(6)] + np.int64(_popcount(bits & ((np.uint64(1) << bit) - np.uint64(1))))


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
def _mark_rows(low, high, vertices, shards, first, word):
    """Set the bit of each vertex that has a row; each shard's thread reads all edges."""
    for s in prange(word.shape[0]):
        own, bits = np.uint32(first + s), word[s]
        for e in range(low.size):
            if class_of(high[e], vertices, shards) == own:
                bits[low[e] >> np.uint32(6)] |= np.uint64(1) << np.uint64(low[e] & np.uint32(63))
            if class_of(low[e], vertices, shards) == own:
                bits[high[e] >> np.uint32(6)] |= np.uint64(1) << np.uint64(high[e] & np.uint32(63))


@njit(parallel=True, cache=True, nogil=True)
def _rank_rows(word, before, rows):
    for s in prange(word.shape[0]):
        total = np.int64(0)
        for w in range(word.shape[1]):
            before[s, w] = total
            total += np.int64(_popcount(word[s, w]))
        rows[s] = total


@njit(parallel=True, cache=True, nogil=True)
def _measure_rows(low, high, vertices, shards, first, word, before, length):
    for s in prange(word.shape[0]):
        own = np.uint32(first + s)
        for e in range(low.size):
            if class_of(high[e], vertices, shards) == own:
                length[row_of(word[s], before[s], low[e])] += 1
            if class_of(low[e], vertices, shards) == own:
                length[row_of(word[s], before[s], high[e])] += 1


@njit(parallel=True, cache=True, nogil=True)
def _fill_rows(low, high, vertices, shards, first, word, before, position, neighbour, half):
    """Entries hold the number of their edge for now. Edges come sorted by (low, high) and are read backwards.

    A row gets its neighbours in descending order of their vertex numbers, which are ascending numbers in the class.
    """
    for s in prange(word.shape[0]):
        own = np.uint32(first + s)
        for e in range(low.size - 1, -1, -1):
            if class_of(high[e], vertices, shards) == own:
                row = row_of(word[s], before[s], low[e])
                neighbour[position[row]] = index_of(high[e], vertices, shards)
                half[position[row]] = e
                position[row] += 1
            if class_of(low[e], vertices, shards) == own:
                row = row_of(word[s], before[s], high[e])
                neighbour[position[row]] = index_of(low[e], vertices, shards)
                half[position[row]] = e
                position[row] += 1


@njit(parallel=True, cache=True, nogil=True)
def _count_halves(low, high, vertices, shards, first, halves):
    for s in prange(halves.size):
        own, total = np.uint32(first + s), np.int64(0)
        for e in range(low.size):
            total += (class_of(high[e], vertices, shards) == own) | (class_of(low[e], vertices, shards) == own)
        halves[s] = total


@njit(parallel=True, cache=True, nogil=True)
def _number_halves(
    low, high, vertices, shards, first, entry_start, half_start, half, at_low, at_high, half_low, half_high
):
    """Number the halves in the order of the entries, so that the counts beside a row lie together."""
    for s in prange(half_start.size - 1):
        own, h = np.uint32(first + s), half_start[s]
        for q in range(entry_start[s], entry_start[s + 1]):
            e = half[q]
            here_low = class_of(low[e], vertices, shards) == own
            here_high = class_of(high[e], vertices, shards) == own
            if here_low and here_high and at_low[e] != NO_HALF:
                half[q] = at_low[e]
                continue
            if here_low:
                at_low[e] = h
            if here_high:
                at_high[e] = h
            half[q] = h
            half_low[h] = low[e]
            half_high[h] = high[e]
            h += 1


def build_rows(
    low: NDArray[np.uint32], high: NDArray[np.uint32], cut: Cut, first: int, shards: int
) -> tuple[ShardRows, EdgeHalves]:
    """Build the rows of `shards` shards from class `first` on.

    `low`, `high` [edges] uint32 are all edges with an end of these classes, and may hold others; sorted by (low, high),
    each once, low < high, vertices numbered by ascending degree. Reads all edges five times for each shard.
    """
    total, own = np.uint32(cut.vertices), np.uint32(cut.shards)
    word = np.zeros((shards, cut.vertices // 64 + 1), np.uint64)
    _mark_rows(low, high, total, own, first, word)
    before = np.empty(word.shape, np.int64)
    counted, halves = np.empty(shards, np.int64), np.empty(shards, np.int64)
    _rank_rows(word, before, counted)
    row_start = np.concatenate([[0], np.cumsum(counted)])
    before += row_start[:-1, None]
    length = np.zeros(row_start[-1], np.int32)
    _measure_rows(low, high, total, own, first, word, before, length)
    stop = np.cumsum(length, dtype=np.int64)
    begin = stop - length
    entry_start = np.concatenate([[0], stop])[row_start]
    neighbour, half = np.empty(entry_start[-1], np.uint32), np.empty(entry_start[-1], np.uint32)
    _fill_rows(low, high, total, own, first, word, before, begin.copy(), neighbour, half)
    _count_halves(low, high, total, own, first, halves)
    half_start = np.concatenate([[0], np.cumsum(halves)])
    ends = np.empty((2, half_start[-1]), np.uint32)
    at_low, at_high = np.full(len(low), NO_HALF, np.uint32), np.full(len(low), NO_HALF, np.uint32)
    _number_halves(low, high, total, own, first, entry_start, half_start, half, at_low, at_high, *ends)
    rows = ShardRows(cut, first, word, before, begin, length, row_start, neighbour, half, half_start, *ends)
    return rows, EdgeHalves(at_low, at_high)


@njit(parallel=True, cache=True, nogil=True)
def _pair_halves(low, high, vertices, shards, first, half_start, at_low, at_high, start, listed):
    """List the halves of edges between two classes, by shard here and class there, in the order of the edges."""
    for s in prange(half_start.size - 1):
        own, begins = np.uint32(first + s), start[s]
        for e in range(low.size):
            at, to = class_of(low[e], vertices, shards), class_of(high[e], vertices, shards)
            if at != to and (at == own or to == own):
                begins[(to if at == own else at) + 1] += 1
        for t in range(shards):
            begins[t + 1] += begins[t]
        base = half_start[s]
        for e in range(low.size):
            at, to = class_of(low[e], vertices, shards), class_of(high[e], vertices, shards)
            if at != to and (at == own or to == own):
                t = to if at == own else at
                listed[base + begins[t]] = at_low[e] if at == own else at_high[e]
                begins[t] += 1
        for t in range(shards, 0, -1):
            begins[t] = begins[t - 1]
        begins[0] = 0


@dataclass(frozen=True)
class Pairs:
    """The halves of edges between two classes, each list in the order that the other shard has it in, too."""

    start: LongArray
    """[shards, all shards + 1] where the list for each class starts, counted from `half_start`."""
    half: NDArray[np.uint32]
    """[halves]"""


def pair_halves(low: NDArray[np.uint32], high: NDArray[np.uint32], rows: ShardRows, halves: EdgeHalves) -> Pairs:
    """List the halves that have a partner in another shard; arguments are those and the results of `build_rows`."""
    start = np.zeros((rows.shards, rows.cut.shards + 1), np.int64)
    listed = np.empty(len(rows.low), np.uint32)
    total, own = np.uint32(rows.cut.vertices), np.uint32(rows.cut.shards)
    _pair_halves(low, high, total, own, rows.first, rows.half_start, halves.at_low, halves.at_high, start, listed)
    return Pairs(start, listed)
