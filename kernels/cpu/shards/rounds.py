"""The work of a group of shards between two exchanges; one thread works on each shard.

Arrays that kernels write are separate arguments: Numba's parallel loops drop writes to an array that comes in a tuple.
The lists of shard s start at its first half plus s, as a list may be written one element beyond its end.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from ...runtime.cache import cached_njit
from .cut import class_of
from .half_counts import KEEPER, LIVE_ABOVE, SPLIT, decide, open_level, receive, settle_alarms, write_messages
from .packets import HEADER
from .removal import ENTRIES, FINGERPRINT, TRIANGLES, compact_rows, mark_round, record_levels, remove_triangles

COMPACT_AT = 0.8
"""A shard's rows are compacted when its remaining edges fall below this share of those at the last compaction."""


@cached_njit(parallel=True)
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
    sending,
    sending_count,
    begins,
    level,
    alarm,
    least,
):
    """Start a level: list the edges to remove, and decide which halves of at most `alarm` send messages.

    No message may be under way. Writes into `least` [shards, 2] the least count of the keepers and of the split halves
    that remain.
    """
    for s in prange(half_start.size - 1):
        base, stop = half_start[s], half_start[s + 1]
        bits, leaves = live[live_start[s] : live_start[s + 1]], leaving[base + s : stop + s + 1]
        events, own_sending = event[base + s : stop + s + 1], sending[base + s : stop + s + 1]
        a, n, keeper, split = open_level(base, stop, count, role, bits, leaves, events, level, alarm)
        least[s, 0], least[s, 1] = keeper, split
        own = np.uint32(first + s)
        leaving_count[s], sending_count[s] = decide(
            low,
            high,
            vertices,
            shards,
            own,
            count,
            role,
            edge,
            leaves,
            a,
            events,
            n,
            own_sending,
            begins[s],
            level,
            alarm,
        )


@cached_njit(parallel=True)
def run_round(
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
    sending,
    sending_count,
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
    """Apply the messages, remove the edges of the round with their triangles, and decide what to send next.

    `words[start[g]:start[g + 1]]` is the packet of group g, whose first shard is `firsts[g]`. The `edges` of the round
    are those of `merge_runs`. Adds to `received` [shards] the messages applied. `left` and `in_rows` [shards] are the
    remaining edges, now and when the rows were last compacted.
    """
    for s in prange(half_start.size - 1):
        base, stop = half_start[s], half_start[s + 1]
        leaves, events = leaving[base + s : stop + s + 1], event[base + s : stop + s + 1]
        own_sending = sending[base + s : stop + s + 1]
        own = np.uint32(first + s)
        a, n = np.int64(0), np.int64(0)
        for g in range(firsts.size - 1):
            at, group_shards, wide = start[g] + 1, firsts[g + 1] - firsts[g], half_start.size
            value_offset = np.int64(words[start[g]])
            messages = at + group_shards * wide
            for sender in range(group_shards):
                from_ = messages + np.int64(words[at + sender * wide + s])
                to = messages + np.int64(words[at + sender * wide + s + 1])
                if from_ < to:
                    keeps = own < firsts[g] + sender
                    a, n = receive(
                        words, from_, to, value_offset, base, count, role, leaves, a, events, n, level, alarm, keeps
                    )
                    received[s] += to - from_
        settle_alarms(count, role, own_sending, sending_count[s])
        if edges:
            rows, entries = row[row_start[s] : row_start[s + 1]], entry[entry_start[s] : entry_start[s + 1]]
            mine, fingerprint = mark_round(
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
                own_sending,
                level,
            )
            n, read, triangles = remove_triangles(
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
            record_levels(own_sending, mine, count, level)
            counts[s, ENTRIES] += read
            counts[s, TRIANGLES] += triangles
            counts[s, FINGERPRINT] += fingerprint
            left[s] -= mine
            if left[s] < COMPACT_AT * in_rows[s]:
                compact_rows(rows, entries, count)
                in_rows[s] = left[s]
        leaving_count[s], sending_count[s] = decide(
            low,
            high,
            vertices,
            shards,
            own,
            count,
            role,
            edge,
            leaves,
            a,
            events,
            n,
            own_sending,
            begins[s],
            level,
            alarm,
        )


@cached_njit(parallel=True)
def write_packets(
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
    sending,
    sending_count,
    begins,
    message_at,
    value_offset,
    edge_offset,
    packet_start,
    firsts,
    group_of,
    common,
    words,
    kinds,
):
    """Write the packets at the offsets of `lay_out_packets`, without the header."""
    shards_here = half_start.size - 1
    for s in prange(shards_here):
        base, stop = half_start[s], half_start[s + 1]
        leaves, own_sending = leaving[base + s : stop + s + 1], sending[base + s : stop + s + 1]
        own = np.uint32(first + s)
        n = leaving_count[s]
        common[HEADER + s] = n
        if n:
            key = np.empty(n, np.uint64)
            for i in range(n):
                e = edge[leaves[i]]
                key[i] = (np.uint64(high[e]) << np.uint64(32)) | np.uint64(low[e])
            key.sort()
            at_low = HEADER + shards_here + edge_offset[s]
            at_high = at_low + edge_offset[shards_here]
            for i in range(n):
                common[at_low + i] = np.uint32(key[i])
                common[at_high + i] = np.uint32(key[i] >> np.uint64(32))
        for g in range(firsts.size - 1):
            if s == 0:
                words[packet_start[g]] = value_offset[g]
            wide = firsts[g + 1] - firsts[g] + 1
            table = packet_start[g] + 1
            messages = table + shards_here * wide
            for t in range(firsts[g], firsts[g + 1]):
                words[table + s * wide + t - firsts[g]] = message_at[s, t] - messages
            words[table + (s + 1) * wide - 1] = (
                message_at[s, firsts[g]] - messages + begins[s, firsts[g + 1]] - begins[s, firsts[g]]
            )
        write_messages(
            low,
            high,
            vertices,
            shards,
            own,
            count,
            role,
            edge,
            partner,
            own_sending,
            sending_count[s],
            message_at[s],
            value_offset,
            group_of,
            words,
            kinds[s],
        )


@cached_njit(parallel=True)
def start_halves(low, high, vertices, shards, first, half_start, edge, support, count, role):
    """Split the supports of edges into the counts and roles of their halves.

    Returns for each shard the sum of the supports of the edges whose high endpoint is of its class.
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


@cached_njit(parallel=True)
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
    """Set the bit of each half of a live edge in `live`, and drop the entries of removed edges from the rows.

    Returns int64 [shards, 3]: the live halves of each shard, the sum of their counts, and how many of them are in the
    shard of the high endpoint.
    """
    found = np.zeros((half_start.size - 1, 3), np.int64)
    for s in prange(half_start.size - 1):
        base, bits = half_start[s], live[live_start[s] : live_start[s + 1]]
        live_halves, total, owned = np.int64(0), np.int64(0), np.int64(0)
        own = np.uint32(first + s)
        for h in range(base, half_start[s + 1]):
            if count[h] > LIVE_ABOVE:
                bits[(h - base) >> 6] |= np.uint64(1) << np.uint64((h - base) & 63)
                live_halves += 1
                total += count[h]
                owned += class_of(high[edge[h]], vertices, shards) == own
        found[s, 0], found[s, 1], found[s, 2] = live_halves, total, owned
        if live_halves < half_start[s + 1] - base:
            rows = row[row_start[s] : row_start[s + 1]]
            compact_rows(rows, entry[entry_start[s] : entry_start[s + 1]], count)
    return found
