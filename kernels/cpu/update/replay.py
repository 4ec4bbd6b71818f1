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

from ...graph import Adjacency, IntArray
from ...runtime.cache import cached_njit
from .heap import pop, push
from .merging import Union
from .order_counts import KEY_BITS

STANDS = np.int64(2**63 - 1)
"""Key of an added or delayed edge that stands."""
EDGE, COUNT, HEAD, NEXT, PREVIOUS, SINCE, START, STATE, OLD = range(9)
"""Columns of a touched edge: its number; triangles that stand; its first list entry; its neighbours in a list of edges
(events of a level, or edges of equal count); the last level at which it lost a triangle and the count before; its state
and its level before.
"""
AWAITED, DELAYED, FALLING, FALLEN = range(4)
"""States: to be checked at its time, stands with a count, is queued to fall, has fallen."""
TOUCHED, RECORDS, FALLS, QUEUED, STANDING, AWAITING = range(6)
"""Places in `size`: touched edges, records, edges that fell anew, the end of the queue, edges that stand, events."""
DONE, LEAST = 6, 7
"""Columns of a record: 1 when it has ended, and the least level that its edges had before. Columns 0 to 2 are its
edges, 3 to 5 the next entries of their lists. Entry 3 x record + p + 1 is that of its edge p; 0 ends a list.
"""


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


@cached_njit
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


@cached_njit
def _list(i, record, p, touched, records):
    """Put a record, whose edge p is the touched edge i, into the list of i."""
    records[record, 3 + p] = touched[i, HEAD]
    touched[i, HEAD] = 3 * record + p + 1


@cached_njit
def _await(x, record, p, level, key, place, touched, records, events, heap, size):
    """List a record at an edge that is still to fall as scheduled, and have that edge checked at its time."""
    new = place[x] == 0
    i = _touch(x, key, place, touched, size)
    _list(i, record, p, touched, records)
    if new:
        size[AWAITING] += 1
        own = touched[i, OLD]
        if own == level:
            push(heap, ((key[x] & 0x7FFFFFFF) << KEY_BITS) | i)
        else:
            touched[i, NEXT] = events[own]
            events[own] = i


@cached_njit
def _stand(i, touched, waiting):
    """Put a standing edge among those of its count."""
    count = touched[i, COUNT]
    after = waiting[count]
    touched[i, NEXT] = after
    touched[i, PREVIOUS] = 0
    if after:
        touched[after, PREVIOUS] = i
    waiting[count] = i


@cached_njit
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


@cached_njit
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


@cached_njit
def _fall(level, after, key, place, touched, records, waiting, queue, falls, count, remainder, size):
    """Let the queued edges fall, and those that fall by it."""
    first = 0
    while first < size[QUEUED]:
        i = queue[first]
        first += 1
        x = touched[i, EDGE]
        remainder[x] = touched[i, COUNT]
        if touched[i, OLD] < level:
            count[x] = touched[i, START] if touched[i, SINCE] == level else touched[i, COUNT]
        _end_records(i, level, key, place, touched, records, waiting, queue, count, size)
        touched[i, STATE] = FALLEN
        key[x] = -1
        n = size[FALLS]
        falls[n, 0] = x
        falls[n, 1] = level
        falls[n, 2] = after
        size[FALLS] += 1
        size[STANDING] -= 1
    size[QUEUED] = 0


@cached_njit
def _more(array, used, room):
    """An array with at least `room` rows and the first `used` rows of this one."""
    larger = np.empty((max(room, 2 * array.shape[0]), array.shape[1]), array.dtype)
    larger[:used] = array[:used]
    return larger


@cached_njit
def _more_numbers(array, used, room):
    larger = np.empty(max(room, 2 * array.size), array.dtype)
    larger[:used] = array[:used]
    return larger


