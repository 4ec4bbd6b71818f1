"""Removal of the edges of a round together with their triangles.

All shards know all edges of the round. Each shard removes the triangles whose third vertex is of its class. Both other
edges of such a triangle have a half in this shard, stored with the entries that lead to the third vertex. Therefore one
thread per shard suffices, without atomic operations and without lists of losses. If several edges of a triangle are
removed in the same round, the edge with the lowest position in the round removes the triangle; all shards know the
positions (PKT; Kabir and Madduri, HPEC 2017). The functions handle one shard of a `state.GroupState`. Row bounds are
unsigned, since Numba tests whether a signed index is negative.
"""

from __future__ import annotations

import numpy as np

from ...runtime.cache import cached_njit
from ..arrays.intrinsics import mixed, prefetch
from .cut import index_of
from .half_counts import LIVE_ABOVE, REMOVED_BELOW
from .rows import LENGTH, row_at, span

_HALF = np.uint64(2**32 - 1)


@cached_njit
def find_half(entries, start, stop, number):
    """The half of the entry of neighbour `number`, found by binary search. The row must contain this neighbour."""
    low, high = start, stop
    key = np.uint64(number) << np.uint64(32)
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if entries[middle] < key:
            low = middle + np.uint64(1)
        else:
            high = middle
    return np.uint32(entries[low] & _HALF)


@cached_njit
def intersect_galloping(entries, a, a_stop, b, b_stop, to_f, to_g):
    """Find the common neighbours of rows a and b by galloping through row b, which should be the longer row.

    Writes the halves of row a to `to_f` and those of row b to `to_g`. Returns the number of hits.
    """
    hits = np.uintp(0)
    one = np.uint64(1)
    for q in range(a, a_stop):
        w = entries[q] & ~_HALF
        step = one
        while b + step < b_stop and entries[b + step] < w:
            b += step
            step += step
        hi = min(b + step, b_stop)
        while b < hi:
            middle = (b + hi) >> one
            if entries[middle] < w:
                b = middle + one
            else:
                hi = middle
        if b >= b_stop:
            break
        if entries[b] & ~_HALF == w:
            to_f[hits] = np.uint32(entries[q] & _HALF)
            to_g[hits] = np.uint32(entries[b] & _HALF)
            hits += np.uintp(1)
    return np.int64(hits)


@cached_njit
def mark_row(mark, entries, start, stop):
    """Write to `mark`, for each neighbour of the row, the half of its entry plus one."""
    for q in range(start, stop):
        mark[entries[q] >> np.uint64(32)] = np.uint32(entries[q] & _HALF) + np.uint32(1)


@cached_njit
def unmark_row(mark, entries, start, stop):
    """Reset to 0 what `mark_row` wrote."""
    for q in range(start, stop):
        mark[entries[q] >> np.uint64(32)] = 0


@cached_njit
def intersect_marked(mark, entries, start, stop, to_f, to_g):
    """Find the common neighbours of a row and the marked row, without a branch.

    Writes the halves of the row to `to_f` and those of the marked row to `to_g`. Both need space for one element more
    than there are hits. Returns the number of hits.
    """
    hits = np.uintp(0)
    for q in range(start, stop):
        m = mark[entries[q] >> np.uint64(32)]
        to_f[hits] = np.uint32(entries[q] & _HALF)
        to_g[hits] = m - np.uint32(1)
        hits += np.uintp(m != 0)
    return np.int64(hits)


MARK_COST = 6
"""A row is marked if it is shorter than this many times the number of entries to look up in it; see
`cpu.peeling.cascade`.
"""
ENTRIES, TRIANGLES, FINGERPRINT = range(3)
"""Columns of a shard's counts: entries read; triangles removed; a sum modulo 2^64 of hashes of the removed edges and
their levels. The shard of the high endpoint adds the hash, and the shard of the low endpoint subtracts it, so that the
sum over all shards is 0.
"""


@cached_njit(inline="always")
def _hash(low, high, level):
    """A 64-bit hash of an edge and its level."""
    ends = mixed((np.uint64(low) << np.uint64(32)) | np.uint64(high))
    return np.int64(mixed(ends + np.uint64(level)) + np.uint64(0x9E3779B97F4A7C15))


