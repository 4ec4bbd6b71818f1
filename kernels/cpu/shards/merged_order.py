"""Merging sorted runs of edges into rows, and reordering what belongs to the edges accordingly."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import LongArray
from ...runtime.cache import cached_njit
from ...runtime.sizes import SizedArrays
from .rows import row_of

Ranks = NDArray[np.uint32]

SHORT = 24
"""A row of at most this many entries is sorted by insertion."""
RANGES = 8
"""Ranges of vertices per thread when runs are merged."""
CHUNK = 2**16
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
    """Write the keys: the high endpoint in the high half, the index of the edge in the runs in the low half."""
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
    """Merge runs of edges, each sorted by (low, high), no edge twice; run i is [runs[i], runs[i + 1]).

    `vertices` is the number of vertices of the graph. Takes 8 bytes per edge beside its arguments and its result.
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


@cached_njit(parallel=True)
def _arrange(origin, owned, number, low, support, row, runs, senders, chunk, start, low_to, support_to, bucket, row_to):
    for c in prange(start.size - 1):
        to = start[c]
        for i in range(c * chunk, min((c + 1) * chunk, origin.size)):
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
    counts = np.zeros(-(-len(origin) // CHUNK), np.int64)
    _count_owned(origin, owned, CHUNK, counts)
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    low_to, support_to = np.empty_like(low), np.empty_like(support)
    bucket, row_to = np.empty(len(row), np.int16), np.empty(len(row), np.int32)
    fixed = (origin, owned, number, low, support, row, runs, senders)
    _arrange(*fixed, CHUNK, start, low_to, support_to, bucket, row_to)
    return low_to, support_to, bucket, row_to
