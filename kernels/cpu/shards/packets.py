"""Packets: the flat uint32 arrays that a group sends in one exchange.

A group sends one common packet to all groups. This packet holds a header, the number of edges that each shard of the
group removes, the low endpoints of these edges, and their high endpoints. The edges are stored shard by shard; within a
shard they are sorted by (high, low). A group also sends one packet to each group. This packet holds the number of
messages, a table, the halves that the messages address, and the values of the messages (int32). The table says where
the messages of each sending shard to each receiving shard start. `half_counts` describes the kinds of messages.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from ...runtime.cache import cached_njit
from .cut import class_of
from .half_counts import write_messages

(
    EDGES,
    LEVEL,
    LAST,
    REMAINING_LOW,
    REMAINING_HIGH,
    LEAST_KEEPER,
    LEAST_SPLIT,
    MESSAGES_LOW,
    MESSAGES_HIGH,
    LATE,
) = range(10)
"""Indices of the words of a header: edges that the group removes; the level; the last level of the window; edges of the
whole graph that remain before this round (low and high 32 bits); the least count of the group's keepers and of its
split halves, as `open_level` returns them; messages that the group sends (low and high 32 bits); 1 if the group's time
is over, else 0.
"""
HEADER = 10
"""Number of words of a header."""
LARGE = 1024
"""Several threads write the packets of a round that has at least this many edges and messages."""


@cached_njit
def read_headers(words, start, first, runs, found):
    """Check the common packets, and write to `runs` where each shard's edges are in them.

    The packet of group g is `words[start[g]:start[g + 1]]`. `first` [groups + 1] is the first shard of each group.
    Writes four totals over all groups into `found` [4]: the least count of a keeper, the least count of a split half,
    the number of messages, and whether any group is late. Returns the number of edges of all groups, or -1 if headers
    disagree or the length of a packet does not match its header.
    """
    edges = np.int64(0)
    found[0] = found[1] = np.int64(2**32 - 1)
    found[2] = found[3] = 0
    for g in range(start.size - 1):
        at = start[g]
        own = first[g + 1] - first[g]
        n = np.int64(words[at + EDGES]) if start[g + 1] - at >= HEADER + own else np.int64(-1)
        if n < 0 or start[g + 1] - at != HEADER + own + 2 * n:
            return np.int64(-1)
        for word in (LEVEL, LAST, REMAINING_LOW, REMAINING_HIGH):
            if words[at + word] != words[start[0] + word]:
                return np.int64(-1)
        found[0] = min(found[0], np.int64(words[at + LEAST_KEEPER]))
        found[1] = min(found[1], np.int64(words[at + LEAST_SPLIT]))
        found[2] += np.int64(words[at + MESSAGES_LOW]) + (np.int64(words[at + MESSAGES_HIGH]) << 32)
        found[3] |= np.int64(words[at + LATE])
        low = at + HEADER + own
        for s in range(first[g], first[g + 1]):
            runs.low[s], runs.high[s] = low, low + n
            runs.length[s] = words[at + HEADER + s - first[g]]
            low += runs.length[s]
        if low != at + HEADER + own + n:
            return np.int64(-1)
        edges += n
    return edges


@cached_njit
def are_complete(words, start, first, shards):
    """Whether the packets to this group are well-formed. The packet from group g is `words[start[g]:start[g + 1]]`.

    `shards` is the number of this group's shards. Checks that each length matches the number of messages, and that the
    entries of each table ascend and do not exceed the number of messages.
    """
    for g in range(start.size - 1):
        table, size = start[g] + 1, (first[g + 1] - first[g]) * (shards + 1)
        if start[g + 1] < table + size:
            return False
        messages, reached = np.int64(words[start[g]]), np.int64(0)
        if start[g + 1] != table + size + 2 * messages:
            return False
        for i in range(table, table + size):
            at = np.int64(words[i])
            if at < reached or at > messages:
                return False
            reached = at
    return True


@cached_njit
def _lower_bound(words, begin, length, hub):
    """How many of the ascending words `words[begin:begin + length]` are below `hub`."""
    low, high = np.int64(0), np.int64(length)
    while low < high:
        middle = (low + high) >> 1
        if words[begin + middle] < hub:
            low = middle + 1
        else:
            high = middle
    return low


@cached_njit
def _merge_part(part, parts, words, runs, cut, edges):
    """Merge the edges of range `part` of the `parts` ranges of high endpoints. Equal pieces of the longest run give the
    bounds of the ranges.
    """
    run, run_high, run_length = runs
    vertices, shards = cut
    low, high, at, to = edges
    longest = np.argmax(run_length)
    cursor, stop = np.zeros(run.size, np.int64), run_length.copy()
    out = np.int64(0)
    if part > 0:
        hub = words[run_high[longest] + run_length[longest] * part // parts]
        for r in range(run.size):
            cursor[r] = _lower_bound(words, run_high[r], run_length[r], hub)
            out += cursor[r]
    if part < parts - 1:
        hub = words[run_high[longest] + run_length[longest] * (part + 1) // parts]
        for r in range(run.size):
            stop[r] = _lower_bound(words, run_high[r], run_length[r], hub)
    # The runs that still have edges, and the next high endpoint of each.
    left, open_ = 0, np.empty(run.size, np.int64)
    head = np.empty(run.size, np.uint32)
    for r in range(run.size):
        if cursor[r] < stop[r]:
            open_[left], head[left] = r, words[run_high[r] + cursor[r]]
            left += 1
    while left:
        hub = head[0]
        for i in range(1, left):
            hub = min(hub, head[i])
        to_class = class_of(hub, vertices, shards)
        kept = 0
        for i in range(left):
            r, following = open_[i], head[i]
            if following == hub:
                c = cursor[r]
                while c < stop[r] and words[run_high[r] + c] == hub:
                    end = words[run[r] + c]
                    low[out], high[out] = end, hub
                    at[out], to[out] = class_of(end, vertices, shards), to_class
                    out += 1
                    c += 1
                cursor[r] = c
                if c == stop[r]:
                    continue
                following = words[run_high[r] + c]
            open_[kept], head[kept] = r, following
            kept += 1
        left = kept


@cached_njit(parallel=True)
def merge_runs(words, runs, parts, cut, edges):
    """Merge the runs into `edges`, sorted by high endpoint and then by run, and write the classes of both endpoints.

    `cut` is (vertices, shards), both uint32. Threads merge `parts` ranges of high endpoints in parallel. The order of
    the result does not depend on `parts`, so all groups get the same order.
    """
    for part in prange(parts):
        _merge_part(np.int64(part), parts, words, runs, cut, edges)


@cached_njit
def lay_out_packets(state, layout):
    """Compute the offsets of all parts of this group's packets. Returns the number of messages that the group sends."""
    message_at, value_offset, edge_offset, packet_start = layout
    begins, first, leaving_count = state.begins, state.firsts, state.leaving_count
    groups, own = first.size - 1, leaving_count.size
    edge_offset[0] = 0
    for s in range(own):
        edge_offset[s + 1] = edge_offset[s] + leaving_count[s]
    total = np.int64(0)
    packet_start[0] = 0
    for g in range(groups):
        a, b = first[g], first[g + 1]
        messages = packet_start[g] + 1 + own * (b - a + 1)
        value_offset[g] = 0
        for s in range(own):
            for t in range(a, b):
                message_at[s, t] = messages + value_offset[g] + begins[s, t] - begins[s, a]
            value_offset[g] += begins[s, b] - begins[s, a]
        packet_start[g + 1] = messages + 2 * value_offset[g]
        total += value_offset[g]
    return total


