"""One round of a group of shards: the edges that leave, known to all shards, take their triangles along.

Each shard removes the triangles whose third vertex is of its class. Both other edges of such a triangle have a half in
this shard, beside the entries that lead to that vertex. So one thread a shard needs no atomics and no lists of losses.
Ties between edges of one triangle that leave together are broken by their positions in the round, which all shards
know: the first one takes the triangle (PKT; Kabir and Madduri, HPEC 2017).
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from ..common_neighbours import mark_row, probe, search_shorter, unmark_row
from .cut import class_of, index_of
from .halves import GONE, LEFT, STANDING
from .rows import NO_ROW, entry_of, row_of

MARK_COST = 6
"""A row is marked when it is shorter than this times the entries to be looked up in it; see `cpu.cascade`."""
ENTRIES, TRIANGLES, FINGERPRINT = range(3)
"""Columns of a shard's counts: entries read; triangles removed; the sum, without carry, of a hash of each edge that
left and of its level. The shard of the high endpoint adds it, that of the low one subtracts it: all shards make 0.
"""


@njit(cache=True, nogil=True, inline="always")
def _hash(low, high, level):
    """A 64-bit hash of an edge and its level (the finalizer of splitmix64, twice)."""
    x = (np.uint64(low) << np.uint64(32)) | np.uint64(high)
    for word in (np.uint64(level), np.uint64(0x9E3779B97F4A7C15)):
        x ^= x >> np.uint64(30)
        x *= np.uint64(0xBF58476D1CE4E5B9)
        x ^= x >> np.uint64(27)
        x *= np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
        x += word
    return np.int64(x)


@njit(parallel=True, cache=True, nogil=True)
def mark_leaving(edges, cut, first, rows, half_start, count, mine, mine_count, level, counts):
    """Give the halves of the edges that leave in this round their position, and list those of each shard in `mine`.

    `edges` are low, high and position of each edge.
    """
    low, high, position = edges
    vertices, shards = cut
    word, before, begin, length, neighbour, half = rows
    for s in prange(half_start.size - 1):
        own, listed = np.uint32(first + s), half_start[s]
        bits, ranks = word[s], before[s]
        fingerprint = np.int64(0)
        for i in range(low.size):
            at_high = class_of(high[i], vertices, shards) == own
            at_low = class_of(low[i], vertices, shards) == own
            if at_high or at_low:
                to, other = (low[i], high[i]) if at_high else (high[i], low[i])
                row = row_of(bits, ranks, to)
                stop = begin[row] + length[row]
                h = half[entry_of(neighbour, begin[row], stop, index_of(other, vertices, shards))]
                count[h] = STANDING - position[i]
                mine[listed] = h
                listed += 1
                if not (at_high and at_low):
                    hashed = _hash(low[i], high[i], level)
                    fingerprint += hashed if at_high else -hashed
        mine_count[s] = listed - half_start[s]
        counts[s, FINGERPRINT] += fingerprint


@njit(cache=True, nogil=True)
def _take(code, hits, to_f, to_g, count, role, limit, event, events):
    """Take the triangles of one edge that leaves; gives where the list of events ends and how many were taken."""
    taken = 0
    for i in range(np.uintp(hits)):
        f, g = to_f[i], to_g[i]
        cf, cg = count[f], count[g]
        f_stands, g_stands = cf > STANDING, cg > STANDING
        if (f_stands | ((cf > LEFT) & (cf < code))) & (g_stands | ((cg > LEFT) & (cg < code))):
            taken += 1
            if f_stands:
                count[f] = cf - 1
                event[events] = f
                events += np.uintp(cf == limit[role[f]])
            if g_stands:
                count[g] = cg - 1
                event[events] = g
                events += np.uintp(cg == limit[role[g]])
    return events, taken


@njit(parallel=True, cache=True, nogil=True)
def remove(edges, rows, half_start, count, role, limit, marks, found_f, found_g, event, event_count, counts):
    """Remove the triangles of the round's edges, which come sorted by high endpoint: its row is marked once a run.

    `limit` [roles] is the count at which the loss of one more triangle is an event. `marks` [shards, width] are 0,
    before and after. `found_f` and `found_g` [shards, widest + 1] are room for common neighbours. Reads 8 bytes of each
    entry of the shorter row or, where the longer one is marked, of both.
    """
    low, high, position = edges
    word, before, begin, length, neighbour, half = rows
    for s in prange(half_start.size - 1):
        bits, ranks, mark, to_f, to_g = word[s], before[s], marks[s], found_f[s], found_g[s]
        events = np.uintp(half_start[s] + event_count[s])
        entries, triangles = np.int64(0), np.int64(0)
        i = 0
        while i < low.size:
            hub = high[i]
            row = row_of(bits, ranks, hub)
            end, work = i, np.int64(0)
            while end < low.size and high[end] == hub:
                if row != NO_ROW:
                    other = row_of(bits, ranks, low[end])
                    if other != NO_ROW:
                        work += length[other]
                end += 1
            if work == 0:
                i = end
                continue
            start, stop = begin[row], begin[row] + length[row]
            marked = length[row] < work * MARK_COST
            if marked:
                entries += length[row]
                mark_row(mark, neighbour, half, start, stop)
            while i < end:
                other = row_of(bits, ranks, low[i])
                if other != NO_ROW:
                    from_, to = begin[other], begin[other] + length[other]
                    if marked:
                        hits = probe(mark, neighbour, half, from_, to, to_f, to_g)
                        entries += to - from_
                    elif to - from_ <= stop - start:
                        hits = search_shorter(neighbour, half, from_, to, start, stop, to_f, to_g)
                        entries += to - from_
                    else:
                        hits = search_shorter(neighbour, half, start, stop, from_, to, to_f, to_g)
                        entries += stop - start
                    code = STANDING - position[i]
                    events, taken = _take(code, hits, to_f, to_g, count, role, limit, event, events)
                    triangles += taken
                i += 1
            if marked:
                unmark_row(mark, neighbour, start, stop)
        event_count[s] = np.int64(events) - half_start[s]
        counts[s, ENTRIES] += entries
        counts[s, TRIANGLES] += triangles


@njit(parallel=True, cache=True, nogil=True)
def leave(half_start, mine, mine_count, count, level):
    """Write the level into the counts of the edges that left in this round."""
    for s in prange(half_start.size - 1):
        for i in range(half_start[s], half_start[s] + mine_count[s]):
            count[mine[i]] = GONE + level


@njit(parallel=True, cache=True, nogil=True)
def compact(row_start, begin, length, neighbour, half, count):
    """Take the edges that left out of the rows, in place."""
    for s in prange(row_start.size - 1):
        for row in range(row_start[s], row_start[s + 1]):
            to = begin[row]
            for q in range(begin[row], begin[row] + length[row]):
                if count[half[q]] > STANDING:
                    neighbour[to] = neighbour[q]
                    half[to] = half[q]
                    to += 1
            length[row] = to - begin[row]
