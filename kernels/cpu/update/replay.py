"""Insertions: the schedule of the last peeling is replayed where it is disturbed.

An edge *stands* until it falls. An added edge stands from the start; an old one falls at its level and time, unless it
is *delayed*: more of its triangles stand then than its level allows. A triangle with an added or delayed edge is kept
as a record, in lists of these edges and of the first edge of it that is still to fall as scheduled. When the time of
that one comes, the triangles that stand are those of its remainder and its records: no triangle is looked for. Only
added and delayed edges are enumerated, each once. They fall when a record ends (an edge of it falls) and the level
allows it, or at the start of the level that equals their count. Edges without records fall as before and are not seen.

Why it is exact: it is a peeling. Until a first disturbed time it agrees with the last one; a standing edge's count is
that of its standing triangles, and so by induction over time. The order of peeling makes the search local, as in Zhang
and Yu ("Unboundedness and efficiency of truss maintenance in evolving graphs", SIGMOD 2019).
"""

from __future__ import annotations

import numpy as np

from ...graph import KEY_BITS, Adjacency, AnyArray, IntArray
from ...runtime.cache import cached_njit
from ..arrays.borrowed import borrowed
from .heap import pop, push
from .merging import Union

STANDS = np.int64(2**63 - 1)
"""Key of an added or delayed edge that stands."""
EDGE, COUNT, HEAD, NEXT, PREVIOUS, SINCE, START, STATE, OLD = range(9)
"""Columns of a touched edge: its number; triangles that stand; its first list entry; its neighbours in a list of edges
(events of a level, or edges of equal count); the last level at which it lost a triangle and the count before; its state
and its level before.
"""
AWAITED, DELAYED, FALLING, FALLEN = range(4)
"""States: to be checked at its time, stands with a count, is queued to fall, has fallen."""
TOUCHED, RECORDS, FALLS, QUEUED, STANDING, LEVEL, LOOKED, MORE_TOUCHED, MORE_RECORDS = range(9)
"""Places in `size`: touched edges, records, edges that fell anew, the end of the queue, edges that stand, the level,
triangles looked at; the touched edges and the records for which there must be room before the replay goes on.
"""
DONE, LEAST = 6, 7
"""Columns of a record: 1 when it has ended, and the least level that its edges had before. Columns 0 to 2 are its
edges, 3 to 5 the next entries of their lists. Entry 3 x record + p + 1 is that of its edge p; 0 ends a list.
"""
FINISHED, NO_ROOM, OVER = range(3)
"""Why a pass ends: all edges have fallen; arrays must grow; too many triangles were looked at."""
SPARE = 1024
"""Touched edges and records for which there is room at first, besides those of the added edges; at least 1."""


@cached_njit
def _search_later(neighbour, edge, a, a_stop, b, b_stop, key, now, to_f, to_g):
    """As `search_shorter`, only for entries of the first row whose edges are still to fall as scheduled."""
    hits = 0
    b = np.uintp(b)
    b_stop = np.uintp(b_stop)
    for q in range(np.uintp(a), np.uintp(a_stop)):
        f = edge[q]
        if not now < key[f] < STANDS:
            continue
        w = neighbour[q]
        step = np.uintp(1)
        while b + step < b_stop and neighbour[b + step] < w:
            b += step
            step += step
        last = min(b + step, b_stop)
        while b < last:
            middle = (b + last) >> np.uintp(1)
            if neighbour[middle] < w:
                b = middle + np.uintp(1)
            else:
                last = middle
        if b >= b_stop:
            break
        if neighbour[b] == w:
            to_f[hits] = f
            to_g[hits] = edge[b]
            hits += 1
    return hits