@cached_njit
def _write_edges(s, state, layout, common):
    """Write the edges that shard s removes, sorted by (high, low), to the common packet."""
    low, high, edge, edge_offset = state.low, state.high, state.edge, layout.edge_offset
    first, shards_here = state.half_start[s] + s, state.half_start.size - 1
    leaves = state.leaving[first : first + state.leaving_count[s]]
    common[HEADER + s] = leaves.size
    if leaves.size:
        key = np.empty(leaves.size, np.uint64)
        for i in range(leaves.size):
            e = edge[leaves[i]]
            key[i] = (np.uint64(high[e]) << np.uint64(32)) | np.uint64(low[e])
        key.sort()
        at_low = HEADER + shards_here + edge_offset[s]
        at_high = at_low + edge_offset[shards_here]
        for i in range(key.size):
            common[at_low + i] = np.uint32(key[i])
            common[at_high + i] = np.uint32(key[i] >> np.uint64(32))


@cached_njit
def _write_tables(s, state, layout, words):
    """Write to the tables where the messages of shard s to each shard start. Shard 0 also writes the message counts."""
    message_at, value_offset, packet_start = layout.message_at, layout.value_offset, layout.packet_start
    begins, firsts, shards_here = state.begins, state.firsts, state.half_start.size - 1
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


@cached_njit
def _write_one(s, state, layout, common, words):
    _write_edges(s, state, layout, common)
    _write_tables(s, state, layout, words)
    write_messages(s, state, layout, words)


@cached_njit(parallel=True)
def write_packets(state, layout, common, words):
    """Write the common packet without its header, and the packet to each group, at the offsets of `lay_out_packets`."""
    for s in prange(state.half_start.size - 1):
        _write_one(np.int64(s), state, layout, common, words)
