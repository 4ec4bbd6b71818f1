"""PageRank with uniform restarts, a superstep in one pass.

The sums over rows and the arithmetic are those of supersteps, in the same order. Only the total change of ranks is
summed with rounding, and without rounding where the end depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import LongArray
from ...in_rows import InRows
from ...runtime.cache import cached_njit
from ..arrays.atomics import fetch_add
from ..arrays.places import places
from ..programs.chunks import chunk_starts, threads_for
from ..programs.sums import LONG, SEGMENT, segment_sum, segments_sum

Floats: TypeAlias = NDArray[np.float64]

_CHUNKS, _PIECES = 0, 8
"""Elements of the counters, each on a cache line of its own."""
NEAR = 16
"""Earlier ranks are kept once the change is less than this many times the tolerance."""
_STEP, _MOST, _1 = np.uint64(SEGMENT), np.uint64(LONG), np.uint64(1)


@cached_njit
def _place(v, got, damping, restarts, degree, rank, following, shares):
    """Write the next rank of a vertex, and its rank over its degree. Returns how much the rank changed."""
    before, after = rank[v], damping * got + restarts
    following[v] = after
    shares[v] = after / degree[v]
    return abs(after - before)


@cached_njit
def _take(
    offsets, source, cuts, first, stop, partial, counters, damping, restarts, degree, before, shares, rank, following
):
    """Sum pieces of long rows, and compute ranks of chunks of other rows, until all are taken."""
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
def _superstep(
    lanes,
    offsets,
    source,
    cuts,
    long,
    ends,
    first,
    stop,
    partial,
    counters,
    changes,
    damping,
    restarts,
    degree,
    before,
    shares,
    rank,
    following,
):
    """Compute `following` and `shares` from `rank` and the shares `before`. Returns the total change, rounded."""
    counters[_CHUNKS] = counters[_PIECES] = 0
    for lane in prange(lanes):
        changes[lane] = _take(
            offsets,
            source,
            cuts,
            first,
            stop,
            partial,
            counters,
            damping,
            restarts,
            degree,
            before,
            shares,
            rank,
            following,
        )
    moved, piece = changes.sum(), 0
    for i in range(long.size):
        got = 0.0
        while piece < ends[i]:
            got += partial[piece]
            piece += 1
        moved += _place(long[i], got, damping, restarts, degree, rank, following, shares)
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


def ranks(
    rows: InRows,
    degree: LongArray,
    damping: float,
    steps: int | None,
    tolerance: float,
    total: Callable[[Floats], float],
    keep: bool = False,
) -> tuple[Floats, int, float]:
    """([vertices] ranks, supersteps, the total change in the last one) from equal ranks.

    `rows` and `degree` [vertices] are the in-edges and the numbers of out-edges of all vertices, at least one. Ends
    after `steps` supersteps, or without them once ranks change by less than `tolerance` in total. `total` sums without
    rounding. Ranks are replaced in place until the change is near the tolerance, unless `keep` says to keep the earlier
    ones: the exact change needs both. If the change falls below the tolerance too suddenly, all is done again.
    """
    count = rows.rows
    sinks, divisor = np.flatnonzero(degree == 0), np.maximum(degree, 1).astype(np.uint32)
    rank, earlier = np.full(count, 1 / count), np.empty(count)
    before, shares = rank / divisor, np.empty(count)
    long, ends, first, stop = _pieces(rows.offsets)
    partial, counters = np.empty(len(first)), np.zeros(16, np.int64)
    offsets, source = places(rows.offsets), places(rows.source)
    done, moved, most, kept = 0, float(count), count * 2.0**-52, False
    with threads_for(len(rows)):
        cuts, lanes = chunk_starts(rows.offsets, None), get_num_threads()
        work = offsets, source, cuts, long, ends, places(first), places(stop), partial, counters, np.empty(lanes)
        while done != steps:
            if steps is None and done and moved <= (1 + most) * tolerance:  # the rounded sum may be too large
                if not kept:
                    return ranks(rows, degree, damping, steps, tolerance, total, True)
                moved = total(np.abs(rank - earlier))
                if moved < tolerance:
                    break
            kept = keep or done + 1 == steps or (steps is None and moved < NEAR * tolerance)
            restarts = (1 - damping + damping * (total(rank[sinks]) if len(sinks) else 0.0)) * (1 / count)
            following = earlier if kept else rank
            moved = _superstep(lanes, *work, damping, restarts, divisor, before, shares, rank, following)
            if kept:
                rank, earlier = earlier, rank
            before, shares, done = shares, before, done + 1
    return rank, done, total(np.abs(rank - earlier)) if done else moved