@cached_njit
def _replay(added, triples, low, high, begin, length, neighbour, edge, key, count, remainder, change, highest, most):
    """Returns the edges that fell anew, with levels and times, and the triangles looked at."""
    widest = 0
    for v in range(length.size):
        widest = max(widest, length[v])
    to_f = np.empty(widest + 1, np.uint32)
    to_g = np.empty(widest + 1, np.uint32)
    place = np.zeros(low.size, np.int32)
    size = np.zeros(6, np.int64)
    touched = np.empty((2 * added.size + triples.shape[0] + 1024, 9), np.int32)
    records = np.empty((2 * triples.shape[0] + 1024, 8), np.int32)
    levels = max(highest, widest) + 2
    events = np.zeros(levels, np.int32)
    waiting = np.zeros(levels, np.int32)
    heap = np.zeros(touched.shape[0] + 1, np.int64)
    queue = np.empty(touched.shape[0], np.int32)
    falls = np.empty((touched.shape[0], 3), np.int32)
    looked = 0
    for x in added:
        key[x] = -1
        i = _touch(x, key, place, touched, size)
        touched[i, STATE] = DELAYED
        key[x] = STANDS
    size[STANDING] = added.size
    for record in range(triples.shape[0]):
        size[RECORDS] += 1
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
    level = 0
    while size[STANDING]:
        if not events[level] and not waiting[level]:
            level += 1
            continue
        i = waiting[level]
        while i:
            queue[size[QUEUED]] = i
            size[QUEUED] += 1
            touched[i, STATE] = FALLING
            i = touched[i, NEXT]
        waiting[level] = 0
        _fall(level, -1, key, place, touched, records, waiting, queue, falls, count, remainder, size)
        i = events[level]
        events[level] = 0
        while i:
            push(heap, ((key[touched[i, EDGE]] & 0x7FFFFFFF) << KEY_BITS) | i)
            i = touched[i, NEXT]
        while heap[0]:
            item = pop(heap)
            i = np.int32(item & 0xFFFFFFFF)
            time = np.int32(item >> KEY_BITS)
            size[AWAITING] -= 1
            x = touched[i, EDGE]
            now = key[x]
            stand = remainder[x]
            entry = touched[i, HEAD]
            while entry:
                record = (entry - 1) // 3
                stand += 1 - records[record, DONE]
                entry = records[record, 3 + (entry - 1) % 3]
            if stand <= level:
                remainder[x] = stand
                _end_records(i, level, key, place, touched, records, waiting, queue, count, size)
                touched[i, STATE] = FALLEN
                _fall(level, time, key, place, touched, records, waiting, queue, falls, count, remainder, size)
                continue
            new = remainder[x]
            if size[RECORDS] + new > records.shape[0]:
                records = _more(records, size[RECORDS], size[RECORDS] + new)
            if size[TOUCHED] + stand + 1 > touched.shape[0]:
                touched = _more(touched, size[TOUCHED] + 1, size[TOUCHED] + stand + 1)
                heap = _more_numbers(heap, heap[0] + 1, touched.shape[0] + 1)
                queue = _more_numbers(queue, 0, touched.shape[0])
                falls = _more(falls, size[FALLS], touched.shape[0])
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
            looked += hits
            if looked > most:
                return falls[:0], looked
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
                    if key[f] < key[g]:
                        _await(f, record, 1, level, key, place, touched, records, events, heap, size)
                    else:
                        _await(g, record, 2, level, key, place, touched, records, events, heap, size)
        level += 1
    return falls[: size[FALLS]], looked


def replay(union: Union, rows: Adjacency, triples: IntArray, highest: int, most: int) -> tuple[IntArray, int]:
    """Bring the order to the edges with the added ones; changes the arrays of `union`.

    `triples` are the triangles of added edges; `highest` is the highest level before. Returns the edges that fell anew
    in the order in which they fell, int32 [edges, 3]: edge, level, time of the scheduled edge after which it fell (-1:
    before all of the level); and the number of triangles looked at. Stops when that exceeds `most`.
    """
    arrays = union.edges.low, union.edges.high, rows.begin, rows.length, rows.neighbour, rows.edge.view(np.uint32)
    state = union.key, union.count, union.remainder, union.change
    falls, looked = _replay(union.added, triples, *arrays, *state, highest, most)
    return falls, looked
