"""Standing edges of a replay: added edges, and old edges that do not fall as scheduled. See `replay` for these terms.

Standing edges are numbered in the order in which they begin to stand. The number of an edge is its *place*. Each
standing edge has a list of its triangles, sorted by the level at which a triangle is *due*: the lower old level of its
other two edges. The triangle ends at this level if the edge of this level falls as scheduled.

A triangle with several standing edges is in the lists of all of them. The edge that began to stand last has the
triangle in the second part of its list, with the triangles that are due later. The other standing edges have the
triangle in the first part of their lists, with the triangles that were due before. They read it when they fall.

Functions whose names end in `some` work on a range of places or edges, in one thread of several.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...graph import KEY_BITS, AnyArray, IntArray, LongArray
from ...runtime.cache import cached_njit
from ..arrays.intrinsics import borrowed, fetch_add

STANDS = np.int64(1 << 62)
"""The key of a standing edge is this plus its place."""
PLACE = np.int64((1 << KEY_BITS) - 1)
"""Mask of the place in the key of a standing edge, and of the time in the key of another edge."""
NEVER = np.int32(2**31 - 1)
"""Higher than every level. It is the due level of an edge without further due triangles, and both the due level and the
number of triangles left of an edge that has fallen.
"""
LATER, GAINED = np.int64(1), np.int64(1 << 32)
"""Units of `gains` of an edge that is still to fall as scheduled. LATER is one more triangle whose other edges both are
later in the order, GAINED one more triangle whose other edges both have at least the edge's level.
"""
JOINING, TOUCHED, USED, FALLING, LEVEL, FROM, TO, FIRST_OF_LEVEL, FIRST_NEW = range(9)
"""Indices in `size`: the number of edges that will stand, of edges with gains, of entries in the lists, and of edges
that will fall; the level; the keys at which its present part starts and ends; the number of places given before the
level, and before the part.
"""


class Replay(NamedTuple):
    """The graph, its order, and the state of a replay. [places] is the axis of standing edges; see the module."""

    low: IntArray
    """[edges]"""
    high: IntArray
    """[edges]"""
    begin: LongArray
    """`begin`, `length`, `neighbour` and `edge` are those of `graph.Adjacency`."""
    length: IntArray
    neighbour: IntArray
    edge: AnyArray

    key: LongArray
    """[edges] `key`, `remainder` and `change` are those of `merging.Union`."""
    triangles: IntArray
    """[edges] `Union.count`."""
    remainder: IntArray
    change: IntArray

    member: IntArray
    """[places] the edge."""
    old: LongArray
    """[places] the edge's key before it stood."""
    bounds: LongArray
    """[places, 3] in `lists`: the start of the edge's list, of the part that is due later, and the end of the list."""
    due: IntArray
    """[places] the level at which the next triangles of the edge are due."""
    left: IntArray
    """[places] the number of the edge's triangles that have not ended."""
    before: IntArray
    """[places] the edge's new `Union.count` if it falls at the present level."""
    falls: AnyArray
    """[places] whether the edge falls in the present step."""
    early: IntArray
    """The places of edges that fell early, in the order in which they fell."""

    lists: AnyArray
    """[3, any length] for each triangle of a standing edge the other two edges, and the level at which it is due."""
    gains: LongArray
    """[edges] see LATER and GAINED."""
    queue: IntArray
    """Edges that will stand, or places of edges that will fall."""
    touched: IntArray
    """Edges with gains."""
    visited: IntArray
    """The places that the present step visits."""
    size: LongArray
    """Lengths of lists and other numbers; see JOINING, and STEP in `levels`."""
    level_ends: LongArray
    """[levels] one more than the last time of each level."""
    left_at: LongArray
    """[levels] the number of old edges that are left when the level begins."""

    to_f: AnyArray
    """[threads, widest + 1] `to_f` and `to_g` are scratch memory for the other two edges of triangles."""
    to_g: AnyArray
    due_of: LongArray
    """[threads, any length] scratch memory for the levels at which these triangles are due."""
    ends: LongArray
    """[threads, any length] scratch memory to sort the triangles by these levels."""