@cached_njit
def mark_round(edges, s, state, rows, level):
    """Write the positions of the round's edges into the counts of their halves in shard s, and list these halves.

    The list goes to `sending`, which is unused in this step. `rows` are those of the shard. Returns the length of the
    list and the sum of the hashes.
    """
    low, high, at, to = edges
    has_row, entry, count = state.has_row[s], state.entry[state.entry_start[s] :], state.half_count
    mine, own = state.sending[state.half_start[s] + s :], np.uint32(state.first + s)
    vertices, shards = state.vertices, state.shards
    listed = 0
    fingerprint = np.int64(0)
    for i in range(low.size):
        here = to[i] == own
        if here or at[i] == own:
            vertex, other = (low[i], high[i]) if here else (high[i], low[i])
            start, stop = span(row_at(has_row, rows, vertex))
            h = find_half(entry, start, stop, index_of(other, vertices, shards))
            count[h] = LIVE_ABOVE - i
            mine[listed] = h
            listed += 1
            if at[i] != to[i]:
                hashed = _hash(low[i], high[i], level)
                fingerprint += hashed if here else -hashed
    return listed, fingerprint


@cached_njit
def _remove_hits(code, hits, to_f, to_g, count, role, limit, event, events):
    """Remove the triangles of one edge. Returns the new length of `event` and the number of triangles removed.

    `code` is LIVE_ABOVE less the edge's position in the round. Hit i is the triangle with the halves `to_f[i]` and
    `to_g[i]`. The triangle is removed unless one of these halves belongs to an edge of an earlier round or an earlier
    position.
    """
    removed = 0
    for i in range(np.uintp(hits)):
        f, g = to_f[i], to_g[i]
        cf, cg = count[f], count[g]
        f_live, g_live = cf > LIVE_ABOVE, cg > LIVE_ABOVE
        if (f_live | ((cf > REMOVED_BELOW) & (cf < code))) & (g_live | ((cg > REMOVED_BELOW) & (cg < code))):
            removed += 1
            if f_live:
                count[f] = cf - 1
                event[events] = f
                events += np.uintp(cf == limit[role[f]])
            if g_live:
                count[g] = cg - 1
                event[events] = g
                events += np.uintp(cg == limit[role[g]])
    return events, removed


@cached_njit
def _find_rows(low, high, start, stop, has_row, rows, entry, hubs, others):
    """Find the rows of both endpoints of the edges from `start` to `stop` - 1, and prefetch their first entries.

    Writes a row of length 0 for an endpoint that has no row. Memory latency dominates the time of short rows, so all
    rows of the block are prefetched before the first is read.
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


@cached_njit
def remove_triangles(edges, s, state, rows, event_count):
    """Remove the triangles of the round's edges.

    The edges are sorted by high endpoint, so the row of a high endpoint is marked once for all its edges. `rows` are
    those of shard s. Appends to `event` the halves about which `half_counts.decide` has to decide; `event` has
    `event_count` elements before. Reads 8 bytes of each entry of the shorter row or, if the row of the high endpoint is
    marked, of both rows. Returns the new length of `event`, the number of entries read and of triangles removed.
    """
    low, high = edges.low, edges.high
    has_row, entry = state.has_row[s], state.entry[state.entry_start[s] :]
    count, role, limit, event = state.half_count, state.role, state.limit, state.event[state.half_start[s] + s :]
    mark, to_f, to_g = state.marks[s], state.found[0, s], state.found[1, s]
    hubs, others = state.rows_found[0, s], state.rows_found[1, s]
    events = np.uintp(event_count)
    entries, triangles = np.uint64(0), np.int64(0)
    block = 0
    while block < high.size:
        block_stop = min(high.size, block + hubs.size)
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
                        hits = intersect_marked(mark, entry, from_, to, to_f, to_g)
                        entries += to - from_
                    elif to - from_ <= stop - start:
                        hits = intersect_galloping(entry, from_, to, start, stop, to_f, to_g)
                        entries += to - from_
                    else:
                        hits = intersect_galloping(entry, start, stop, from_, to, to_f, to_g)
                        entries += stop - start
                    events, removed = _remove_hits(LIVE_ABOVE - i, hits, to_f, to_g, count, role, limit, event, events)
                    triangles += removed
                i += 1
            if marked:
                unmark_row(mark, entry, start, stop)
        block = block_stop
    return np.int64(events), np.int64(entries), triangles


@cached_njit
def compact_rows(s, state):
    """Drop the entries of removed edges from the rows of shard s, in place."""
    rows, entry = state.row[state.row_start[s] : state.row_start[s + 1]], state.entry[state.entry_start[s] :]
    count = state.half_count
    for i in range(rows.size):
        start, stop = span(rows[i])
        to = start
        for q in range(start, stop):
            if count[entry[q] & LENGTH] > LIVE_ABOVE:
                entry[to] = entry[q]
                to += np.uint64(1)
        rows[i] = (start << np.uint64(32)) | (to - start)
