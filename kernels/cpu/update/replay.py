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

from typing import NamedTuple

import numpy as np
from numba import get_num_threads, prange

from ...graph import KEY_BITS, Adjacency, AnyArray, LongArray
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
GROWTH = 4
"""Lists grow to this many times their room."""
ALONE = 1 << 13
"""A step over at most this many triangles runs in one thread. Waking the others takes about 100 µs."""
FEW = 1 << 10
"""A step over the due triangles, or the gains, of at most this many edges runs in one thread."""
CHUNK = 8
"""Edges that a thread takes at a time."""
OPEN, ANNOUNCE, LIST, JOIN, SETTLE, WEAK, FALL, DONE = range(8)
"""Steps: open a level, announce its due triangles, list those of new standing edges, have the queued edges stand,
settle the counts, find the edges that fall, and let them fall; or all is done.
"""
(
    STEP,
    LEVEL,
    STOOD,
    STANDING,
    LISTED,
    FIRST_NEW,
    VISITED,
    BLOCK_STOP,
    ENTRIES_OF_BLOCK,
    LOOKED,
    MOST_ALONE,
    MOST_FEW,
    EXPECTED,
    AT_LEVEL,
    SIZES,
) = range(4, 19)
"""Further places in `size`: the next step and the level; the edges that stood or stand, those that stand, those that
have lists, and those that stood before the level; the chosen edges in `visited`; the end of the block of edges that get
lists next, and the entries that these may take; triangles that the first thread looked at; ALONE and FEW, or less;
the triangles with those of edges that are about to stand, if they are too many; the triangles of edges that began to
stand at the level.
"""


class Replayed(NamedTuple):
    """How a replay ended."""

    triangles: int
    """Triangles looked at."""
    expected: int = 0
    """The same with those of its next step, if it stopped because they are too many; else 0."""
    has_room: bool = True
    """False if it stopped because its lists would take too much memory."""
    stopped_at: int | None = None
    """The level at which it stopped, of whose edges none has fallen; -1 before all levels. None if it is complete."""


PART = 1 << 14
"""Edges with gains that a thread takes at a time."""


@cached_njit(parallel=True)
def _list(stop, cursor, level, graph, state, own, lists, gains, queue, touched, size, scratch, looked):
    for thread in prange(looked.size):
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
    for _ in prange(threads):
        while True:
            first = fetch_add(cursor, 0, np.int64(CHUNK))
            if first >= fallen.size:
                break
            fall_some(first, min(first + CHUNK, fallen.size), fallen, level, state, own, lists, queue, size)


@cached_njit
def _open_level(own, visited, size):
    """Go to the next level at which triangles are due or edges fall, and keep all counts of before."""
    _, _, _, due, left, before, _ = own
    level = NEVER
    for place in range(size[STOOD]):
        level = min(level, due[place], left[place])
    found = 0
    for place in range(size[STOOD]):
        before[place] = left[place]
        if due[place] == level:
            visited[found] = place
            found += 1
    size[LEVEL] = level
    size[VISITED] = found
    size[FIRST_NEW] = size[STOOD]
    size[TOUCHED] = 0
    size[AT_LEVEL] = 0


@cached_njit
def _stand(edges, state, own, size):
    """Have edges stand at the next places."""
    key, member, old, falls = state[0], own[0], own[1], own[6]
    place = size[STOOD]
    for x in edges:
        member[place] = x
        old[place] = key[x]
        falls[place] = False
        key[x] = STANDS | place
        place += 1
    size[STOOD] = place
    size[STANDING] += edges.size


@cached_njit
def _open_block(graph, own, size):
    """The next places whose triangles are to be listed together, and the entries that these may take."""
    low, high, length, member = graph[0], graph[1], graph[3], own[0]
    place = size[LISTED]
    size[ENTRIES_OF_BLOCK] = 0
    while place < size[STOOD]:
        entries = min(length[low[member[place]]], length[high[member[place]]]) + 1
        if place > size[LISTED] and size[ENTRIES_OF_BLOCK] + entries > ROOM:
            break
        size[ENTRIES_OF_BLOCK] += entries
        place += 1
    size[BLOCK_STOP] = place