@cached_njit(inline="always")
def _touch(x, key, place, touched, size):
    """The place of an edge among the touched ones."""
    i = place[x]
    if i == 0:
        size[TOUCHED] += 1
        i = np.int32(size[TOUCHED])
        place[x] = i
        touched[i, EDGE] = x
        touched[i, COUNT] = 0
        touched[i, HEAD] = 0
        touched[i, NEXT] = 0
        touched[i, PREVIOUS] = 0
        touched[i, SINCE] = -1
        touched[i, STATE] = AWAITED
        touched[i, OLD] = key[x] >> KEY_BITS
    return i


@cached_njit(inline="always")
def _list(i, record, p, touched, records):
    """Put a record, whose edge p is the touched edge i, into the list of i."""
    records[record, 3 + p] = touched[i, HEAD]
    touched[i, HEAD] = 3 * record + p + 1


@cached_njit(inline="always")
def _await(x, record, p, level, key, place, touched, records, events, heap, size):
    """List a record at an edge that is still to fall as scheduled, and have that edge checked at its time."""
    new = place[x] == 0
    i = _touch(x, key, place, touched, size)
    _list(i, record, p, touched, records)
    if new:
        own = touched[i, OLD]
        if own == level:
            push(heap, ((key[x] & 0x7FFFFFFF) << KEY_BITS) | i)
        else:
            touched[i, NEXT] = events[own]
            events[own] = i


@cached_njit(inline="always")
def _stand(i, touched, waiting):
    """Put a standing edge among those of its count."""
    count = touched[i, COUNT]
    after = waiting[count]
    touched[i, NEXT] = after
    touched[i, PREVIOUS] = 0
    if after:
        touched[after, PREVIOUS] = i
    waiting[count] = i


@cached_njit(inline="always")
def _leave(i, touched, waiting):
    """Take a standing edge from those of its count."""
    before = touched[i, PREVIOUS]
    after = touched[i, NEXT]
    if before:
        touched[before, NEXT] = after
    else:
        waiting[touched[i, COUNT]] = after
    if after:
        touched[after, PREVIOUS] = before


@cached_njit(inline="always")
def _end_records(i, level, key, place, touched, records, waiting, queue, count, size):
    """End the records of an edge that falls. Standing edges lose a triangle, and may be queued to fall."""
    entry = touched[i, HEAD]
    while entry:
        record = (entry - 1) // 3
        entry = records[record, 3 + (entry - 1) % 3]
        if records[record, DONE]:
            continue
        records[record, DONE] = 1
        # A triangle with an edge of a lower old level, or an added one, did not count for edges of this level.
        gained = records[record, LEAST] < level
        for p in range(3):
            x = records[record, p]
            j = place[x]
            if gained and (touched[j, OLD] if j else np.int32(key[x] >> KEY_BITS)) == level:
                count[x] += 1
            if j == 0 or j == i:
                continue
            state = touched[j, STATE]
            if state in (DELAYED, FALLING):
                if touched[j, SINCE] != level:
                    touched[j, SINCE] = level
                    touched[j, START] = touched[j, COUNT]
                if state == FALLING:
                    touched[j, COUNT] -= 1
                    continue
                _leave(j, touched, waiting)
                touched[j, COUNT] -= 1
                if touched[j, COUNT] <= level:
                    touched[j, STATE] = FALLING
                    queue[size[QUEUED]] = j
                    size[QUEUED] += 1
                else:
                    _stand(j, touched, waiting)


@cached_njit(inline="always")
def _fall(i, level, after, key, touched, falls, count, remainder, size):
    """Write the fall of an edge that stood."""
    x = touched[i, EDGE]
    remainder[x] = touched[i, COUNT]
    if touched[i, OLD] < level:
        count[x] = touched[i, START] if touched[i, SINCE] == level else touched[i, COUNT]
    key[x] = -1
    n = size[FALLS]
    falls[n, 0] = x
    falls[n, 1] = level
    falls[n, 2] = after
    size[FALLS] += 1
    size[STANDING] -= 1


