"""Two words for each edge, one for each of its shards: what one group has to tell another of the edges of both.

Both groups have the same edges between their classes in the same order, so that only the words travel, in blocks.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from .cut import class_of


@njit(parallel=True, cache=True, nogil=True)
def give_sides(low, high, vertices, shards, group_of, rank, at_low, at_high, cursor, given, count):
    """Write the next words for each other group.

    `group_of` [classes] is the group of each class, `given` [groups, block] receives the words of this group's shards,
    `count` [groups] how many there are, and `cursor` [groups] int64 is the edge that comes next.
    """
    for g in prange(cursor.size):
        listed = np.int64(0)
        e = cursor[g]
        while g != rank and e < low.size and listed < given.shape[1]:
            a = group_of[class_of(low[e], vertices, shards)]
            b = group_of[class_of(high[e], vertices, shards)]
            if a == rank and b == g:
                given[g, listed] = at_low[e]
                listed += 1
            elif a == g and b == rank:
                given[g, listed] = at_high[e]
                listed += 1
            e += 1
        cursor[g] = e if g != rank else low.size
        count[g] = listed


@njit(parallel=True, cache=True, nogil=True)
def take_sides(low, high, vertices, shards, group_of, rank, words, start, cursor, at_low, at_high):
    """Read the words of all other groups, `words[start[g]]` to `words[start[g + 1]]`, into the sides that they have.

    Gives how many words of each group were expected and not there.
    """
    absent = np.zeros(cursor.size, np.int64)
    for g in prange(cursor.size):
        i = start[g]
        e = cursor[g]
        while i < start[g + 1] and e < low.size:
            a = group_of[class_of(low[e], vertices, shards)]
            b = group_of[class_of(high[e], vertices, shards)]
            if a == rank and b == g:
                at_high[e] = words[i]
                i += 1
            elif a == g and b == rank:
                at_low[e] = words[i]
                i += 1
            e += 1
        cursor[g] = e
        absent[g] = start[g + 1] - i
    return absent


@njit(parallel=True, cache=True, nogil=True)
def link_halves(low, high, vertices, shards, first, half_start, edge, at_low, at_high, partner):
    """Note for each half the number of the edge's other half within its shard, its own for an edge inside a class.

    `at_low`, `at_high` are those of `build_rows`, with the words of the other groups.
    """
    for s in prange(half_start.size - 1):
        own = np.uint32(first + s)
        for h in range(half_start[s], half_start[s + 1]):
            e = edge[h]
            here = class_of(low[e], vertices, shards) == own
            partner[h] = (at_high[e] if here else at_low[e]) - np.uint32(1)


@njit(parallel=True, cache=True, nogil=True)
def halves_by_side(low, high, vertices, shards, first, half_start, edge, count, standing, at_low, at_high):
    """Write the counts of the halves of edges that stand beside their edges, by the side that they are on.

    An edge inside a class has its count on the high side. Other words of `at_low` and `at_high` stay.
    """
    for s in prange(half_start.size - 1):
        own = np.uint32(first + s)
        for h in range(half_start[s], half_start[s + 1]):
            e = edge[h]
            value = np.uint32(count[h]) if count[h] > standing else np.uint32(0)
            if class_of(high[e], vertices, shards) == own:
                at_high[e] = value
            else:
                at_low[e] = value


@njit(parallel=True, cache=True, nogil=True)
def certify(low, high, vertices, shards, first, half_start, edge, count, standing, gone, level, at_low, at_high):
    """Replace the words of each edge whose high endpoint is of the group by the ends of the interval of its λ.

    That is λ twice for an edge that left, else `level` and the sum of its halves.
    """
    for s in prange(half_start.size - 1):
        own = np.uint32(first + s)
        for h in range(half_start[s], half_start[s + 1]):
            e = edge[h]
            if class_of(high[e], vertices, shards) == own:
                if count[h] > standing:
                    at_high[e] += at_low[e]
                    at_low[e] = level
                else:
                    at_low[e] = at_high[e] = count[h] - gone


@njit(cache=True, nogil=True)
def take_owned(high, vertices, shards, first, stop, at_low, at_high, low_end, high_end):
    """Copy the words of the edges whose high endpoint is of the classes from `first` to `stop`, in their order.

    Gives how many these are; the last two arrays may be shorter to only count.
    """
    found = np.int64(0)
    for e in range(high.size):
        own = class_of(high[e], vertices, shards)
        if first <= own and own < stop:
            if found < low_end.size:
                low_end[found], high_end[found] = at_low[e], at_high[e]
            found += 1
    return found
