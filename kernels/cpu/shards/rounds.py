"""What a group of shards does between two exchanges, one thread at work on each shard.

Kernels take arrays that they write one by one: Numba's parallel loops drop writes to an array that comes in a tuple.
The lists of a shard start one place a shard further than its halves do: a list may be written one place beyond its end.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from .cut import class_of
from .halves import KEEPER, SPLIT, STANDING, decide, open_level, receive, settle_alarms, tell
from .letters import HEADER
from .removal import ENTRIES, FINGERPRINT, TRIANGLES, compact, leave, mark_leaving, remove

COMPACT_AT = 0.8
"""A shard's rows are compacted when this share of its edges is left that there were the last time."""


@njit(parallel=True, cache=True, nogil=True)
def open_levels(
    low,
    high,
    vertices,
    shards,
    first,
    half_start,
    edge,
    count,
    role,
    live_start,
    live,
    leaving,
    leaving_count,
    event,
    told,
    told_count,
    begins,
    level,
    alarm,
    least,
):
    """Start a level while nothing is on its way: list the edges that leave, and decide on halves of at most `alarm`.

    Writes the least count of the keepers and of the split halves that stay into `least` [shards, 2].
    """
    for s in prange(half_start.size - 1):
        base, stop = half_start[s], half_start[s + 1]
        bits, leaves = live[live_start[s] : live_start[s + 1]], leaving[base + s : stop + s + 1]
        events, tells = event[base + s : stop + s + 1], told[base + s : stop + s + 1]
        a, n, keeper, split = open_level(base, stop, count, role, bits, leaves, events, level, alarm)
        least[s, 0], least[s, 1] = keeper, split
        own = np.uint32(first + s)
        leaving_count[s], told_count[s] = decide(
            low, high, vertices, shards, own, count, role, edge, leaves, a, events, n, tells, begins[s], level, alarm
        )


@njit(parallel=True, cache=True, nogil=True)
def play(
    words,
    start,
    firsts,
    edges,
    round_low,
    round_high,
    round_at,
    round_to,
    low,
    high,
    vertices,
    shards,
    first,
    half_start,
    edge,
    count,
    role,
    leaving,
    leaving_count,
    event,
    told,
    told_count,
    begins,
    has_row,
    row_start,
    row,
    entry_start,
    entry,
    limit,
    marks,
    found_f,
    found_g,
    hubs,
    others,
    counts,
    left,
    in_rows,
    received,
    level,
    alarm,
):
    """Take in the messages, remove the edges of the round, and decide what follows.

    `words[start[g]]` to `words[start[g + 1]]` is the letter of group g, whose first shard is `firsts[g]`. The edges are
    those of `merge_runs`. `received` [shards] counts messages, `left` and `in_rows` [shards] the edges that are left
    and were when the rows were compacted.
    """
    for s in prange(half_start.size - 1):
        base, stop = half_start[s], half_start[s + 1]
        leaves, events = leaving[base + s : stop + s + 1], event[base + s : stop + s + 1]
        tells = told[base + s : stop + s + 1]
        own = np.uint32(first + s)
        a, n = np.int64(0), np.int64(0)
        for g in range(firsts.size - 1):
            at, senders, wide = start[g] + 1, firsts[g + 1] - firsts[g], half_start.size
            far = np.int64(words[start[g]])
            messages = at + senders * wide
            for sender in range(senders):
                from_ = messages + np.int64(words[at + sender * wide + s])
                to = messages + np.int64(words[at + sender * wide + s + 1])
                if from_ < to:
                    keeps = own < firsts[g] + sender
                    a, n = receive(words, from_, to, far, base, count, role, leaves, a, events, n, level, alarm, keeps)
                    received[s] += to - from_
        settle_alarms(count, role, tells, told_count[s])
        if edges:
            rows, entries = row[row_start[s] : row_start[s + 1]], entry[entry_start[s] : entry_start[s + 1]]
            mine, fingerprint = mark_leaving(
                round_low,
                round_high,
                round_at,
                round_to,
                edges,
                own,
                vertices,
                shards,
                has_row[s],
                rows,
                entries,
                count,
                tells,
                level,
            )
            n, read, triangles = remove(
                round_low,
                round_high,
                edges,
                has_row[s],
                rows,
                entries,
                count,
                role,
                limit,
                marks[s],
                found_f[s],
                found_g[s],
                hubs[s],
                others[s],
                events,
                n,
            )
            leave(tells, mine, count, level)
            counts[s, ENTRIES] += read
            counts[s, TRIANGLES] += triangles
            counts[s, FINGERPRINT] += fingerprint
            left[s] -= mine
            if left[s] < COMPACT_AT * in_rows[s]:
                compact(rows, entries, count)
                in_rows[s] = left[s]
        leaving_count[s], told_count[s] = decide(
            low, high, vertices, shards, own, count, role, edge, leaves, a, events, n, tells, begins[s], level, alarm
        )