@cached_njit
def _begin(added, triples, key, change, place, touched, records, events, waiting, heap, size):
    """List the triangles of the added edges, which stand from now on."""
    key = borrowed(key)
    place = borrowed(place)
    touched = borrowed(touched)
    records = borrowed(records)
    events = borrowed(events)
    waiting = borrowed(waiting)
    heap = borrowed(heap)
    size = borrowed(size)
    for x in added:
        key[x] = -1
        i = _touch(x, key, place, touched, size)
        touched[i, STATE] = DELAYED
        key[x] = STANDS
    size[STANDING] = added.size
    size[RECORDS] = triples.shape[0]
    for record in range(triples.shape[0]):
        records[record, DONE] = 0
        records[record, LEAST] = -1
        first = -1
        for p in range(3):
            x = triples[record, p]
            records[record, p] = x
            change[x] += 1
            if key[x] == STANDS:
                i = place[x]
                touched[i, COUNT] += 1
                _list(i, record, p, touched, records)
            elif first < 0 or key[x] < key[triples[record, first]]:
                first = p
        if first >= 0:
            x = triples[record, first]
            _await(x, record, first, -1, key, place, touched, records, events, heap, size)
    for x in added:
        _stand(place[x], touched, waiting)


@cached_njit
def _replay(ends, rows, state, place, touched, records, events, waiting, heap, queue, falls, to_f, to_g, size, most):
    """Go on until all edges have fallen, an array has no room, or more than `most` triangles were looked at."""
    low = borrowed(ends[0])
    high = borrowed(ends[1])
    begin = borrowed(rows[0])
    length = borrowed(rows[1])
    neighbour = borrowed(rows[2])
    edge = borrowed(rows[3])
    key = borrowed(state[0])
    count = borrowed(state[1])
    remainder = borrowed(state[2])
    place = borrowed(place)
    touched = borrowed(touched)
    records = borrowed(records)
    events = borrowed(events)
    waiting = borrowed(waiting)
    heap = borrowed(heap)
    queue = borrowed(queue)
    falls = borrowed(falls)
    to_f = borrowed(to_f)
    to_g = borrowed(to_g)
    size = borrowed(size)
    level = size[LEVEL]
    while size[STANDING]:
        if not events[level] and not waiting[level] and not heap[0]:
            level += 1
            continue
        after = np.int32(-1)
        i = waiting[level]
        waiting[level] = 0
        while i:
            queue[size[QUEUED]] = i
            size[QUEUED] += 1
            touched[i, STATE] = FALLING
            i = touched[i, NEXT]
        i = events[level]
        events[level] = 0
        while i:
            push(heap, ((key[touched[i, EDGE]] & 0x7FFFFFFF) << KEY_BITS) | i)
            i = touched[i, NEXT]
        while True:
            first = 0
            while first < size[QUEUED]:
                i = queue[first]
                first += 1
                if touched[i, STATE] == FALLING:
                    _fall(i, level, after, key, touched, falls, count, remainder, size)
                _end_records(i, level, key, place, touched, records, waiting, queue, count, size)
                touched[i, STATE] = FALLEN
            size[QUEUED] = 0
            if not heap[0]:
                break
            i = np.int32(heap[1] & 0xFFFFFFFF)
            x = touched[i, EDGE]
            new = remainder[x]
            stand = new
            entry = touched[i, HEAD]
            while entry:
                record = (entry - 1) // 3
                stand += 1 - records[record, DONE]
                entry = records[record, 3 + (entry - 1) % 3]
            if stand > level and (
                size[RECORDS] + new > records.shape[0] or size[TOUCHED] + stand + 1 > touched.shape[0]
            ):
                size[LEVEL] = level
                size[MORE_RECORDS] = size[RECORDS] + new
                size[MORE_TOUCHED] = size[TOUCHED] + stand + 1
                return NO_ROOM
            after = np.int32(pop(heap) >> KEY_BITS)
            if stand <= level:
                remainder[x] = stand
                queue[0] = i
                size[QUEUED] = 1
                continue
            now = key[x]
            touched[i, STATE] = DELAYED
            touched[i, COUNT] = stand
            key[x] = STANDS
            size[STANDING] += 1
            entry = touched[i, HEAD]
            while entry:
                record = (entry - 1) // 3
                entry = records[record, 3 + (entry - 1) % 3]
                if not records[record, DONE]:
                    for p in range(3):
                        y = records[record, p]
                        if key[y] != STANDS:
                            _await(y, record, p, level, key, place, touched, records, events, heap, size)
            _stand(i, touched, waiting)
            if not new:
                continue
            a = begin[low[x]]
            a_stop = a + length[low[x]]
            b = begin[high[x]]
            b_stop = b + length[high[x]]
            if a_stop - a > b_stop - b:
                a, a_stop, b, b_stop = b, b_stop, a, a_stop
            hits = _search_later(neighbour, edge, a, a_stop, b, b_stop, key, now, to_f, to_g)
            size[LOOKED] += hits
            if size[LOOKED] > most:
                return OVER
            for h in range(hits):
                f = to_f[h]
                g = to_g[h]
                if now < key[g] < STANDS:
                    record = size[RECORDS]
                    size[RECORDS] += 1
                    records[record, DONE] = 0
                    records[record, LEAST] = level
                    records[record, 0] = x
                    records[record, 1] = f
                    records[record, 2] = g
                    _list(i, record, 0, touched, records)
                    p = 1
                    if key[g] < key[f]:
                        f = g
                        p = 2
                    _await(f, record, p, level, key, place, touched, records, events, heap, size)
        level += 1
    return FINISHED


