"""Insertions: the schedule of the last peeling is replayed where it is disturbed.

An added edge *stands* from the start, and falls at its new level. At each level, ascending, an old edge of the level
stands if more of its triangles than the level have only edges that are later in the order, or stand. That is so for
some edges next to standing ones, and then for some next to these. Edges that stand without enough triangles among
those above the level fall then, at its end: the others have a higher level. Other edges fall as scheduled, and only
their counts change.

Why it is exact: edges that fall as scheduled have few enough triangles at their time, whatever stands, and edges that
stand are peeled. The order of peeling makes the search local, as in Zhang and Yu ("Unboundedness and efficiency of
truss maintenance in evolving graphs", SIGMOD 2019). No edge is put back while others are still found to stand, so that
all steps run in parallel: that looked at 3 to 25 % more triangles than one edge after the other (cnr-2000,
uk-2007-05_100000). Neither the answer nor the order depends on the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange

from ...graph import KEY_BITS, Adjacency, LongArray
from ...runtime.cache import cached_njit
from ..arrays.atomics import fetch_add
from .merging import Union
from .standing import (
    FALLING,
    JOINING,
    NEVER,
    STANDS,
    TOUCHED,
    USED,
    announce_some,
    count_some,
    end_some,
    fall_some,
    keep_gains_some,
    list_some,
)

ROOM = 1 << 20
"""Triangles of edges that begin to stand at once, unless one edge may have more."""
ENTRIES = 1 << 20
"""Entries of lists for which there is room at first."""
ALONE = 1 << 13
"""A step over at most this many triangles runs in one thread."""
FEW = 1 << 8
"""A step over the due triangles of at most this many edges runs in one thread."""
CHUNK = 8
"""Edges that a thread takes at a time."""
PART = 1 << 14
"""Edges of one part of a pass over all that stand."""


@cached_njit(parallel=True)
def _list(start, stop, threads, cursor, level, graph, state, own, lists, gains, queue, touched, size, scratch, looked):
    cursor[0] = start
    for thread in prange(threads):
        while True:
            first = fetch_add(cursor, 0, np.int64(CHUNK))
            if first >= stop:
                break
            last = min(first + CHUNK, stop)
            looked[thread] += list_some(
                first, last, thread, level, graph, state, own, lists, gains, queue, touched, size, scratch
            )


@cached_njit(parallel=True)
def _announce(visited, threads, cursor, level, state, own, lists, gains, queue, touched, size):
    cursor[0] = 0
    for _ in prange(threads):
        while True:
            first = fetch_add(cursor, 0, np.int64(CHUNK))
            if first >= visited.size:
                break
            last = min(first + CHUNK, visited.size)
            announce_some(first, last, visited, level, state, own, lists, gains, queue, touched, size)


@cached_njit(parallel=True)
def _settle(visited, start, stop, threads, cursor, level, state, own, lists, gains):
    """`end_some` for the visited places, and `count_some` for those from `start` on."""
    cursor[:] = 0
    for _ in prange(threads):
        while True:
            first = fetch_add(cursor, 0, np.int64(CHUNK))
            if first >= visited.size:
                break
            end_some(first, min(first + CHUNK, visited.size), visited, level, start, state, own, lists)
        while True:
            first = start + fetch_add(cursor, 1, np.int64(CHUNK))
            if first >= stop:
                break
            count_some(first, min(first + CHUNK, stop), level, state, own, lists, gains)


@cached_njit(parallel=True)
def _keep_gains(touched, state, gains):
    for part in prange((touched.size + PART - 1) // PART):
        keep_gains_some(part * PART, min((part + 1) * PART, touched.size), touched, state, gains)


@cached_njit(parallel=True)
def _fall(fallen, threads, cursor, level, state, own, lists, queue, size):
    cursor[0] = 0
    for _ in prange(threads):
        while True:
            first = fetch_add(cursor, 0, np.int64(CHUNK))
            if first >= fallen.size:
                break
            fall_some(first, min(first + CHUNK, fallen.size), fallen, level, state, own, lists, queue, size)


@cached_njit
def _least(start, stop, due, left):
    least = NEVER
    for place in range(start, stop):
        least = min(least, due[place], left[place])
    return least


@cached_njit(parallel=True)
def _least_of_parts(stop, due, left, least):
    for part in prange(least.size):
        least[part] = _least(part * PART, min((part + 1) * PART, stop), due, left)


@cached_njit
def _visit(start, stop, level, due, left, before, queue, size):
    """Queue the edges with triangles that are due, and keep all counts of before the level."""
    for place in range(start, stop):
        before[place] = left[place]
        if due[place] == level:
            queue[fetch_add(size, JOINING, np.int64(1))] = place


@cached_njit(parallel=True)
def _visit_parts(parts, stop, level, due, left, before, queue, size):
    for part in prange(parts):
        _visit(part * PART, min((part + 1) * PART, stop), level, due, left, before, queue, size)


@cached_njit
def _weak(start, stop, level, left, queue, size):
    """Queue the edges with too few triangles to have a higher level."""
    for place in range(start, stop):
        if left[place] <= level:
            queue[fetch_add(size, FALLING, np.int64(1))] = place


@cached_njit(parallel=True)
def _weak_parts(parts, stop, level, left, queue, size):
    for part in prange(parts):
        _weak(part * PART, min((part + 1) * PART, stop), level, left, queue, size)


@cached_njit
def _stand(
    edges, n, level, threads, cursor, graph, state, own, lists, gains, queue, touched, size, scratch, looked, most
):
    """Have edges stand at the places from n on, and list their triangles. Returns the lists, which may have grown."""
    low, high, _, length, _, _ = graph
    key, member, old, falls = state[0], own[0], own[1], own[6]
    for i in range(edges.size):
        x = edges[i]
        member[n + i] = x
        old[n + i] = key[x]
        falls[n + i] = False
        key[x] = STANDS | (n + i)
    start = n
    stop = n
    while stop < n + edges.size and looked.sum() <= most:
        room = 0
        while stop < n + edges.size:
            own_room = min(length[low[member[stop]]], length[high[member[stop]]]) + 1
            if stop > start and room + own_room > ROOM:
                break
            room += own_room
            stop += 1
        if size[USED] + room > lists.shape[1]:
            more = np.empty((3, max(2 * lists.shape[1], size[USED] + room)), np.uint32)
            more[:, : size[USED]] = lists[:, : size[USED]]
            lists = more
        if room <= ALONE:
            looked[0] += list_some(
                start, stop, 0, level, graph, state, own, lists, gains, queue, touched, size, scratch
            )
        else:
            _list(
                start,
                stop,
                threads,
                cursor,
                level,
                graph,
                state,
                own,
                lists,
                gains,
                queue,
                touched,
                size,
                scratch,
                looked,
            )
        start = stop
    return lists


@cached_njit
def _replay(added, graph, state, own, lists, gains, queue, touched, size, scratch, level_ends, most):
    """Go on until no edge stands, or more than `most` triangles were looked at. Returns these."""
    member, _, bounds, due, left, before, falls = own
    key = state[0]
    threads = scratch[0].shape[0]
    looked = np.zeros(threads, np.int64)
    cursor = np.zeros(2, np.int64)
    lists = _stand(
        added, 0, -1, threads, cursor, graph, state, own, lists, gains, queue, touched, size, scratch, looked, most
    )
    n = added.size
    standing = n
    while standing and looked.sum() <= most:
        parts = (n + PART - 1) // PART
        size[JOINING] = 0
        size[TOUCHED] = 0
        size[FALLING] = 0
        if parts <= 2:
            level = np.int64(_least(0, n, due, left))
            _visit(0, n, level, due, left, before, queue, size)
        else:
            least = np.empty(parts, np.int32)
            _least_of_parts(n, due, left, least)
            level = np.int64(least.min())
            _visit_parts(parts, n, level, due, left, before, queue, size)
        visited = queue[: size[JOINING]].copy()
        size[JOINING] = 0
        if visited.size <= FEW:
            announce_some(0, visited.size, visited, level, state, own, lists, gains, queue, touched, size)
        else:
            _announce(visited, threads, cursor, level, state, own, lists, gains, queue, touched, size)
        first_new = n
        while size[JOINING] and looked.sum() <= most:
            joining = np.sort(queue[: size[JOINING]])
            size[JOINING] = 0
            lists = _stand(
                joining,
                n,
                level,
                threads,
                cursor,
                graph,
                state,
                own,
                lists,
                gains,
                queue,
                touched,
                size,
                scratch,
                looked,
                most,
            )
            n += joining.size
            standing += joining.size
        if looked.sum() > most:
            break
        if visited.size + n - first_new <= FEW:
            end_some(0, visited.size, visited, level, first_new, state, own, lists)
            count_some(first_new, n, level, state, own, lists, gains)
        else:
            _settle(visited, first_new, n, threads, cursor, level, state, own, lists, gains)
        if size[TOUCHED] <= ALONE:
            keep_gains_some(0, size[TOUCHED], touched, state, gains)
        else:
            _keep_gains(touched[: size[TOUCHED]], state, gains)
        parts = (n + PART - 1) // PART
        if parts <= 2:
            _weak(0, n, level, left, queue, size)
        else:
            _weak_parts(parts, n, level, left, queue, size)
        while size[FALLING]:
            fallen = np.sort(queue[: size[FALLING]])
            size[FALLING] = 0
            work = 0
            for place in fallen:
                falls[place] = True
                work += bounds[place, 2] - bounds[place, 0]
            if work <= ALONE:
                fall_some(0, fallen.size, fallen, level, state, own, lists, queue, size)
            else:
                _fall(fallen, threads, cursor, level, state, own, lists, queue, size)
            for place in fallen:
                key[member[place]] = (level << KEY_BITS) | level_ends[level]
                level_ends[level] += 1
                falls[place] = False
                due[place] = NEVER
                left[place] = NEVER
            standing -= fallen.size
    return looked.sum()


def replay(union: Union, rows: Adjacency, ends: LongArray, most: int) -> int:
    """Bring the order to the edges with the added ones; changes the arrays of `union`.

    `ends` int64 [levels] are the times at which each level ends. An edge that stood goes to the end of its new level.
    Returns the number of triangles looked at, and stops when it exceeds `most`.
    """
    total, threads, widest = union.edges.edges, get_num_threads(), rows.widest
    level_ends = np.zeros(max(len(ends), widest) + 2, np.int64)
    level_ends[: len(ends)] = ends
    graph = (
        *(union.edges.low, union.edges.high, rows.begin, rows.length),
        *(rows.neighbour, rows.edge.view(np.uint32)),
    )
    state = union.key, union.count, union.remainder, union.change
    own = (
        *(np.empty(total, np.int32), np.empty(total, np.int64), np.empty((total, 3), np.int64)),
        *(np.empty(total, np.int32) for _ in range(3)),
        np.empty(total, np.bool_),
    )
    lists, gains = np.empty((3, ENTRIES), np.uint32), np.zeros(total, np.int64)
    queue, touched = np.empty((2, total), np.int32)
    scratch = (
        *np.empty((2, threads, widest + 1), np.uint32),
        *np.empty((2, threads, widest + 6), np.int64),
    )
    size = np.zeros(4, np.int64)
    looked: int = _replay(union.added, graph, state, own, lists, gains, queue, touched, size, scratch, level_ends, most)
    return looked
