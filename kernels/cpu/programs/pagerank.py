"""PageRank: arithmetic over all vertices, and supersteps with uniform restarts in one pass; see `kernels.pagerank`."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import InRows, LongArray, RankState
from ...runtime.cache import cached_njit
from ..arrays.intrinsics import fetch_add, places
from .chunks import chunk_starts, even_chunks, threads_for
from .reductions import LONG, SEGMENT, segment_sum, segments_sum

Floats: TypeAlias = NDArray[np.float64]


@cached_njit(parallel=True)
def _shares(cuts, rank, degree, shares):
    for chunk in prange(cuts.size - 1):
        for v in range(cuts[chunk], cuts[chunk + 1]):
            shares[v] = rank[v] / degree[v]


@cached_njit(parallel=True)
def _next(cuts, got, damping, restarts, degree, rank, moved, shares):
    for chunk in prange(cuts.size - 1):
        for v in range(cuts[chunk], cuts[chunk + 1]):
            after = damping * got[v] + restarts
            moved[v] = abs(after - rank[v])
            rank[v] = after
            shares[v] = after / degree[v]


def rank_shares(ranks: RankState) -> None:
    """The twin on the CPU; see `kernels.programs`."""
    with threads_for(len(ranks.rank)):
        _shares(even_chunks(len(ranks.rank)), ranks.rank, ranks.degree, ranks.shares)


def next_ranks(got: Floats, damping: float, restarts: float, ranks: RankState) -> None:
    """The twin on the CPU; see `kernels.programs`."""
    with threads_for(len(got)):
        arrays = ranks.degree, ranks.rank, ranks.moved, ranks.shares
        _next(even_chunks(len(got)), got, damping, restarts, *arrays)


_CHUNKS, _PIECES = 0, 8
"""Elements of the counters, each on a cache line of its own."""
_STEP, _MOST, _1 = np.uint64(SEGMENT), np.uint64(LONG), np.uint64(1)


class Rows(NamedTuple):
    """The rows of sources in chunks, and the long rows in pieces."""

    offsets: NDArray[np.uint64]
    source: NDArray[np.uint32]
    degree: NDArray[np.uint32]
    """[vertices] numbers of out-edges, at least 1."""
    cuts: LongArray
    """[chunks + 1] where each chunk starts."""
    long: LongArray
    """Rows with more than LONG entries."""
    ends: LongArray
    """The number of pieces of the long rows up to each long row, inclusive."""
    first: NDArray[np.uint64]
    """[pieces] the first entry."""
    stop: NDArray[np.uint64]
    """[pieces] the entry after the last one."""
    partial: Floats
    """[pieces] the sum of each piece."""
    counters: LongArray


class Ranks(NamedTuple):
    """Ranks and ranks over degrees, before and after a superstep. All are [vertices]."""

    shares_before: Floats
    shares: Floats
    rank: Floats
    following: Floats


@cached_njit
def _place(v, got, damping, restarts, degree, rank, following, shares):
    """Write the next rank of a vertex, and its rank over its degree. Returns how much the rank changed."""
    before, after = rank[v], damping * got + restarts
    following[v] = after
    shares[v] = after / degree[v]
    return abs(after - before)


@cached_njit
def _take(rows, ranks, damping, restarts):
    """Sum pieces of long rows, and compute ranks of chunks of other rows, until all are taken."""
    offsets, source, degree, cuts, _, _, first, stop, partial, counters = rows
    before, shares, rank, following = ranks
    while True:
        at = fetch_add(counters, _PIECES, 1)
        if at >= partial.size:
            break
        partial[at] = segments_sum(source, before, first[at], stop[at])
    moved = 0.0
    while True:
        chunk = fetch_add(counters, _CHUNKS, 1)
        if chunk >= cuts.size - 1:
            return moved
        for v in range(cuts[chunk], cuts[chunk + 1]):
            start, end = offsets[v], offsets[v + 1]
            if end - start <= _STEP:
                got = segment_sum(source, before, start, end)
            elif end - start <= _MOST:
                got = segments_sum(source, before, start, end)
            else:
                continue
            moved += _place(v, got, damping, restarts, degree, rank, following, shares)


@cached_njit(parallel=True)
def _take_all(lanes, rows, ranks, damping, restarts):
    changes = np.empty(lanes)
    for lane in prange(lanes):
        changes[lane] = _take(rows, ranks, damping, restarts)
    return changes.sum()


@cached_njit
def _superstep(lanes, rows, ranks, damping, restarts):
    """Compute ranks and shares from the shares before. Returns the total change of the ranks, rounded."""
    long, ends, partial, degree = rows.long, rows.ends, rows.partial, rows.degree
    rows.counters[_CHUNKS] = rows.counters[_PIECES] = 0
    moved, piece = _take_all(lanes, rows, ranks, damping, restarts), 0
    for i in range(long.size):
        got = 0.0
        while piece < ends[i]:
            got += partial[piece]
            piece += 1
        moved += _place(long[i], got, damping, restarts, degree, ranks.rank, ranks.following, ranks.shares)
    return moved


def _pieces(offsets: LongArray) -> tuple[LongArray, LongArray, LongArray, LongArray]:
    """The rows with more than LONG entries, the number of pieces up to each of them, inclusive, and the start and stop
    of each piece of SEGMENT entries.
    """
    long = np.flatnonzero(np.diff(offsets) > LONG)
    counts = -(-(offsets[long + 1] - offsets[long]) // SEGMENT)
    ends = np.cumsum(counts)
    within = np.arange(counts.sum()) - np.repeat(ends - counts, counts)
    first = np.repeat(offsets[long], counts) + within * SEGMENT
    return long, ends, first, np.minimum(first + SEGMENT, np.repeat(offsets[long + 1], counts))


class Supersteps:
    """The twin on the CPU; see `kernels.pagerank.Supersteps`."""

    def __init__(self, rows: InRows, degree: LongArray) -> None:
        count = rows.rows
        divisor = np.maximum(degree, 1).astype(np.uint32)
        self.rank, self.earlier = np.full(count, 1 / count), np.empty(count)
        self._before, self._shares = self.rank / divisor, np.empty(count)
        self._entries = len(rows)
        long, ends, first, stop = _pieces(rows.offsets)
        with threads_for(self._entries):
            cuts = chunk_starts(rows.offsets, None)
        self._rows = Rows(
            offsets=places(rows.offsets),
            source=places(rows.source),
            degree=divisor,
            cuts=cuts,
            long=long,
            ends=ends,
            first=places(first),
            stop=places(stop),
            partial=np.empty(len(first)),
            counters=np.zeros(16, np.int64),
        )

    def advance(self, damping: float, restarts: float, keep: bool) -> float:
        """Run a superstep. Returns the total change of the ranks, rounded; see `kernels.pagerank.Supersteps`."""
        after = self.earlier if keep else self.rank
        with threads_for(self._entries):
            ranks = Ranks(self._before, self._shares, self.rank, after)
            moved = _superstep(get_num_threads(), self._rows, ranks, damping, restarts)
        if keep:
            self.rank, self.earlier = after, self.rank
        self._before, self._shares = self._shares, self._before
        return float(moved)