@cached_njit
def _open_fall(visited, own, size):
    """Mark the edges that fall at once, which are in `visited`. Returns the entries of their lists."""
    bounds, falls = own[2], own[6]
    entries = 0
    for i in range(size[VISITED]):
        falls[visited[i]] = True
        entries += bounds[visited[i], 2] - bounds[visited[i], 0]
    return entries


@cached_njit
def _close_fall(visited, state, own, level_ends, size):
    """Edges that fell go to the end of the level, in the order of their places."""
    key, member, due, left, falls = state[0], own[0], own[3], own[4], own[6]
    level = size[LEVEL]
    for i in range(size[VISITED]):
        place = visited[i]
        key[member[place]] = (level << KEY_BITS) | level_ends[level]
        level_ends[level] += 1
        falls[place] = False
        due[place] = NEVER
        left[place] = NEVER
    size[STANDING] -= size[VISITED]


@cached_njit
def _with_triangles_of(edges, state, size, looked, most, most_here):
    """The triangles that are looked at, after `looked`, once these edges stand, if they are more than `most`, or those
    of all edges that began to stand at the level more than `most_here`; else 0.

    Of R-MAT 22, 0.1 % more edges had a million edges stand at one level, nearly all of them in two rounds.
    """
    own = np.int64(0)
    for x in edges:
        own += state[1][x]
    size[AT_LEVEL] += own
    return looked + own if looked + own > most or size[AT_LEVEL] > most_here else 0


@cached_njit
def _advance(
    graph, state, own, lists, gains, queue, touched, visited, size, scratch, level_ends, others_looked, most, most_at
):
    """Go on in one thread, until no edge stands, or a step is large: it returns this step, which is still to be done.

    Stops also when more than `most` triangles were looked at, or will be, or when the edges that began to stand at a
    level have more than its entry of `most_at`; `others_looked` are those of other threads.
    """
    while True:
        step = size[STEP]
        level = size[LEVEL]
        if step == LIST:
            if size[LOOKED] + others_looked > most:
                return DONE
            if size[LISTED] == size[STOOD]:
                size[STEP] = JOIN if level >= 0 else OPEN
                continue
            _open_block(graph, own, size)
            if size[ENTRIES_OF_BLOCK] > size[MOST_ALONE] or size[USED] + size[ENTRIES_OF_BLOCK] > lists.shape[1]:
                return LIST
            size[LOOKED] += list_some(
                size[LISTED],
                size[BLOCK_STOP],
                *(0, level, graph, state, own, lists, gains, queue, touched, size, scratch),
            )
            size[LISTED] = size[BLOCK_STOP]
        elif step == OPEN:
            if not size[STANDING]:
                return DONE
            _open_level(own, visited, size)
            if size[VISITED] > size[MOST_FEW]:
                return ANNOUNCE
            level = size[LEVEL]
            announce_some(0, size[VISITED], visited, level, state, own, lists, gains, queue, touched, size)
            size[STEP] = JOIN
        elif step == JOIN:
            if size[JOINING]:
                edges = np.sort(queue[: size[JOINING]])
                here = most_at[level] if level < most_at.size else most
                size[EXPECTED] = _with_triangles_of(edges, state, size, size[LOOKED] + others_looked, most, here)
                if size[EXPECTED]:
                    return DONE
                size[JOINING] = 0
                _stand(edges, state, own, size)
                size[STEP] = LIST
                continue
            if size[VISITED] + size[STOOD] - size[FIRST_NEW] + size[TOUCHED] > size[MOST_FEW]:
                return SETTLE
            end_some(0, size[VISITED], visited, level, size[FIRST_NEW], state, own, lists)
            count_some(size[FIRST_NEW], size[STOOD], level, state, own, lists, gains)
            keep_gains_some(0, size[TOUCHED], touched, state, gains)
            size[STEP] = WEAK
        elif step == WEAK:
            left = own[4]
            for place in range(size[STOOD]):
                if left[place] <= level:
                    queue[size[FALLING]] = place
                    size[FALLING] += 1
            size[STEP] = FALL
        elif step == FALL:
            if not size[FALLING]:
                size[STEP] = OPEN
                continue
            visited[: size[FALLING]] = np.sort(queue[: size[FALLING]])
            size[VISITED] = size[FALLING]
            size[FALLING] = 0
            if _open_fall(visited, own, size) > size[MOST_ALONE]:
                return FALL
            fall_some(0, size[VISITED], visited, level, state, own, lists, queue, size)
            _close_fall(visited, state, own, level_ends, size)


