"""The steps of a replay that one thread runs: begin a level, let edges stand, and let edges fall.

An edge *falls early* if it stands when a level begins and has no more triangles than the level: it falls before all
other edges of the level. If the edge fell later, it would keep triangles alive of which no edge stays above the level.

If too many edges of a level would stand at once, the level is replayed in *parts*, which are ranges of times. Edges
fall early before each part, so that fewer edges stand.

The key of an edge that fell early is below all keys of the part that follows, but not unique. When the replay is done,
`place_early` gives the edge a time of its own.
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
"""Maximum entries of the lists that are made in one block, unless one edge alone may take more."""
PARTS = 4
"""A part in which too many edges would stand is shortened by this factor. After a part in which few edges began to
stand, the next part is twice as long.
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
"""Further indices in `size`. STEP is the next step; STOOD, STANDING and LISTED are the number of places given, of edges
that stand, and of places with lists; VISITED is the length of `visited`; BLOCK_STOP is the end of the places that get
lists next, ENTRIES_OF_BLOCK what these lists may take; LOOKED are the triangles that the first thread looked at;
MOST_ALONE and MOST_FEW are ALONE and FEW of `replay`, or less; EXPECTED is the result of `with_triangles_of`; AT_LEVEL
and IN_PART are the triangles of edges that began to stand at the level and in its part; MOST_IN_PART is a lower bound
of `most_in_part`; LENGTH is the number of times of a part, 0 for a whole level, LEAST_LENGTH its minimum; USED_BEFORE
are the entries of lists before the part; EARLY and EARLY_BEFORE are the edges that fell early, in all and before the
level; IN_ROWS and LOOKED_BEFORE are the edges in the rows and the triangles looked at when rows were last compacted.
"""


@cached_njit
def most_in_part(run):
    """The most triangles that edges which begin to stand in one part of a level may have: at least STOOD, since each
    part visits all places.
    """
    size = run.size
    return max(size[MOST_IN_PART], size[STOOD])


@cached_njit
def open_level(run):
    """Go on to the next part of the level, or to the next level at which triangles are due or edges fall. Copies `left`
    to `before` at the start of a level, and queues the edges that fall early.
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
    """Set the key at which the present part of the level ends. The last part ends with the level."""
    size, level_ends = run.size, run.level_ends
    level = size[LEVEL]
    last = (size[FROM] & PLACE) + size[LENGTH]
    if size[LENGTH] and last < level_ends[level]:
        size[TO] = (level << KEY_BITS) | last
    else:
        size[TO] = (level + 1) << KEY_BITS


@cached_njit
def shorten(run):
    """Shorten the present part of the level, and give the edges that began to stand in the part their old keys again.

    Returns False, and changes nothing, if the part would be too short. No edge may have fallen in the part, and no
    triangle ended.
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
    """Write the places with triangles that are due at the level to `visited`."""
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
    """Give the next places to edges that begin to stand."""
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
    """Choose the next places whose triangles are listed together, and compute how many entries these may take."""
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
    """Mark the edges at the places in `visited`, which fall at once. Returns the number of entries of their lists."""
    visited, size = run.visited, run.size
    bounds, falls = run.bounds, run.falls
    entries = 0
    for i in range(size[VISITED]):
        falls[visited[i]] = True
        entries += bounds[visited[i], 2] - bounds[visited[i], 0]
    return entries


@cached_njit
def close_fall(least, run):
    """Give keys to the edges at the places in `visited`, which fell just before the key `least`, in order of places.

    If `least` is of the level, the edges fell early and are appended to `early`. Otherwise they get the next times at
    the end of the level.
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
    """Add the gains from edges that fell to the counts, so that they do not mix with the gains of the next part."""
    size = run.size
    keep_gains_some(0, size[TOUCHED], run)
    size[TOUCHED] = 0


@cached_njit
def undo_early(run):
    """Make the edges stand again that fell early at the present level, since the replay stops at this level."""
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
        if time[high - 1] <= own:  # true for most edges, since edges mostly fall early when a level opens
            low = high
        while low < high:
            middle = (low + high) // 2
            if time[middle] <= own:
                low = middle + 1
            else:
                high = middle
        key[e] += low - first[level]


def place_early(key: LongArray, edges: IntArray) -> None:
    """Give the edges that fell early, in this order, times of their own. Later times of their levels grow."""
    if not len(edges):
        return
    next_key = key[edges] + 1  # ascending
    level, time = next_key >> KEY_BITS, next_key & PLACE
    first = np.searchsorted(level, np.arange(level[-1] + 2))
    _make_room(key, first, time)
    key[edges] = next_key + (np.arange(len(edges)) - first[level])


@cached_njit
def triangles_of(edges, run):
    """The sum of `Union.count` of some edges."""
    triangles, found = run.triangles, np.int64(0)
    for x in edges:
        found += triangles[x]
    return found


@cached_njit
def with_triangles_of(own, looked, most, most_here, run):
    """Add `own` to AT_LEVEL, the triangles of edges that began to stand at the level. Returns `looked` + `own` if this
    exceeds `most` or if AT_LEVEL exceeds `most_here`; else 0. `own` are the triangles of edges that are about to stand.
    """
    size = run.size
    size[AT_LEVEL] += own
    return looked + own if looked + own > most or size[AT_LEVEL] > most_here else 0
