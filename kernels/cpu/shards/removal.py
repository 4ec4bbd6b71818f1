"""The edges that leave in a round, known to all shards, take their triangles along.

Each shard removes the triangles whose third vertex is of its class. Both other edges of such a triangle have a half in
this shard, beside the entries that lead to that vertex. So one thread a shard needs no atomics and no lists of losses.
Ties between edges of one triangle that leave together are broken by their positions in the round, which all shards
know: the first one takes the triangle (PKT; Kabir and Madduri, HPEC 2017). The functions are for one shard.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..atomics import prefetch
from .cut import index_of
from .entries import find_half, mark_row, probe, search_shorter, unmark_row
from .halves import GONE, LEFT, STANDING
from .rows import LENGTH, row_at, span

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
def mark_leaving(low, high, at, to, edges, own, vertices, shards, has_row, rows, entry, count, mine, level):
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
            start, stop = span(row_at(has_row, rows, vertex))
            h = find_half(entry, start, stop, index_of(other, vertices, shards))
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
def _find_rows(low, high, start, stop, has_row, rows, entry, hubs, others):
    """Find the rows of both ends of some edges and ask for their first entries.

    An edge one of whose ends has no row has two empty rows. Most of the time of short rows is that until their memory
    arrives, so that all are asked for before the first is read.
    """
    hub_row = np.uint64(0)
    for i in range(start, stop):
        if i == start or high[i] != high[i - 1]:
            hub_row = row_at(has_row, rows, high[i])
            if hub_row & LENGTH:
                prefetch(entry, np.intp(hub_row >> np.uint64(32)))
        other_row = np.uint64(0)
        if hub_row & LENGTH:
            other_row = row_at(has_row, rows, low[i])
            if other_row & LENGTH:
                prefetch(entry, np.intp(other_row >> np.uint64(32)))
        hubs[i - start], others[i - start] = hub_row, other_row


@njit(cache=True, nogil=True)
def remove(
    low,
    high,
    edges,
    has_row,
    rows,
    entry,
    count,
    role,
    limit,
    mark,
    to_f,
    to_g,
    hubs,
    others,
    event,
    event_count,
):
    """Remove the triangles of the round's edges, which come sorted by high endpoint: its row is marked once a run.

    `limit` [roles] is the count at which the loss of one more triangle is an event. `mark` [width] is 0, before and
    after. `to_f` and `to_g` [widest + 1] are room for common neighbours, `hubs` and `others` [any number] for rows.
    Reads 8 bytes of each entry of the shorter row or, where the longer one is marked, of both. Gives the number of
    events, of entries read and of triangles.
    """
    events = np.uintp(event_count)
    entries, triangles = np.uint64(0), np.int64(0)
    block = 0
    while block < edges:
        block_stop = min(edges, block + hubs.size)
        _find_rows(low, high, block, block_stop, has_row, rows, entry, hubs, others)
        i = block
        while i < block_stop:
            hub = high[i]
            start, stop = span(hubs[i - block])
            end, work = i, np.uint64(0)
            while end < block_stop and high[end] == hub:
                work += others[end - block] & LENGTH
                end += 1
            if work == 0:
                i = end
                continue
            marked = stop - start < work * np.uint64(MARK_COST)
            if marked:
                entries += stop - start
                mark_row(mark, entry, start, stop)
            while i < end:
                from_, to = span(others[i - block])
                if from_ != to:
                    if marked:
                        hits = probe(mark, entry, from_, to, to_f, to_g)
                        entries += to - from_
                    elif to - from_ <= stop - start:
                        hits = search_shorter(entry, from_, to, start, stop, to_f, to_g)
                        entries += to - from_
                    else:
                        hits = search_shorter(entry, start, stop, from_, to, to_f, to_g)
                        entries += stop - start
                    events, taken = _take(STANDING - i, hits, to_f, to_g, count, role, limit, event, events)
                    triangles += taken
                i += 1
            if marked:
                unmark_row(mark, entry, start, stop)
        block = block_stop
    return np.int64(events), np.int64(entries), triangles


@njit(cache=True, nogil=True)
def leave(mine, listed, count, level):
    """Write the level into the counts of the edges that left in this round."""
    for i in range(listed):
        count[mine[i]] = GONE + level


@njit(cache=True, nogil=True)
def compact(rows, entry, count):
    """Take the edges that left out of the rows of a shard, in place."""
    for i in range(rows.size):
        start, stop = span(rows[i])
        to = start
        for q in range(start, stop):
            if count[entry[q] & LENGTH] > STANDING:
                entry[to] = entry[q]
                to += np.uint64(1)
        rows[i] = (start << np.uint64(32)) | (to - start)
