"""Edges that stand while a schedule is replayed: added ones, and old ones that do not fall at their old level.

Standing edges are numbered in the order in which they begin to stand. The number of an edge is its *place*. Each edge
has a list of its triangles, ascending by the level at which a triangle is *due*: the least old level of its other two
edges, at which the triangle may end.

A triangle with several standing edges is in the lists of all of them. Only the edge that began to stand last has it
among the triangles that are due later. The other edges have it among those that were due before, and read it there when
they fall.

Functions whose names end in `some` work on a range of places or edges, in one thread of several.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...graph import KEY_BITS, AnyArray, IntArray, LongArray
from ...runtime.cache import cached_njit
from ..arrays.intrinsics import borrowed, fetch_add

STANDS = np.int64(1 << 62)
"""Keys of standing edges are this and their place."""
PLACE = np.int64((1 << KEY_BITS) - 1)
"""The place in the key of a standing edge."""
NEVER = np.int32(2**31 - 1)
"""A level that no edge has: the due level and the count of an edge that has fallen."""
LATER, GAINED = np.int64(1), np.int64(1 << 32)
"""Gains of an edge that is still to fall as scheduled: a triangle whose other edges are now later, and one whose other
edges now have at least its level.
"""
JOINING, TOUCHED, USED, FALLING, LEVEL, FROM, TO, FIRST_OF_LEVEL, FIRST_NEW = range(9)
"""Places in `size`: edges that will stand, edges with gains, entries of lists, edges that will fall; the level; the
keys at which its present part starts and ends; and the edges that stood before the level, and before the part.
"""


class Replay(NamedTuple):
    """The graph, its order, and the state of a replay. Standing edges have places; see above."""

    low: IntArray
    """[edges]"""
    high: IntArray
    """[edges]"""
    begin: LongArray
    """This and the following arrays are those of `graph.Adjacency`."""
    length: IntArray
    neighbour: IntArray
    edge: AnyArray

    key: LongArray
    """[edges] This and the following arrays are those of `merging.Union`."""
    triangles: IntArray
    """`Union.count`."""
    remainder: IntArray
    change: IntArray

    member: IntArray
    """[places] the edge."""
    old: LongArray
    """[places] its key before it stood."""
    bounds: LongArray
    """[places, 3] where its list starts, where the triangles that are due begin, and where the list ends."""
    due: IntArray
    """[places] the level at which its next triangles are due."""
    left: IntArray
    """[places] its triangles."""
    before: IntArray
    """[places] its count before the part of the level at which it falls or stays."""
    falls: AnyArray
    """[places] whether it falls at present."""
    early: IntArray
    """The places of edges that fell early, in this order."""

    lists: AnyArray
    """[3, any length] the other edges of the triangles of standing edges, and the levels at which these are due."""
    gains: LongArray
    """[edges] see LATER and GAINED."""
    queue: IntArray
    """Edges that will stand, or places of edges that will fall."""
    touched: IntArray
    """Edges with gains."""
    visited: IntArray
    """The places of a step."""
    size: LongArray
    """Lengths of lists and other numbers; see JOINING, and `levels` for further ones."""
    level_ends: LongArray
    """[levels] the times at which each level ends."""
    left_at: LongArray
    """[levels] the edges that are left at each level."""

    to_f: AnyArray
    """[threads, widest + 1] scratch memory for the other two edges of triangles."""
    to_g: AnyArray
    due_of: LongArray
    """[threads, any length] scratch memory for the levels at which they are due."""
    ends: LongArray


@cached_njit
def _search_alive(neighbour, edge, a, a_stop, b, b_stop, key, least, to_f, to_g):
    """As `search_shorter`, only for triangles whose other edges have at least the key `least`."""
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
    """Add to the gains of an edge of the level. The gain with which it can no longer fall as scheduled queues it."""
    before = fetch_add(gains, y, what)
    if before == 0:
        touched[fetch_add(size, TOUCHED, np.int64(1))] = y
    if what & PLACE and remainder[y] + (before & PLACE) == level:
        queue[fetch_add(size, JOINING, np.int64(1))] = y


@cached_njit
def list_some(start, stop, thread, run):
    """List the triangles of the edges at some places, which begin to stand in a part of a level; -1 for added edges.

    Edges that begin with a later place have gains from them alone where both begin at once.
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
        # Counting sort by the due level. The edge falls at level `kept` at last: what is due later is never due.
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
    """The level at which the next triangles of a standing edge are due."""
    at = bounds[place, 1]
    kept = bounds[place, 2] - bounds[place, 0]
    if at == bounds[place, 2] or np.int64(lists[2, at]) > kept:
        return NEVER
    return np.int32(lists[2, at])


@cached_njit
def announce_some(start, stop, run):
    """Give the gains from the triangles that are due in the part of the level to the edges of the level.

    What an edge has that was of the level itself is no gain of others of the level. If two edges stand, the triangle is
    of the one that began later.
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
    """End the triangles that are due in the part of the level and have an edge that falls as scheduled."""
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
    """Count the triangles of edges that stand since this part of the level, among all edges that are later or stand.

    Leaves the others out of the lists.
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
    """Write the counts of edges that fall at once, and take their triangles from standing edges.

    They fall just before the edges with the key `least` or more. Those of the level among these gain the triangles.
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
            # Edges that fall at once do so in the order of their places. The first one ends their triangle.
            if (f_falls and pf < place) or (g_falls and pg < place):
                continue
            later += 1
            # An edge of the level that stands was given its triangles, and so was the third edge then.
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