@cached_njit
def _search_alive(neighbour, edge, a, a_stop, b, b_stop, key, least, to_f, to_g):
    """As `search_shorter`, but finds only triangles whose other two edges have at least the key `least`."""
    hits = 0
    b = np.uintp(b)
    b_stop = np.uintp(b_stop)
    for q in range(np.uintp(a), np.uintp(a_stop)):
        f = edge[q]
        if key[f] < least:
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
        if neighbour[b] == w and key[edge[b]] >= least:
            to_f[hits] = f
            to_g[hits] = edge[b]
            hits += 1
    return hits


@cached_njit
def _gain(y, what, level, gains, remainder, queue, touched, size):
    """Add `what` to the gains of edge y of the level. Queue y at the gain after which it cannot fall as scheduled."""
    before = fetch_add(gains, y, what)
    if before == 0:
        touched[fetch_add(size, TOUCHED, np.int64(1))] = y
    if what & PLACE and remainder[y] + (before & PLACE) == level:
        queue[fetch_add(size, JOINING, np.int64(1))] = y


@cached_njit
def list_some(start, stop, thread, run):
    """List the triangles of the edges at places `start` to `stop` - 1, which begin to stand. Returns their number.

    Gives gains from these triangles to edges of the present part of the level. If two edges of a triangle begin to
    stand at once, the edge of the lower place takes the other for scheduled, so that the third edge gains the triangle
    once. For added edges, which stand before all levels (level -1), adds their triangles to `change` instead.
    """
    lists, gains, queue, touched, size = run.lists, run.gains, run.queue, run.touched, run.size
    low, high, begin, length = borrowed(run.low), borrowed(run.high), borrowed(run.begin), borrowed(run.length)
    neighbour, edge = borrowed(run.neighbour), borrowed(run.edge)
    key, remainder, change = borrowed(run.key), borrowed(run.remainder), borrowed(run.change)
    member, old, bounds = borrowed(run.member), borrowed(run.old), borrowed(run.bounds)
    due, left = borrowed(run.due), borrowed(run.left)
    to_f, to_g = borrowed(run.to_f)[thread], borrowed(run.to_g)[thread]
    due_of, ends = borrowed(run.due_of)[thread], borrowed(run.ends)[thread]
    level, least, end = size[LEVEL], size[FROM], size[TO]
    looked = 0
    for place in range(start, stop):
        x = member[place]
        a = begin[low[x]]
        a_stop = a + length[low[x]]
        b = begin[high[x]]
        b_stop = b + length[high[x]]
        if a_stop - a > b_stop - b:
            a, a_stop, b, b_stop = b, b_stop, a, a_stop
        kept = _search_alive(neighbour, edge, a, a_stop, b, b_stop, key, least, to_f, to_g)
        looked += kept
        for h in range(kept):
            f = to_f[h]
            g = to_g[h]
            kf = key[f]
            kg = key[g]
            at_f = np.int64(NEVER)
            at_g = np.int64(NEVER)
            if kf < STANDS:
                at_f = kf >> KEY_BITS
            elif kf & PLACE > place:
                at_f = np.int64(level)
            if kg < STANDS:
                at_g = kg >> KEY_BITS
            elif kg & PLACE > place:
                at_g = np.int64(level)
            due_of[h] = min(at_f, at_g)
            if level < 0:
                if (kf < STANDS or kf & PLACE > place) and (kg < STANDS or kg & PLACE > place):
                    fetch_add(change, x, np.int32(1))
                    fetch_add(change, f, np.int32(1))
                    fetch_add(change, g, np.int32(1))
                continue
            for _ in range(2):
                if old[place] < kf < end:
                    own_g = kg
                    if kg >= STANDS and kg & PLACE > place:
                        own_g = old[kg & PLACE]
                    if own_g > kf:
                        _gain(f, LATER, level, gains, remainder, queue, touched, size)
                f, g = g, f
                kf, kg = kg, kf
        # Counting sort by the due level. With `kept` triangles the edge falls at level `kept` at the latest, so
        # triangles that are due at a higher level are never due.
        levels = kept + 2 - level
        ends[: levels + 1] = 0
        for h in range(kept):
            due_of[h] = min(due_of[h], kept + 1) - level
            ends[due_of[h] + 1] += 1
        for i in range(levels):
            ends[i + 1] += ends[i]
        first = fetch_add(size, USED, np.int64(kept))
        bounds[place, 0] = first
        bounds[place, 1] = first + ends[1]
        bounds[place, 2] = first + kept
        for h in range(kept):
            to = first + ends[due_of[h]]
            ends[due_of[h]] += 1
            lists[0, to] = to_f[h]
            lists[1, to] = to_g[h]
            lists[2, to] = due_of[h] + level
        left[place] = kept
        due[place] = next_due(place, bounds, lists)
    return looked


