"""Two words per edge, one for each endpoint, and their transfer between groups.

The word of an endpoint belongs to the shard of the endpoint's class. If the two endpoints of an edge belong to two
groups, each group knows one word and sends it to the other. Both groups have the edges between their classes in the
same order, so a group sends only the words, in blocks.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from ...runtime.cache import cached_njit
from .cut import class_of


@cached_njit(parallel=True)
def write_endpoint_words(low, high, vertices, shards, group_of, rank, at_low, at_high, cursor, block, count):
    """Write the next words for each other group into `block` [groups, words], and their number into `count` [groups].

    `low`, `high` [edges] are the endpoints, `at_low`, `at_high` [edges] their words. `group_of` [classes] is the group
    of each class, `rank` this group. `cursor` [groups] int64 is the next edge to look at for each group, and is
    advanced; it reaches the number of edges when there are no more words for that group.
    """
    for g in prange(cursor.size):
        listed = np.int64(0)
        e = cursor[g]
        while g != rank and e < low.size and listed < block.shape[1]:
            a = group_of[class_of(low[e], vertices, shards)]
            b = group_of[class_of(high[e], vertices, shards)]
            if a == rank and b == g:
                block[g, listed] = at_low[e]
                listed += 1
            elif a == g and b == rank:
                block[g, listed] = at_high[e]
                listed += 1
            e += 1
        cursor[g] = e if g != rank else low.size
        count[g] = listed


@cached_njit(parallel=True)
def read_endpoint_words(low, high, vertices, shards, group_of, rank, words, start, cursor, at_low, at_high):
    """Read the words of all other groups into `at_low` and `at_high`. The words of group g are
    `words[start[g]:start[g+1]]`.

    `cursor` [groups] int64 is as in `write_endpoint_words`. Returns for each group the number of words that belong to
    no edge.
    """
    excess = np.zeros(cursor.size, np.int64)
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
        excess[g] = start[g + 1] - i
    return excess


@cached_njit
def _link_one(s, state, at_low, at_high):
    low, edge, partner, vertices, shards = state.low, state.edge, state.partner, state.vertices, state.shards
    own = np.uint32(state.first + s)
    for h in range(state.half_start[s], state.half_start[s + 1]):
        e = edge[h]
        here = class_of(low[e], vertices, shards) == own
        partner[h] = (at_high[e] if here else at_low[e]) - np.uint32(1)


@cached_njit(parallel=True)
def link_halves(state, at_low, at_high):
    """Write `state.partner`.

    `at_low`, `at_high` are the endpoint words of `build_rows`, completed with the words of the other groups.
    """
    for s in prange(state.half_start.size - 1):
        _link_one(np.int64(s), state, at_low, at_high)


@cached_njit(parallel=True)
def counts_by_endpoint(state, live_above, at_low, at_high):
    """Write each half count to the word of the endpoint whose class is the shard, or 0 if the edge is removed.

    `live_above` is LIVE_ABOVE of `half_counts`. The count of an edge inside a class goes to the high endpoint. Words of
    endpoints in other groups stay unchanged.
    """
    high, edge, count, half_start = state.high, state.edge, state.half_count, state.half_start
    vertices, shards, first = state.vertices, state.shards, state.first
    for s in prange(half_start.size - 1):
        own = np.uint32(first + s)
        for h in range(half_start[s], half_start[s + 1]):
            e = edge[h]
            value = np.uint32(count[h]) if count[h] > live_above else np.uint32(0)
            if class_of(high[e], vertices, shards) == own:
                at_high[e] = value
            else:
                at_low[e] = value


@cached_njit(parallel=True)
def write_intervals(state, bounds, level, at_low, at_high):
    """Write bounds of λ of each edge whose high endpoint is in the group: lower to `at_low`, upper to `at_high`.

    Both bounds of a removed edge are its λ. The bounds of a live edge are `level` and the sum of its half counts, which
    its two words hold before. `bounds` are LIVE_ABOVE and REMOVED_AT of `half_counts`.
    """
    high, edge, count, half_start = state.high, state.edge, state.half_count, state.half_start
    vertices, shards, first = state.vertices, state.shards, state.first
    for s in prange(half_start.size - 1):
        own = np.uint32(first + s)
        for h in range(half_start[s], half_start[s + 1]):
            e = edge[h]
            if class_of(high[e], vertices, shards) == own:
                if count[h] > bounds[0]:
                    at_high[e] += at_low[e]
                    at_low[e] = level
                else:
                    at_low[e] = at_high[e] = count[h] - bounds[1]


@cached_njit
def gather_owned(high, vertices, shards, first, stop, at_low, at_high, lower, upper):
    """Copy the words of the edges whose high endpoint is of a class from `first` to `stop` - 1, in the order of edges.

    Words at low endpoints go to `lower`, words at high endpoints to `upper`. Returns the number of these edges. Both
    arrays may be shorter than this number; empty arrays only count.
    """
    found = np.int64(0)
    for e in range(high.size):
        own = class_of(high[e], vertices, shards)
        if first <= own and own < stop:
            if found < lower.size:
                lower[found], upper[found] = at_low[e], at_high[e]
            found += 1
    return found