def _more(array: AnyArray, used: int, room: int) -> AnyArray:
    """The array, or one with at least `room` rows and the first `used` rows of this one."""
    if room <= len(array):
        return array
    larger = np.empty((max(room, 2 * len(array)), *array.shape[1:]), array.dtype)
    larger[:used] = array[:used]
    return larger


def replay(union: Union, rows: Adjacency, triples: IntArray, highest: int, most: int) -> tuple[IntArray, int]:
    """Bring the order to the edges with the added ones; changes the arrays of `union`.

    `triples` are the triangles of added edges; `highest` is the highest level before. Returns the edges that fell anew
    in the order in which they fell, int32 [edges, 3]: edge, level, time of the scheduled edge after which it fell (-1:
    before all of the level); and the number of triangles looked at. Stops when that exceeds `most`.
    """
    levels = max(highest, rows.widest) + 2
    events, waiting = np.zeros(levels, np.int32), np.zeros(levels, np.int32)
    touched = np.empty((2 * len(union.added) + len(triples) + SPARE, 9), np.int32)
    records = np.empty((2 * len(triples) + SPARE, 8), np.int32)
    heap, queue = np.zeros(len(touched) + 1, np.int64), np.empty(len(touched), np.int32)
    falls = np.empty((len(touched), 3), np.int32)
    place, size = np.zeros(union.edges.edges, np.int32), np.zeros(9, np.int64)
    ends = union.edges.low, union.edges.high
    lists = rows.begin, rows.length, rows.neighbour, rows.edge.view(np.uint32)
    found = np.empty((2, rows.widest + 1), np.uint32)
    state = union.key, union.count, union.remainder
    _begin(union.added, triples, union.key, union.change, place, touched, records, events, waiting, heap, size)
    while True:
        arrays = place, touched, records, events, waiting, heap, queue, falls
        why = _replay(ends, lists, state, *arrays, *found, size, most)
        if why != NO_ROOM:
            return falls[: size[FALLS] if why == FINISHED else 0], int(size[LOOKED])
        records = _more(records, size[RECORDS], size[MORE_RECORDS])
        touched = _more(touched, size[TOUCHED] + 1, size[MORE_TOUCHED])
        heap = _more(heap, heap[0] + 1, len(touched) + 1)
        queue, falls = _more(queue, 0, len(touched)), _more(falls, size[FALLS], len(touched))
