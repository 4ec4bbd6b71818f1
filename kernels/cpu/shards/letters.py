"""What groups tell each other in one exchange, in flat arrays of uint32.

To all groups: a header, how many edges each shard of the group removes, then the low and then the high endpoints of
these edges, by shard, each shard's sorted by high endpoint. To one group: the number of messages, a table of where the
messages of each shard for each shard start, the halves that they are for, and their values (int32).
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from .cut import class_of

EDGES, LEVEL, LAST, LEFT_LOW, LEFT_HIGH, KEEPERS, SPLITS, TOLD_LOW, TOLD_HIGH, LATE = range(10)
"""Words of a header: edges that leave; the level; the last level of its window; edges left in the graph before this
round (low and high half); the least count of a keeper and the least half of a split edge, as `open_level` gives them;
messages told to all groups; whether the group's time is over.
"""
HEADER = 10
"""Words of a header."""
LARGE = 1024
"""Edges and messages of a round from which its letters are written by several threads."""


@njit(cache=True, nogil=True)
def read_headers(words, start, first, run, run_high, run_length, found):
    """Find the runs of edges in the letters to all groups, `words[start[g]]` to `words[start[g + 1]]`.

    `first` [groups + 1] is each group's first shard. Writes for each shard where its low and high endpoints start and
    how many they are, and into `found` [4] the least keeper, the least split half, the number of messages of all
    groups and whether one is late. Gives the number of edges, -1 where headers disagree or lengths do not add up.
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
        for word in (LEVEL, LAST, LEFT_LOW, LEFT_HIGH):
            if words[at + word] != words[start[0] + word]:
                return np.int64(-1)
        found[0] = min(found[0], np.int64(words[at + KEEPERS]))
        found[1] = min(found[1], np.int64(words[at + SPLITS]))
        found[2] += np.int64(words[at + TOLD_LOW]) + (np.int64(words[at + TOLD_HIGH]) << 32)
        found[3] |= np.int64(words[at + LATE])
        low = at + HEADER + own
        for s in range(first[g], first[g + 1]):
            run[s], run_high[s] = low, low + n
            run_length[s] = words[at + HEADER + s - first[g]]
            low += run_length[s]
        if low != at + HEADER + own + n:
            return np.int64(-1)
        edges += n
    return edges


@njit(cache=True, nogil=True)
def fits(words, start, first, shards):
    """Whether the letters to this group of `shards` shards, `words[start[g]]` to `words[start[g + 1]]`, are whole."""
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


@njit(cache=True, nogil=True)
def _first_of(words, begin, length, hub):
    """How many of the ascending words are below `hub`."""
    low, high = np.int64(0), np.int64(length)
    while low < high:
        middle = (low + high) >> 1
        if words[begin + middle] < hub:
            low = middle + 1
        else:
            high = middle
    return low


@njit(parallel=True, cache=True, nogil=True)
def merge_runs(words, run, run_high, run_length, parts, vertices, shards, low, high, at, to):
    """Merge the runs of edges by high endpoint, then by run, into `low` and `high`, with the classes `at` and `to`.

    The order is that of all groups, whatever `parts` is: parts are cut at high endpoints.
    """
    longest = np.argmax(run_length)
    for part in prange(parts):
        cursor, stop = np.zeros(run.size, np.int64), run_length.copy()
        out = np.int64(0)
        if part > 0:
            hub = words[run_high[longest] + run_length[longest] * part // parts]
            for r in range(run.size):
                cursor[r] = _first_of(words, run_high[r], run_length[r], hub)
                out += cursor[r]
        if part < parts - 1:
            hub = words[run_high[longest] + run_length[longest] * (part + 1) // parts]
            for r in range(run.size):
                stop[r] = _first_of(words, run_high[r], run_length[r], hub)
        # The runs that have edges, and the high endpoint that comes next in each.
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


@njit(cache=True, nogil=True)
def place_letters(leaving_count, begins, first, place, far, edge_place, own_start):
    """Say where everything goes in the letters.

    `begins` [shards, all shards + 1] is where the messages of each shard to each shard start. Writes into `place`
    [shards, all shards] the word of the next message, into `far` [groups] how far values are behind them, into
    `edge_place` [shards + 1] where the edges of each shard start, and into `own_start` [groups + 1] where each group's
    letter starts. Gives the number of messages.
    """
    groups, own = first.size - 1, leaving_count.size
    edge_place[0] = 0
    for s in range(own):
        edge_place[s + 1] = edge_place[s] + leaving_count[s]
    told = np.int64(0)
    own_start[0] = 0
    for g in range(groups):
        a, b = first[g], first[g + 1]
        messages = own_start[g] + 1 + own * (b - a + 1)
        far[g] = 0
        for s in range(own):
            for t in range(a, b):
                place[s, t] = messages + far[g] + begins[s, t] - begins[s, a]
            far[g] += begins[s, b] - begins[s, a]
        own_start[g + 1] = messages + 2 * far[g]
        told += far[g]
    return told