def replay(
    union: Union,
    rows: Adjacency,
    ends: LongArray,
    most: int,
    most_listed: int,
    most_at: LongArray,
    in_one_thread: bool = True,
) -> Replayed:
    """Bring the order to the edges with the added ones; changes the arrays of `union`.

    `ends` int64 [levels] are the times at which each level ends. An edge that stood goes to the end of its new level.
    Stops before more than `most` triangles are looked at, or lists have more than `most_listed` entries of 12 bytes, or
    edges that begin to stand at a level have more triangles than `most_at` [levels], which may end early.
    Without `in_one_thread` all threads do small steps, too.
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
    lists: AnyArray = np.empty((3, ENTRIES), np.uint32)
    gains = np.zeros(total, np.int64)
    queue, touched, visited = np.empty((3, total), np.int32)
    scratch = (*np.empty((2, threads, widest + 1), np.uint32), *np.empty((2, threads, widest + 6), np.int64))
    size, cursor, looked = np.zeros(SIZES, np.int64), np.zeros(2, np.int64), np.zeros(threads, np.int64)
    size[LEVEL], size[STEP] = -1, LIST
    size[MOST_ALONE], size[MOST_FEW] = (ALONE, FEW) if in_one_thread else (-1, -1)
    _stand(union.added, state, own, size)
    while True:
        step = _advance(
            *(graph, state, own, lists, gains, queue, touched, visited, size, scratch, level_ends),
            *(looked.sum(), most, most_at),
        )
        triangles = int(size[LOOKED] + looked.sum())
        if step == DONE:
            stopped = size[EXPECTED] or triangles > most
            return Replayed(triangles, int(size[EXPECTED]), stopped_at=int(size[LEVEL]) if stopped else None)
        level, chosen = size[LEVEL], visited[: size[VISITED]]
        cursor[:] = 0
        if step == LIST:
            needed = int(size[USED] + size[ENTRIES_OF_BLOCK])
            if needed > most_listed:
                return Replayed(triangles, has_room=False, stopped_at=int(level))
            if needed > lists.shape[1]:
                lists = _grown(lists, int(size[USED]), min(max(GROWTH * lists.shape[1], needed), most_listed))
            cursor[0] = size[LISTED]
            _list(
                *(size[BLOCK_STOP], cursor, level, graph, state, own, lists, gains, queue, touched, size),
                *(scratch, looked),
            )
            size[LISTED] = size[BLOCK_STOP]
        elif step == ANNOUNCE:
            _announce(chosen, threads, cursor, level, state, own, lists, gains, queue, touched, size)
            size[STEP] = JOIN
        elif step == SETTLE:
            new = size[FIRST_NEW], size[STOOD]
            _settle(chosen, *new, threads, cursor, level, state, own, lists, gains)
            _keep_gains(touched[: size[TOUCHED]], state, gains)
            size[STEP] = WEAK
        else:
            _fall(chosen, threads, cursor, level, state, own, lists, queue, size)
            _close_fall(visited, state, own, level_ends, size)


def _grown(lists: AnyArray, used: int, room: int) -> AnyArray:
    """The lists with room for more entries."""
    more = np.empty((3, room), np.uint32)
    more[:, :used] = lists[:, :used]
    return more
