"""The edges that leave in a round, known to all shards, take their triangles along.

Each shard removes the triangles whose third vertex is of its class. Both other edges of such a triangle have a half in
this shard, beside the entries that lead to that vertex. So one thread a shard needs no atomics and no lists of losses.
Ties between edges of one triangle that leave together are broken by their positions in the round, which all shards
know: the first one takes the triangle (PKT; Kabir and Madduri, HPEC 2017). The functions are for one shard.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..common_neighbours import mark_row, probe, search_shorter, unmark_row
from .cut import index_of
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


@njit(cache=True, nogil=True)
def mark_leaving(
    low, high, at, to, edges, own, vertices, shards, bits, ranks, begin, length, neighbour, half, count, mine, level
):
    """Give the halves of the edges that leave in this round their position, and list them in `mine`.

    `low`, `high`, `at`, `to` are the ends of each edge and their classes. Gives the length of `mine` and the sum of
    the hashes.
    """
    listed = 0
    fingerprint = np.int64(0)
    for i in range(edges):
        here = to[i] == own
        if here or at[i] == own:
            vertex, other = (low[i], high[i]) if here else (high[i], low[i])
            row = row_of(bits, ranks, vertex)
            h = half[entry_of(neighbour, begin[row], begin[row] + length[row], index_of(other, vertices, shards))]
            count[h] = STANDING - i
            mine[listed] = h
            listed += 1
            if at[i] != to[i]:
                hashed = _hash(low[i], high[i], level)
                fingerprint += hashed if here else -hashed
    return listed, fingerprint


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


@njit(cache=True, nogil=True)
def remove(
    low,
    high,
    edges,
    bits,
    ranks,
    begin,
    length,
    neighbour,
    half,
    count,
    role,
    limit,
    mark,
    to_f,
    to_g,
    event,
    event_count,
):
    """Remove the triangles of the round's edges, which come sorted by high endpoint: its row is marked once a run.

    `limit` [roles] is the count at which the loss of one more triangle is an event. `mark` [width] is 0, before and
    after. `to_f` and `to_g` [widest + 1] are room for common neighbours. Reads 8 bytes of each entry of the shorter row
    or, where the longer one is marked, of both. Gives the number of events, of entries read and of triangles.
    """
    events = np.uintp(event_count)
    entries, triangles = np.int64(0), np.int64(0)
    i = 0
    while i < edges:
        hub = high[i]
        row = row_of(bits, ranks, hub)
        if row == NO_ROW or length[row] == 0:
            i += 1
            while i < edges and high[i] == hub:
                i += 1
            continue
        end, work = i, np.int64(0)
        while end < edges and high[end] == hub:
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
                code = STANDING - i
                events, taken = _take(code, hits, to_f, to_g, count, role, limit, event, events)
                triangles += taken
            i += 1
        if marked:
            unmark_row(mark, neighbour, start, stop)
    return np.int64(events), entries, triangles


@njit(cache=True, nogil=True)
def leave(mine, listed, count, level):
    """Write the level into the counts of the edges that left in this round."""
    for i in range(listed):
        count[mine[i]] = GONE + level


@njit(cache=True, nogil=True)
def compact(row_start, row_stop, begin, length, neighbour, half, count):
    """Take the edges that left out of the rows, in place."""
    for row in range(row_start, row_stop):
        to = begin[row]
        for q in range(begin[row], begin[row] + length[row]):
            if count[half[q]] > STANDING:
                neighbour[to] = neighbour[q]
                half[to] = half[q]
                to += 1
        length[row] = to - begin[row]
