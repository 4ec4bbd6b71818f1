"""Shortest paths from one vertex by delta-stepping, and the predecessors on them.

Meyer and Sanders, "Δ-stepping: a parallelizable shortest path algorithm", J. Algorithms 49(1), 2003. In a superstep
those vertices send whose distance was lowered in the superstep before and is in the window. They send the distance that
they have at the start of the superstep. So the supersteps do not depend on the order in which threads work.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import InRows, LongArray
from ...runtime.cache import cached_njit
from ..arrays.intrinsics import compare_swap, fetch_add, places
from .frontiers import KEPT, LONG_ROW, LONG_ROWS, PARALLEL_ENTRIES, add_kept, piece, share_of

SHORT = 2**13
"""One thread is faster than several for at most this many vertices, since threads take time to start."""
_1 = np.uint32(1)
_TAKEN, _NEXT, _LATER, _LONG = 0, 8, 16, 24
"""Elements of the counters, each on a cache line of its own."""


@cached_njit(parallel=True)
def _clear(lanes, distance, added, waits):
    count = distance.size
    for lane in prange(lanes):
        for v in range(lane * count // lanes, (lane + 1) * count // lanes):
            distance[v] = np.inf
            added[v] = 0
            waits[v] = 0


class Search(NamedTuple):
    """The targets of each vertex, and the state of a search."""

    offsets: NDArray[np.uint64]
    target: NDArray[np.uint32]
    weight: NDArray[np.float64]
    distance: NDArray[np.float64]
    """[vertices]"""
    added: NDArray[np.int32]
    """[vertices] the last superstep in which a vertex was listed for the next superstep."""
    waits: NDArray[np.uint8]
    """[vertices] whether a vertex waits for a later window."""
    sent: NDArray[np.float64]
    """[vertices] the distance that each listed vertex sends."""
    counters: LongArray


class Sending(NamedTuple):
    """Listed vertices that send the distances `sent`. Each row is cut into `pieces`."""

    listed: NDArray[np.uint32]
    sent: NDArray[np.float64]
    size: int
    pieces: np.int64
    step: np.int32
    bound: float
    """The end of the window."""
    aside: NDArray[np.uint32]
    """Vertices with long rows are listed here instead, as long as there is space. `aside_sent` has what they send."""
    aside_sent: NDArray[np.float64]


@cached_njit
def _take(first, last, listed, search):
    """Store the distances that listed vertices send. Returns the number of entries of these vertices."""
    offsets, distance, sent = search.offsets, search.distance, search.sent
    count = np.uint64(0)
    for i in range(first, last):
        v = listed[i]
        sent[i] = distance[v]
        count += offsets[v + _1] - offsets[v]
    return count


@cached_njit(parallel=True)
def _take_all(lanes, size, listed, search):
    entries = np.empty(lanes, np.uint64)
    for lane in prange(lanes):
        entries[lane] = _take(np.int64(lane) * size // lanes, (np.int64(lane) + 1) * size // lanes, listed, search)
    return entries.sum()


@cached_njit
def _relax(sending, following, later, search, share):
    """Lower the distances of the targets of listed vertices, until all vertices are taken.

    Lists targets whose new distance is below the bound in `following`, and other targets that do not wait yet in
    `later`. See `breadth_first._push` for pieces, shares and long rows.
    """
    listed, sent, size, pieces, step, bound, aside, aside_sent = sending
    offsets, target, weight = search.offsets, search.target, search.weight
    distance, added, waits, counters = search.distance, search.added, search.waits, search.counters
    kept, held = np.empty(KEPT, np.uint32), 0
    apart, waiting = np.empty(KEPT, np.uint32), 0
    while True:
        taken = fetch_add(counters, _TAKEN, share)
        if taken >= size * pieces:
            break
        for at in range(taken, min(taken + share, size * pieces)):
            i = at // pieces
            u, near = listed[i], sent[i]
            first, end = piece(offsets[u], offsets[u + _1], at - i * pieces, pieces)
            if end - first > LONG_ROW and aside.size:
                slot = fetch_add(counters, _LONG, 1)
                if slot < aside.size:
                    aside[slot], aside_sent[slot] = u, near
                    continue
            for q in range(first, end):
                v = target[q]
                value = near + weight[q]
                before = distance[v]
                while value < before:
                    if not compare_swap(distance, v, before, value):
                        before = distance[v]
                        continue
                    if value < bound:
                        last = added[v]
                        if last != step and compare_swap(added, v, last, step):
                            if held == KEPT:
                                add_kept(kept, held, counters, _NEXT, following)
                                held = 0
                            kept[held] = v
                            held += 1
                    elif waits[v] == 0 and compare_swap(waits, v, np.uint8(0), np.uint8(1)):
                        if waiting == KEPT:
                            add_kept(apart, waiting, counters, _LATER, later)
                            waiting = 0
                        apart[waiting] = v
                        waiting += 1
                    break
    add_kept(kept, held, counters, _NEXT, following)
    add_kept(apart, waiting, counters, _LATER, later)


@cached_njit(parallel=True)
def _relax_all(lanes, sending, following, later, search):
    share = share_of(sending.size * sending.pieces, lanes)
    for _lane in prange(lanes):
        _relax(sending, following, later, search, share)


@cached_njit
def _least(first, last, bound, later, search):
    """The smallest distance of vertices that still wait. Vertices in `later` below the bound have sent since."""
    distance, found = search.distance, np.inf
    for i in range(first, last):
        one = distance[later[i]]
        if one >= bound:
            found = min(found, one)
    return found


@cached_njit(parallel=True)
def _least_of_all(lanes, size, bound, later, search):
    least = np.empty(lanes)
    for lane in prange(lanes):
        first, last = np.int64(lane) * size // lanes, (np.int64(lane) + 1) * size // lanes
        least[lane] = _least(first, last, bound, later, search)
    return least.min()


@cached_njit
def _open(first, last, window, lists, search):
    """List the waiting vertices below the new bound, and the waiting vertices that remain.

    `window` is (old bound, new bound); `lists` are the lists of waiting, following and remaining vertices.
    """
    before, bound = window
    later, following, remaining = lists
    distance, waits, counters = search.distance, search.waits, search.counters
    kept, held = np.empty(KEPT, np.uint32), 0
    apart, waiting = np.empty(KEPT, np.uint32), 0
    for i in range(first, last):
        v = later[i]
        one = distance[v]
        if one >= bound:
            if waiting == KEPT:
                add_kept(apart, waiting, counters, _LATER, remaining)
                waiting = 0
            apart[waiting] = v
            waiting += 1
            continue
        waits[v] = 0
        if one >= before:
            if held == KEPT:
                add_kept(kept, held, counters, _NEXT, following)
                held = 0
            kept[held] = v
            held += 1
    add_kept(kept, held, counters, _NEXT, following)
    add_kept(apart, waiting, counters, _LATER, remaining)


@cached_njit(parallel=True)
def _open_all(lanes, size, window, lists, search):
    for lane in prange(lanes):
        first, last = np.int64(lane) * size // lanes, (np.int64(lane) + 1) * size // lanes
        _open(first, last, window, lists, search)


@cached_njit
def _bound(least, width):
    if np.isinf(width):
        return width
    bound = (math.floor(least / width) + 1) * width
    return bound if bound > least else np.nextafter(least, np.inf)


@cached_njit
def _send(lanes, entries, sending, following, later, search):
    """Run a superstep. Several threads share many entries, and then share each long row."""
    counters = search.counters
    counters[_TAKEN] = counters[_NEXT] = counters[_LONG] = 0
    listed, sent, size, _, step, bound, aside, aside_sent = sending
    none = aside[:0]
    if lanes == 1 or entries <= PARALLEL_ENTRIES:
        alone = Sending(listed, sent, size, np.int64(1), step, bound, none, aside_sent)
        _relax(alone, following, later, search, size)
        return
    _relax_all(lanes, sending, following, later, search)
    long = min(counters[_LONG], aside.size)
    if long:
        counters[_TAKEN] = 0
        shared = Sending(aside, aside_sent, long, lanes, step, bound, none, aside_sent)
        _relax_all(lanes, shared, following, later, search)


@cached_njit
def _search(lanes, start, width, lists, search):
    """Run all supersteps. Returns their number, and the number of entries read. One thread processes short lists."""
    distance, sent, counters = search.distance, search.sent, search.counters
    _clear(lanes, distance, search.added, search.waits)
    listed, following, later, remaining, aside = lists
    aside_sent = np.empty(LONG_ROWS)
    distance[start], listed[0] = 0.0, start
    bound, steps, read, size = _bound(0.0, width), np.int32(0), np.uint64(0), 1
    while size:
        steps += np.int32(1)
        ahead = _take_all(lanes, size, listed, search) if size > SHORT else _take(0, size, listed, search)
        read += ahead
        sending = Sending(listed, sent, size, np.int64(1), steps, bound, aside, aside_sent)
        _send(lanes, ahead, sending, following, later, search)
        listed, following, size, waiting = following, listed, counters[_NEXT], counters[_LATER]
        if size == 0 and waiting:
            if waiting > SHORT:
                nearest = _least_of_all(lanes, waiting, bound, later, search)
            else:
                nearest = _least(0, waiting, bound, later, search)
            if nearest == np.inf:
                break
            window = (bound, _bound(nearest, width))
            bound = window[1]
            counters[_NEXT] = counters[_LATER] = 0
            if waiting > SHORT:
                _open_all(lanes, waiting, window, (later, listed, remaining), search)
            else:
                _open(0, waiting, window, (later, listed, remaining), search)
            later, remaining, size = remaining, later, counters[_NEXT]
    return steps, read


def next_bound(least: float, width: float) -> float:
    """The end of the window of this width that contains `least`."""
    return float(_bound(least, width))


def distances(out: InRows, start: int, width: float | None) -> tuple[NDArray[np.float64], int, int]:
    """(distances, supersteps, entries read) from the vertex `start`.

    `out` [vertices] has the targets of each vertex with weights of at least 0. `width` is the width of a window; None
    means a single window. The distance of a vertex to which no path leads is infinite.
    """
    count, lanes = out.rows, get_num_threads()
    search = Search(
        offsets=places(out.offsets),
        target=places(out.source),
        weight=out.weights,
        distance=np.empty(count),
        added=np.empty(count, np.int32),
        waits=np.empty(count, np.uint8),
        sent=np.empty(count),
        counters=np.zeros(32, np.int64),
    )
    lists = (*(np.empty(count, np.uint32) for _ in range(4)), np.empty(LONG_ROWS, np.uint32))
    steps, read = _search(lanes, start, math.inf if width is None else width, lists, search)
    return search.distance, int(steps), int(read)


_SHARE = 1024
"""Vertices that a thread takes at a time."""


@cached_njit(parallel=True)
def _precede(lanes, rows, distance, start, before, counters):
    """Find for each vertex the first source whose distance plus the weight of the edge is the vertex's distance. If
    this source is not nearer than the vertex, the vertex gets none. Returns the number of vertices that have a path but
    get no source, and the number of entries read.
    """
    offsets, source, weight = rows
    equal, entries = np.empty(lanes, np.int64), np.empty(lanes, np.uint64)
    for lane in prange(lanes):
        count, read = 0, np.uint64(0)
        while True:
            first = fetch_add(counters, 0, _SHARE)
            if first >= distance.size:
                break
            for v in range(first, min(first + _SHARE, distance.size)):
                far, found = distance[v], np.int64(-1)
                if v == start:
                    found = np.int64(v)
                elif far < np.inf:
                    for q in range(offsets[v], offsets[v + 1]):
                        s = source[q]
                        read += np.uint64(1)
                        if distance[s] + weight[q] == far:
                            if distance[s] < far:
                                found = np.int64(s)
                            break
                    if found < 0:
                        count += 1
                before[v] = found
        equal[lane], entries[lane] = count, read
    return equal.sum(), entries.sum()


def predecessors(rows: InRows, distance: NDArray[np.float64], start: int) -> tuple[LongArray, int, int]:
    """(the smallest predecessor of each vertex, how many were not found, entries read).

    `rows` have the sources of each vertex, ascending, with weights. The predecessor of `start` is `start`. It is -1 for
    a vertex to which no path leads. It is also -1, and not found, if the smallest predecessor is as far as the vertex.
    """
    before, counters = np.empty(rows.rows, np.int64), np.zeros(1, np.int64)
    lists = places(rows.offsets), places(rows.source), rows.weights
    equal, entries = _precede(get_num_threads(), lists, distance, start, before, counters)
    return before, int(equal), int(entries)
