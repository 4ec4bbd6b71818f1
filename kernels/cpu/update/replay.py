"""Insertions: replays the last peeling, and changes its order only where added edges disturb it.

The order of the last peeling is the *schedule*. An edge *falls* when the replay peels it. It falls *as scheduled* if it
falls at its old key. An edge that does not do so *stands*, without a place in the schedule, until it falls. An added
edge stands from the start. Levels are replayed in ascending order:

1. Standing edges that have at most as many triangles as the level fall *early*, before all other edges of the level.
2. An old edge of the level begins to stand if the number of its triangles whose other edges are later in the order or
   stand exceeds the level. This is found for edges next to standing edges, then for edges next to these, and so on.
3. At the end of the level, standing edges fall that have at most as many triangles as the level among the edges that
   are left. The other standing edges have a higher level.

Other edges fall as scheduled, and only their counts change.

Why the result is exact: an edge that falls as scheduled has few enough triangles at its time, whichever edges stand.
Standing edges are peeled before the other edges of a level or after them. The order of peeling makes the search local,
as in Zhang and Yu ("Unboundedness and efficiency of truss maintenance in evolving graphs", SIGMOD 2019).

No edge that began to stand falls again before all edges that begin to stand in the level, or in the same part of the
level, are found. So all steps run in parallel. Neither the answer nor the order depends on the number of threads.

Edges that have fallen stay in the rows, where a search for triangles reads them. They are removed from the rows once
reading them costs more than the removal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import get_num_threads, prange

from ...graph import Adjacency, AnyArray, LongArray
from ...runtime.cache import cached_njit
from ..adjacency import cuts_by_entries
from ..arrays.intrinsics import fetch_add
from .levels import (
    BLOCK_STOP,
    EARLY,
    ENTRIES_OF_BLOCK,
    EXPECTED,
    IN_PART,
    IN_ROWS,
    LEAST_LENGTH,
    LISTED,
    LOOKED,
    LOOKED_BEFORE,
    MOST_ALONE,
    MOST_FEW,
    MOST_IN_PART,
    SIZES,
    STANDING,
    STEP,
    STOOD,
    VISITED,
    close_fall,
    close_falls,
    find_due,
    most_in_part,
    open_block,
    open_fall,
    open_level,
    place_early,
    shorten,
    stand,
    triangles_of,
    undo_early,
    with_triangles_of,
)
from .merging import Union, sparse_zeros
from .standing import (
    FALLING,
    FIRST_NEW,
    FROM,
    JOINING,
    LEVEL,
    TO,
    TOUCHED,
    USED,
    Replay,
    announce_some,
    count_some,
    end_some,
    fall_some,
    keep_gains_some,
    list_some,
)

PARTS = 16
"""Parts of the rows for each thread."""


@cached_njit(parallel=True)
def _keep_later(begin, length, neighbour, edge, key, least, cuts, cursor, threads):
    for _ in prange(threads):
        while True:
            part = fetch_add(cursor, 0, np.int64(1))
            if part >= cuts.size - 1:
                break
            for v in range(cuts[part], cuts[part + 1]):
                start = np.uintp(begin[v])
                target = start
                for q in range(start, start + np.uintp(length[v])):
                    e = edge[q]
                    neighbour[target] = neighbour[q]
                    edge[target] = e
                    target += np.uintp(key[e] >= least)
                length[v] = target - start


def keep_later(rows: Adjacency, key: LongArray, least: int) -> int:
    """Remove the edges whose `key` is below `least` from the rows, in place. Returns the number of edges left."""
    threads = get_num_threads()
    cuts = cuts_by_entries(rows, PARTS * threads)
    entries = rows.begin, rows.length, rows.neighbour, rows.edge.view(np.uint32)
    _keep_later(*entries, key, least, cuts, np.zeros(1, np.int64), threads)
    return int(rows.length.sum(dtype=np.int64)) // 2


ENTRIES = 1 << 20
"""Initial capacity of the lists, in entries."""
GROWTH = 4
"""Lists that are full grow by this factor."""
ALONE = 1 << 13
"""A step over at most this many triangles runs in one thread. Waking the others takes about 100 µs."""
FEW = 1 << 10
"""A step over the due triangles, or the gains, of at most this many edges runs in one thread."""
CHUNK = 8
"""Edges that a thread takes at a time."""
AT_ONCE = 1 << 20
"""A level is replayed in parts if the triangles (`Union.count`) of edges that would begin to stand at once are more
than this, and more than the edges that stood until then.
"""
SHORTEST = 1 << 10
"""Minimum number of times in a part of a level."""
LOOK_FOR_ENTRY = 16
"""Fallen edges are removed from the rows if they are more than half of the rows' edges, and if since the last removal
one triangle was looked at for each LOOK_FOR_ENTRY edges in the rows. This look takes as long as the removal.
"""
OPEN, FALL_EARLY, ANNOUNCE, LIST, JOIN, SETTLE, WEAK, FALL, CLEAN, DONE = range(10)
"""Steps: open a level or its next part; let edges fall early; announce the due triangles; list the triangles of new
standing edges; make the queued edges stand; settle the counts; find the edges that fall; let them fall. CLEAN removes
fallen edges from the rows. DONE ends the replay.
"""


class Replayed(NamedTuple):
    """How a replay ended."""

    triangles: int
    """Triangles looked at."""
    expected: int = 0
    """If the replay stopped before a step with too many triangles: `triangles` plus those of this step. Else 0."""
    has_room: bool = True
    """False if the replay stopped because its lists would take too much memory."""
    stopped_at: int | None = None
    """The level at which the replay stopped, before any edge of this level fell; -1 if it stopped before all levels.
    None if the replay is complete.
    """


PART = 1 << 14
"""Edges with gains that a thread takes at a time."""


@cached_njit(parallel=True)
def _list(stop, cursor, looked, run):
    for thread in prange(looked.size):
        while True:
            first = fetch_add(cursor, 0, np.int64(CHUNK))
            if first >= stop:
                break
            last = min(first + CHUNK, stop)
            looked[thread] += list_some(first, last, np.int64(thread), run)


@cached_njit(parallel=True)
def _announce(threads, cursor, run):
    visited = run.size[VISITED]
    for _ in prange(threads):
        while True:
            first = fetch_add(cursor, 0, np.int64(CHUNK))
            if first >= visited:
                break
            announce_some(first, min(first + CHUNK, visited), run)


@cached_njit(parallel=True)
def _settle(threads, cursor, run):
    """Call `end_some` for the visited places, and `count_some` for places given in the present part of the level."""
    visited, first_new, stood = run.size[VISITED], run.size[FIRST_NEW], run.size[STOOD]
    for _ in prange(threads):
        while True:
            first = fetch_add(cursor, 0, np.int64(CHUNK))
            if first >= visited:
                break
            end_some(first, min(first + CHUNK, visited), run)
        while True:
            first = first_new + fetch_add(cursor, 1, np.int64(CHUNK))
            if first >= stood:
                break
            count_some(first, min(first + CHUNK, stood), run)


@cached_njit(parallel=True)
def _keep_gains(run):
    touched = run.size[TOUCHED]
    for part in prange((touched + PART - 1) // PART):
        first = np.int64(part) * PART
        keep_gains_some(first, min(first + PART, touched), run)


@cached_njit(parallel=True)
def _fall(fallen, threads, cursor, least, run):
    for _ in prange(threads):
        while True:
            first = fetch_add(cursor, 0, np.int64(CHUNK))
            if first >= fallen.size:
                break
            last = min(first + CHUNK, fallen.size)
            fall_some(first, last, fallen, least, run)


@cached_njit
def _advance(others_looked, most, most_at, run):
    """Run steps in this thread. Returns the first step that is too large for one thread, or DONE when no edge stands.

    Also returns DONE when more than `most` triangles were looked at or will be, or when the edges that began to stand
    at a level have more triangles than the level's entry of `most_at`. `others_looked` is the number of triangles that
    other threads looked at.
    """
    lists, queue, visited, size, left_at = run.lists, run.queue, run.visited, run.size, run.left_at
    triangles_left = run.left
    while True:
        step = size[STEP]
        level = size[LEVEL]
        if step == LIST:
            if size[LOOKED] + others_looked > most:
                return DONE
            if size[LISTED] == size[STOOD]:
                size[STEP] = JOIN if level >= 0 else OPEN
                continue
            open_block(run)
            if size[ENTRIES_OF_BLOCK] > size[MOST_ALONE] or size[USED] + size[ENTRIES_OF_BLOCK] > lists.shape[1]:
                return LIST
            size[LOOKED] += list_some(size[LISTED], size[BLOCK_STOP], 0, run)
            size[LISTED] = size[BLOCK_STOP]
        elif step == OPEN:
            if not size[STANDING]:
                return DONE
            open_level(run)
            size[STEP] = FALL_EARLY
            level = size[LEVEL]
            left = size[STANDING] + (left_at[level] if level < left_at.size else 0)
            looked = size[LOOKED] + others_looked - size[LOOKED_BEFORE]
            if 2 * left < size[IN_ROWS] < LOOK_FOR_ENTRY * looked:
                return CLEAN
        elif step in (FALL_EARLY, FALL):
            if size[FALLING]:
                visited[: size[FALLING]] = np.sort(queue[: size[FALLING]])
                size[VISITED] = size[FALLING]
                size[FALLING] = 0
                if open_fall(run) > size[MOST_ALONE]:
                    return step
                least = size[FROM] if step == FALL_EARLY else size[TO]
                fall_some(0, size[VISITED], visited, least, run)
                close_fall(least, run)
            elif step == FALL:
                close_falls(run)
                size[STEP] = OPEN
            else:
                close_falls(run)
                find_due(run)
                if size[VISITED] > size[MOST_FEW]:
                    return ANNOUNCE
                announce_some(0, size[VISITED], run)
                size[STEP] = JOIN
        elif step == JOIN:
            if size[JOINING]:
                edges = np.sort(queue[: size[JOINING]])
                here = most_at[level] if level < most_at.size else most
                more = triangles_of(edges, run)
                if size[IN_PART] + more > most_in_part(run) and shorten(run):
                    size[STEP] = FALL_EARLY
                    continue
                size[IN_PART] += more
                size[EXPECTED] = with_triangles_of(more, size[LOOKED] + others_looked, most, here, run)
                if size[EXPECTED]:
                    return DONE
                size[JOINING] = 0
                stand(edges, run)
                size[STEP] = LIST
                continue
            if size[VISITED] + size[STOOD] - size[FIRST_NEW] + size[TOUCHED] > size[MOST_FEW]:
                return SETTLE
            end_some(0, size[VISITED], run)
            count_some(size[FIRST_NEW], size[STOOD], run)
            keep_gains_some(0, size[TOUCHED], run)
            size[TOUCHED] = 0
            size[STEP] = WEAK
        elif step == WEAK:
            for place in range(size[STOOD]):
                if triangles_left[place] <= level:
                    queue[size[FALLING]] = place
                    size[FALLING] += 1
            size[STEP] = FALL


def replay(
    union: Union,
    rows: Adjacency,
    ends: LongArray,
    most: int,
    most_listed: int,
    most_at: LongArray,
    in_one_thread: bool = True,
) -> Replayed:
    """Update the order and the counts of `union` for its added edges, in place.

    `ends` int64 [levels] is one more than the last time of each level. An edge that stood goes to the end of its new
    level, unless it falls early. Removes edges that have fallen from `rows`.
    Stops before more than `most` triangles are looked at, or lists have more than `most_listed` entries of 12 bytes, or
    edges that begin to stand at a level have more triangles than its entry of `most_at`; levels beyond the end of
    `most_at` have no limit of their own. If `in_one_thread` is false, all threads share small steps as well.
    """
    total, threads, widest = union.edges.edges, get_num_threads(), rows.widest
    level_ends = np.zeros(max(len(ends), widest) + 2, np.int64)
    level_ends[: len(ends)] = ends
    size, cursor, looked = np.zeros(SIZES, np.int64), np.zeros(2, np.int64), np.zeros(threads, np.int64)
    size[LEVEL], size[STEP] = -1, LIST
    size[MOST_ALONE], size[MOST_FEW] = (ALONE, FEW) if in_one_thread else (-1, -1)
    size[MOST_IN_PART], size[LEAST_LENGTH] = AT_ONCE, SHORTEST
    size[IN_ROWS] = total
    run = Replay(
        low=union.edges.low,
        high=union.edges.high,
        begin=rows.begin,
        length=rows.length,
        neighbour=rows.neighbour,
        edge=rows.edge.view(np.uint32),
        key=union.key,
        triangles=union.count,
        remainder=union.remainder,
        change=union.change,
        member=np.empty(total, np.int32),
        old=np.empty(total, np.int64),
        bounds=np.empty((total, 3), np.int64),
        due=np.empty(total, np.int32),
        left=np.empty(total, np.int32),
        before=np.empty(total, np.int32),
        falls=np.empty(total, np.bool_),
        early=np.empty(total, np.int32),
        lists=np.empty((3, ENTRIES), np.uint32),
        gains=sparse_zeros(total, np.int64),
        queue=np.empty(total, np.int32),
        touched=np.empty(total, np.int32),
        visited=np.empty(total, np.int32),
        size=size,
        level_ends=level_ends,
        left_at=np.ascontiguousarray(np.cumsum(ends[::-1])[::-1]),  # strided unless short, thus of two types
        to_f=np.empty((threads, widest + 1), np.uint32),
        to_g=np.empty((threads, widest + 1), np.uint32),
        due_of=np.empty((threads, widest + 6), np.int64),
        ends=np.empty((threads, widest + 6), np.int64),
    )
    stand(union.added, run)
    while True:
        step = _advance(looked.sum(), most, most_at, run)
        triangles = int(size[LOOKED] + looked.sum())
        if step == DONE:
            stopped = size[EXPECTED] or triangles > most
            _end(run, bool(stopped))
            return Replayed(triangles, int(size[EXPECTED]), stopped_at=int(size[LEVEL]) if stopped else None)
        cursor[:] = 0
        if step == LIST:
            needed = int(size[USED] + size[ENTRIES_OF_BLOCK])
            if needed > most_listed:
                _end(run, True)
                return Replayed(triangles, has_room=False, stopped_at=int(size[LEVEL]))
            if needed > run.lists.shape[1]:
                room = min(max(GROWTH * run.lists.shape[1], needed), most_listed)
                run = run._replace(lists=_grown(run.lists, int(size[USED]), room))
            cursor[0] = size[LISTED]
            _list(size[BLOCK_STOP], cursor, looked, run)
            size[LISTED] = size[BLOCK_STOP]
        elif step == CLEAN:
            size[IN_ROWS] = keep_later(rows, union.key, size[FROM])
            size[LOOKED_BEFORE] = triangles
        elif step == ANNOUNCE:
            _announce(threads, cursor, run)
            size[STEP] = JOIN
        elif step == SETTLE:
            _settle(threads, cursor, run)
            _keep_gains(run)
            size[TOUCHED] = 0
            size[STEP] = WEAK
        else:
            least = size[FROM] if step == FALL_EARLY else size[TO]
            _fall(run.visited[: size[VISITED]], threads, cursor, least, run)
            close_fall(least, run)


def _end(run: Replay, stopped: bool) -> None:
    """Give times to the edges that fell early. If the replay `stopped` at a level, early edges of it stand again."""
    if stopped:
        undo_early(run)
    place_early(run.key, run.member[run.early[: run.size[EARLY]]])


def _grown(lists: AnyArray, used: int, room: int) -> AnyArray:
    """A copy of the lists with a capacity of `room` entries."""
    more = np.empty((3, room), np.uint32)
    more[:, :used] = lists[:, :used]
    return more