@cached_njit
def next_due(place, bounds, lists):
    """The level at which the next triangles of a standing edge are due, NEVER if there are none."""
    at = bounds[place, 1]
    kept = bounds[place, 2] - bounds[place, 0]
    if at == bounds[place, 2] or np.int64(lists[2, at]) > kept:
        return NEVER
    return np.int32(lists[2, at])


@cached_njit
def announce_some(start, stop, run):
    """Give gains to edges of the level, from the triangles of visited standing edges that are due in the present part.

    A standing edge that was of a lower level gives GAINED and LATER. A standing edge of the level itself gives LATER
    only, as the counts of the level's other edges include it. If two edges of the triangle stand, only the edge that
    began to stand later gives gains.
    """
    lists, gains, queue, touched, visited, size = run.lists, run.gains, run.queue, run.touched, run.visited, run.size
    key, remainder = borrowed(run.key), borrowed(run.remainder)
    bounds = borrowed(run.bounds)
    level, least, end = size[LEVEL], size[FROM], size[TO]
    for i in range(start, stop):
        place = visited[i]
        gained = GAINED if place < size[FIRST_OF_LEVEL] else np.int64(0)
        h = bounds[place, 1]
        while h < bounds[place, 2] and lists[2, h] == level:
            f = lists[0, h]
            g = lists[1, h]
            h += 1
            kf = key[f]
            kg = key[g]
            if kg < kf:
                f, g = g, f
                kf, kg = kg, kf
            if kf < least or kf >= end or (kg >= STANDS and kg & PLACE > place):
                continue
            _gain(f, gained | LATER, level, gains, remainder, queue, touched, size)
            if gained and kg >> KEY_BITS == level:
                _gain(g, GAINED, level, gains, remainder, queue, touched, size)


@cached_njit
def end_some(start, stop, run):
    """Subtract from `left` the triangles that are due in the present part and have an edge that falls as scheduled."""
    lists, visited, size = run.lists, run.visited, run.size
    key = borrowed(run.key)
    bounds, due, left = borrowed(run.bounds), borrowed(run.due), borrowed(run.left)
    level, least, end = size[LEVEL], size[FROM], size[TO]
    for i in range(start, stop):
        place = visited[i]
        h = bounds[place, 1]
        ended = np.int32(0)
        while h < bounds[place, 2] and lists[2, h] == level:
            kf = key[lists[0, h]]
            kg = key[lists[1, h]]
            h += 1
            if min(kf, kg) < least or min(kf, kg) >= end:
                continue
            other = max(kf, kg)
            if other >= STANDS and other & PLACE < size[FIRST_NEW]:
                if other & PLACE > place:
                    continue
                fetch_add(left, other & PLACE, np.int32(-1))
            ended += 1
        fetch_add(left, place, -ended)
        if end >> KEY_BITS > level:
            bounds[place, 1] = h
            due[place] = next_due(place, bounds, lists)


