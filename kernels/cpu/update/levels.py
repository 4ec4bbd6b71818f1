"""The steps of a replay that one thread runs: begin a level, let edges stand, and let edges fall.

An edge *falls early* if it stands when a level begins and has no more triangles than the level: it falls before all
other edges of the level. If it fell later, it would keep triangles in which no edge stays.

A level is replayed in *parts*, by time, where many of its edges would stand at once. Edges fall early before each part,
so that fewer edges stand.

The key of an edge that falls early is below all keys of the part that follows. Its place in the order is known once the
replay is done.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from ...graph import KEY_BITS, IntArray, LongArray
from ...runtime.cache import cached_njit
from .standing import (
    FALLING,
    FIRST_NEW,
    FIRST_OF_LEVEL,
    FROM,
    JOINING,
    LEVEL,
    NEVER,
    PLACE,
    STANDS,
    TO,
    TOUCHED,
    USED,
    keep_gains_some,
)

ROOM = 1 << 20
"""Triangles of edges that begin to stand at once, unless one edge may have more."""
PARTS = 4
"""A part of a level in which too many edges would stand is cut into so many. One with few is followed by a longer one.
"""
(
    STEP,
    STOOD,
    STANDING,
    LISTED,
    VISITED,
    BLOCK_STOP,
    ENTRIES_OF_BLOCK,
    LOOKED,
    MOST_ALONE,
    MOST_FEW,
    EXPECTED,
    AT_LEVEL,
    IN_PART,
    MOST_IN_PART,
    LENGTH,
    LEAST_LENGTH,
    USED_BEFORE,
    EARLY,
    EARLY_BEFORE,
    IN_ROWS,
    LOOKED_BEFORE,
    SIZES,
) = range(9, 31)
"""Further places in `size`: the next step; the edges that stood or stand, those that stand, and those that have lists;
the chosen edges in `visited`; the end of the block of edges that get lists next, and the entries that these may take;
triangles that the first thread looked at; ALONE and FEW, or less; the triangles with those of edges that are about to
stand, if they are too many; the triangles of edges that began to stand at the level, and in the part of the level, and
the most of a part or less; the times of a part, 0 for a whole level, and the least; entries of lists before the part;
the edges that fell early, and those of them that did before the level; the edges in the rows, and the triangles looked
at when they were last counted.
"""


@cached_njit
def most_in_part(run):
    """Most triangles of edges that begin to stand in a part of a level. Each part visits all edges that stood."""
    size = run.size
    return max(size[MOST_IN_PART], size[STOOD])


@cached_njit
def open_level(run):
    """Go on to the next part of the level, or to the next level at which triangles are due or edges fall. Keeps all
    counts of before the level, and queues the edges that fall early.
    """
    queue, size = run.queue, run.size
    due, left, before = run.due, run.left, run.before
    level = NEVER
    for place in range(size[STOOD]):
        level = min(level, due[place], left[place])
    if level == size[LEVEL]:
        size[FROM] = size[TO]
        if size[IN_PART] * PARTS < most_in_part(run):
            size[LENGTH] *= 2
    else:
        size[LEVEL] = level
        size[FROM] = size[LEVEL] << KEY_BITS
        size[FIRST_OF_LEVEL] = size[STOOD]
        size[AT_LEVEL] = 0
        size[LENGTH] = 0
        size[EARLY_BEFORE] = size[EARLY]
        before[: size[STOOD]] = left[: size[STOOD]]
    for place in range(size[STOOD]):
        if left[place] <= level:
            queue[size[FALLING]] = place
            size[FALLING] += 1
    set_end(run)
    size[FIRST_NEW] = size[STOOD]
    size[USED_BEFORE] = size[USED]
    size[IN_PART] = 0


@cached_njit
def set_end(run):
    """The key at which the present part of the level ends: that of the next level for the last part."""
    size, level_ends = run.size, run.level_ends
    level = size[LEVEL]
    last = (size[FROM] & PLACE) + size[LENGTH]
    if size[LENGTH] and last < level_ends[level]:
        size[TO] = (level << KEY_BITS) | last
    else:
        size[TO] = (level + 1) << KEY_BITS


@cached_njit
def shorten(run):
    """Cut the part of the level, and have its edges no longer stand. False if it is too short.

    No edge may have fallen in the part, and no triangle ended.
    """
    gains, touched, size, level_ends = run.gains, run.touched, run.size, run.level_ends
    level, key, member, old = size[LEVEL], run.key, run.member, run.old
    stop = size[TO] & PLACE if size[TO] >> KEY_BITS == level else level_ends[level]
    length = (stop - (size[FROM] & PLACE)) // PARTS
    if length < size[LEAST_LENGTH]:
        return False
    size[LENGTH] = length
    set_end(run)
    for place in range(size[FIRST_NEW], size[STOOD]):
        key[member[place]] = old[place]
    size[STANDING] -= size[STOOD] - size[FIRST_NEW]
    size[STOOD] = size[LISTED] = size[FIRST_NEW]
    size[USED] = size[USED_BEFORE]
    for i in range(size[TOUCHED]):
        gains[touched[i]] = 0
    size[TOUCHED] = size[JOINING] = 0
    size[AT_LEVEL] -= size[IN_PART]
    size[IN_PART] = 0
    return True


@cached_njit
def find_due(run):
    """The places with triangles that are due at the level."""
    visited, size = run.visited, run.size
    due = run.due
    found = 0
    for place in range(size[STOOD]):
        if due[place] == size[LEVEL]:
            visited[found] = place
            found += 1
    size[VISITED] = found


@cached_njit
def stand(edges, run):
    """Have edges stand at the next places."""
    size = run.size
    key, member, old, falls = run.key, run.member, run.old, run.falls
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
def open_block(run):
    """The next places whose triangles are to be listed together, and the entries that these may take."""
    size = run.size
    low, high, length, member = run.low, run.high, run.length, run.member
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
def open_fall(run):
    """Mark the edges that fall at once, which are in `visited`. Returns the entries of their lists."""
    visited, size = run.visited, run.size
    bounds, falls = run.bounds, run.falls
    entries = 0
    for i in range(size[VISITED]):
        falls[visited[i]] = True
        entries += bounds[visited[i], 2] - bounds[visited[i], 0]
    return entries


@cached_njit
def close_fall(least, run):
    """Edges that fell just before the key `least` go to the list of those that fell early, or, if this is the end of
    the level, to the end of the level.

    Their order is that of their places.
    """
    visited, size, level_ends = run.visited, run.size, run.level_ends
    key, member, due, left, falls, list_early = run.key, run.member, run.due, run.left, run.falls, run.early
    level = size[LEVEL]
    for i in range(size[VISITED]):
        place = visited[i]
        if least >> KEY_BITS == level:
            key[member[place]] = least - 1
            list_early[size[EARLY]] = place
            size[EARLY] += 1
        else:
            key[member[place]] = (level << KEY_BITS) | level_ends[level]
            level_ends[level] += 1
        falls[place] = False
        due[place] = NEVER
        left[place] = NEVER
    size[STANDING] -= size[VISITED]


@cached_njit
def close_falls(run):
    """Keep the gains from edges that fell, so that those of the next part of the level are apart from them."""
    size = run.size
    keep_gains_some(0, size[TOUCHED], run)
    size[TOUCHED] = 0


@cached_njit
def undo_early(run):
    """Have the edges stand again that fell early at the level at which the replay stops."""
    size = run.size
    key, member, early = run.key, run.member, run.early
    for i in range(size[EARLY_BEFORE], size[EARLY]):
        key[member[early[i]]] = STANDS | early[i]
    size[EARLY] = size[EARLY_BEFORE]


@cached_njit(parallel=True)
def _make_room(key, first, time):
    for e in prange(key.size):
        level = key[e] >> KEY_BITS
        if level < 0 or level >= first.size - 1 or first[level] == first[level + 1]:
            continue
        own = key[e] & PLACE
        low, high = first[level], first[level + 1]
        if time[high - 1] <= own:  # as for most: edges mostly fall early when a level opens
            low = high
        while low < high:
            middle = (low + high) // 2
            if time[middle] <= own:
                low = middle + 1
            else:
                high = middle
        key[e] += low - first[level]


def place_early(key: LongArray, edges: IntArray) -> None:
    """Give edges that fell early, in this order, their times. Later times of their levels grow."""
    if not len(edges):
        return
    next_key = key[edges] + 1  # ascending
    level, time = next_key >> KEY_BITS, next_key & PLACE
    first = np.searchsorted(level, np.arange(level[-1] + 2))
    _make_room(key, first, time)
    key[edges] = next_key + (np.arange(len(edges)) - first[level])


@cached_njit
def triangles_of(edges, run):
    """The triangles of edges in their levels."""
    triangles, found = run.triangles, np.int64(0)
    for x in edges:
        found += triangles[x]
    return found


@cached_njit
def with_triangles_of(own, looked, most, most_here, run):
    """The triangles that are looked at, after `looked`, once edges with `own` triangles stand, if they are more than
    `most`, or those of all edges that began to stand at the level more than `most_here`; else 0.
    """
    size = run.size
    size[AT_LEVEL] += own
    return looked + own if looked + own > most or size[AT_LEVEL] > most_here else 0
