"""The work of a group of shards between two exchanges; one thread works on each shard of a `state.GroupState`."""

from __future__ import annotations

import numpy as np
from numba import prange

from ...runtime.cache import cached_njit
from .cut import class_of
from .half_counts import KEEPER, LIVE_ABOVE, REMOVED_AT, SPLIT, decide, open_level, receive, settle_alarms
from .removal import ENTRIES, FINGERPRINT, TRIANGLES, compact_rows, mark_round, remove_triangles
from .state import Messages

COMPACT_AT = 0.8
"""A shard's rows are compacted when its remaining edges fall below this share of its edges at the last compaction."""


@cached_njit
def _open_one(s, state, window, least):
    leaves, events, least[s, 0], least[s, 1] = open_level(s, state, window)
    decide(s, state, leaves, events, window)


@cached_njit(parallel=True)
def open_levels(state, window, least):
    """Start a level: list the edges to remove, and let the split halves whose count is at most the alarm send messages.

    No message may be under way. Writes into `least` [shards, 2] the least count of the other keepers and of the other
    split halves.
    """
    for s in prange(state.half_start.size - 1):
        _open_one(np.int64(s), state, window, least)


@cached_njit
def _receive_all(s, words, start, state, window):
    """Apply all messages to shard s. Returns the lengths of the shard's lists `leaving` and `event`."""
    leaves, events, firsts = np.int64(0), np.int64(0), state.firsts
    own = np.uint32(state.first + s)
    for g in range(firsts.size - 1):
        at, senders, wide = start[g] + 1, firsts[g + 1] - firsts[g], state.half_start.size
        value_offset = np.int64(words[start[g]])
        first = at + senders * wide
        for sender in range(senders):
            from_ = first + np.int64(words[at + sender * wide + s])
            to = first + np.int64(words[at + sender * wide + s + 1])
            if from_ < to:
                keeps = own < firsts[g] + sender
                messages = Messages(words, from_, to, value_offset, keeps)
                leaves, events = receive(messages, s, state, leaves, events, window)
                state.received[s] += to - from_
    return leaves, events


@cached_njit
def _remove_round(s, edges, state, events, level):
    """Remove the edges of the round from shard s. Returns the new length of the shard's list `event`."""
    rows, count = state.row[state.row_start[s] : state.row_start[s + 1]], state.half_count
    listed, fingerprint = mark_round(edges, s, state, rows, level)
    events, read, triangles = remove_triangles(edges, s, state, rows, events)
    first = state.half_start[s] + s
    for h in state.sending[first : first + listed]:
        count[h] = REMOVED_AT + level
    state.counts[s, ENTRIES] += read
    state.counts[s, TRIANGLES] += triangles
    state.counts[s, FINGERPRINT] += fingerprint
    state.left[s] -= listed
    if state.left[s] < COMPACT_AT * state.in_rows[s]:
        compact_rows(s, state)
        state.in_rows[s] = state.left[s]
    return events


@cached_njit
def _run_one(s, words, start, edges, state, window):
    leaves, events = _receive_all(s, words, start, state, window)
    settle_alarms(s, state)
    if edges.low.size:
        events = _remove_round(s, edges, state, events, window.level)
    decide(s, state, leaves, events, window)


@cached_njit(parallel=True)
def run_round(words, start, edges, state, window):
    """Apply the messages, remove the edges of the round with their triangles, and decide what to send next.

    `words[start[g]:start[g + 1]]` is the packet from group g to this group. `edges` is the result of
    `packets.merge_runs`.
    """
    for s in prange(state.half_start.size - 1):
        _run_one(np.int64(s), words, start, edges, state, window)


@cached_njit
def _start_one(s, state, support):
    low, high, edge, vertices, shards = state.low, state.high, state.edge, state.vertices, state.shards
    count, role = state.half_count, state.role
    own, total = np.uint32(state.first + s), np.int64(0)
    for h in range(state.half_start[s], state.half_start[s + 1]):
        e = edge[h]
        triangles = support[e]
        at_high = class_of(high[e], vertices, shards) == own
        total += triangles if at_high else 0
        if class_of(low[e], vertices, shards) == class_of(high[e], vertices, shards):
            count[h], role[h] = triangles, KEEPER
        else:
            count[h], role[h] = (triangles - triangles // 2 if at_high else triangles // 2), SPLIT
    return total


@cached_njit(parallel=True)
def start_halves(state, support):
    """Split the supports of edges into the counts and roles of their halves.

    Returns for each shard the sum of the supports of the edges whose high endpoint is of its class.
    """
    supports = np.zeros(state.half_start.size - 1, np.int64)
    for s in prange(supports.size):
        supports[s] = _start_one(np.int64(s), state, support)
    return supports


@cached_njit
def _find_live_of_one(s, state):
    high, edge, vertices, shards, count = state.high, state.edge, state.vertices, state.shards, state.half_count
    base, stop, bits = state.half_start[s], state.half_start[s + 1], state.live[state.live_start[s] :]
    live_halves, total, owned = np.int64(0), np.int64(0), np.int64(0)
    own = np.uint32(state.first + s)
    for h in range(base, stop):
        if count[h] > LIVE_ABOVE:
            bits[(h - base) >> 6] |= np.uint64(1) << np.uint64((h - base) & 63)
            live_halves += 1
            total += count[h]
            owned += class_of(high[edge[h]], vertices, shards) == own
    if live_halves < stop - base:
        compact_rows(s, state)
    return live_halves, total, owned


@cached_njit(parallel=True)
def find_live(state):
    """Set the bit of each half of a live edge in `live`, and drop the entries of removed edges from the rows.

    Returns int64 [shards, 3]: for each shard the number of its live halves, the sum of their counts, and the number of
    its live halves whose edge has its high endpoint in the shard's class.
    """
    found = np.zeros((state.half_start.size - 1, 3), np.int64)
    for s in prange(found.shape[0]):
        found[s, 0], found[s, 1], found[s, 2] = _find_live_of_one(np.int64(s), state)
    return found