@cached_njit
def count_some(start, stop, run):
    """Write `left` and `before` of edges that began to stand in the present part of the level.

    `left` is the number of triangles whose other edges fall after the part or stand. Drops other triangles that were
    due from the lists.
    """
    lists, gains, size = run.lists, run.gains, run.size
    key, count = borrowed(run.key), borrowed(run.triangles)
    member, bounds, due = borrowed(run.member), borrowed(run.bounds), borrowed(run.due)
    left, before = borrowed(run.left), borrowed(run.before)
    end = size[TO]
    for place in range(start, stop):
        x = member[place]
        first = bounds[place, 1]
        for h in range(bounds[place, 1] - 1, bounds[place, 0] - 1, -1):
            f = lists[0, h]
            g = lists[1, h]
            if min(key[f], key[g]) >= end:
                first -= 1
                lists[0, first] = f
                lists[1, first] = g
        bounds[place, 0] = first
        if end >> KEY_BITS == size[LEVEL]:  # some of these may be due in later parts of the level
            bounds[place, 1] = first
            due[place] = next_due(place, bounds, lists)
        left[place] = bounds[place, 2] - first
        before[place] = count[x] + np.int32(gains[x] >> KEY_BITS)


@cached_njit
def keep_gains_some(start, stop, run):
    """Add the gains to the counts of edges that fall as scheduled, and clear all gains."""
    gains, touched = run.gains, run.touched
    key, count, remainder = borrowed(run.key), borrowed(run.triangles), borrowed(run.remainder)
    for i in range(start, stop):
        y = touched[i]
        if key[y] < STANDS:
            count[y] += np.int32(gains[y] >> KEY_BITS)
            remainder[y] += np.int32(gains[y] & PLACE)
        gains[y] = 0


@cached_njit
def fall_some(start, stop, fallen, least, run):
    """Write the counts of edges at places `fallen`, which fall at once, and take their triangles from standing edges.

    These edges fall just before the edges whose key is at least `least`. Edges of the level with such a key gain the
    triangles.
    """
    lists, gains, queue, touched, size = run.lists, run.gains, run.queue, run.touched, run.size
    key, count, remainder = borrowed(run.key), borrowed(run.triangles), borrowed(run.remainder)
    member, bounds, left = borrowed(run.member), borrowed(run.bounds), borrowed(run.left)
    before, falls = borrowed(run.before), borrowed(run.falls)
    level = size[LEVEL]
    for i in range(start, stop):
        place = fallen[i]
        x = member[place]
        gains_others = place < size[FIRST_OF_LEVEL]
        later = np.int32(0)
        for h in range(bounds[place, 0], bounds[place, 2]):
            f = lists[0, h]
            g = lists[1, h]
            kf = key[f]
            kg = key[g]
            if min(kf, kg) < least:
                continue
            pf = kf & PLACE
            pg = kg & PLACE
            f_falls = kf >= STANDS and falls[pf]
            g_falls = kg >= STANDS and falls[pg]
            # Edges that fall at once fall in the order of their places. The first of them ends their triangle.
            if (f_falls and pf < place) or (g_falls and pg < place):
                continue
            later += 1
            # If the third edge is of the level and stands, both edges gained this triangle when it began to stand.
            if gains_others and kf >> KEY_BITS == level and (kg < STANDS or pg < size[FIRST_OF_LEVEL]):
                _gain(f, GAINED, level, gains, remainder, queue, touched, size)
            if gains_others and kg >> KEY_BITS == level and (kf < STANDS or pf < size[FIRST_OF_LEVEL]):
                _gain(g, GAINED, level, gains, remainder, queue, touched, size)
            if kf >= STANDS and not f_falls and fetch_add(left, pf, np.int32(-1)) == level + 1:
                queue[fetch_add(size, FALLING, np.int64(1))] = pf
            if kg >= STANDS and not g_falls and fetch_add(left, pg, np.int32(-1)) == level + 1:
                queue[fetch_add(size, FALLING, np.int64(1))] = pg
        remainder[x] = later
        count[x] = before[place]