@njit(parallel=True, cache=True, nogil=True)
def write_letters(
    low,
    high,
    vertices,
    shards,
    first,
    half_start,
    edge,
    partner,
    count,
    role,
    leaving,
    leaving_count,
    told,
    told_count,
    begins,
    place,
    far,
    edge_place,
    own_start,
    firsts,
    group_of,
    common,
    words,
    kinds,
):
    """Write the letters at the places that `place_letters` gave; the header is the caller's."""
    shards_here = half_start.size - 1
    for s in prange(shards_here):
        base, stop = half_start[s], half_start[s + 1]
        leaves, tells = leaving[base + s : stop + s + 1], told[base + s : stop + s + 1]
        own = np.uint32(first + s)
        n = leaving_count[s]
        common[HEADER + s] = n
        if n:
            key = np.empty(n, np.uint64)
            for i in range(n):
                e = edge[leaves[i]]
                key[i] = (np.uint64(high[e]) << np.uint64(32)) | np.uint64(low[e])
            key.sort()
            at_low = HEADER + shards_here + edge_place[s]
            at_high = at_low + edge_place[shards_here]
            for i in range(n):
                common[at_low + i] = np.uint32(key[i])
                common[at_high + i] = np.uint32(key[i] >> np.uint64(32))
        for g in range(firsts.size - 1):
            if s == 0:
                words[own_start[g]] = far[g]
            wide = firsts[g + 1] - firsts[g] + 1
            table = own_start[g] + 1
            messages = table + shards_here * wide
            for t in range(firsts[g], firsts[g + 1]):
                words[table + s * wide + t - firsts[g]] = place[s, t] - messages
            words[table + (s + 1) * wide - 1] = (
                place[s, firsts[g]] - messages + begins[s, firsts[g + 1]] - begins[s, firsts[g]]
            )
        tell(
            low,
            high,
            vertices,
            shards,
            own,
            count,
            role,
            edge,
            partner,
            tells,
            told_count[s],
            place[s],
            far,
            group_of,
            words,
            kinds[s],
        )


@njit(parallel=True, cache=True, nogil=True)
def start_halves(low, high, vertices, shards, first, half_start, edge, support, count, role):
    """Split the supports of edges into counts and roles of halves.

    Gives for each shard the sum of the supports of the edges whose high endpoint is of its class.
    """
    supports = np.zeros(half_start.size - 1, np.int64)
    for s in prange(half_start.size - 1):
        own, total = np.uint32(first + s), np.int64(0)
        for h in range(half_start[s], half_start[s + 1]):
            e = edge[h]
            triangles = support[e]
            at_high = class_of(high[e], vertices, shards) == own
            total += triangles if at_high else 0
            if class_of(low[e], vertices, shards) == class_of(high[e], vertices, shards):
                count[h], role[h] = triangles, KEEPER
            else:
                count[h], role[h] = (triangles - triangles // 2 if at_high else triangles // 2), SPLIT
        supports[s] = total
    return supports


@njit(parallel=True, cache=True, nogil=True)
def find_live(
    low,
    high,
    vertices,
    shards,
    first,
    half_start,
    edge,
    count,
    live_start,
    live,
    row_start,
    row,
    entry_start,
    entry,
):
    """Set the bit of each half of an edge that stands, and take the edges that have left out of the rows.

    Gives [shards, 3] for each shard the halves that stand, the sum of their counts, and how many of them are in the
    shard of the high endpoint.
    """
    found = np.zeros((half_start.size - 1, 3), np.int64)
    for s in prange(half_start.size - 1):
        base, bits = half_start[s], live[live_start[s] : live_start[s + 1]]
        standing, total, owned = np.int64(0), np.int64(0), np.int64(0)
        own = np.uint32(first + s)
        for h in range(base, half_start[s + 1]):
            if count[h] > STANDING:
                bits[(h - base) >> 6] |= np.uint64(1) << np.uint64((h - base) & 63)
                standing += 1
                total += count[h]
                owned += class_of(high[edge[h]], vertices, shards) == own
        found[s, 0], found[s, 1], found[s, 2] = standing, total, owned
        if standing < half_start[s + 1] - base:
            rows = row[row_start[s] : row_start[s + 1]]
            compact(rows, entry[entry_start[s] : entry_start[s + 1]], count)
    return found
