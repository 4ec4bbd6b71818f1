"""The count of an edge kept as two halves, one in each shard that stores an entry of it.

The triangles that an edge has left are the sum of its halves, less what is on its way. Levels are taken in windows;
`last` is the last level of the window and `alarm` is last // 2. While both halves exceed `alarm`, the sum exceeds
`last` and the edge cannot leave within the window, so nothing is asked. A half that drops to `alarm` goes to the other
shard (an alarm). That shard then has the whole count, as its keeper. It gives half of it back (a grant) where both
would exceed `alarm`, else the first shard reports each round what it has removed (a report). All that is sent in one
exchange arrives in the next, before any edge is removed.

Edges inside a class have one half, which is its own keeper from the start. The functions are for one shard, whose
halves start at `base`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .cut import class_of
from .rows import popcount

SPLIT, KEEPER, REPORTER, ALARMED, GRANTING, LEAVING = range(6)
"""Roles of a half. ALARMED lasts from an alarm to the next exchange, GRANTING from an alarm that arrived to the next
answer, LEAVING from the decision to remove the edge to its removal. Between levels there are only the first three.
"""
ALARM, REPORT, GRANT = range(3)
"""Kinds of messages, in the two low bits of a value: four times the count that is told, plus the kind."""

STANDING = -(2**29)
"""A count above this is that of an edge that stands: a half may fall below zero, by less than the supports there are.
Edges of the running round have STANDING less their position in it, so that two of them can be compared.
"""
GONE = -(2**31)
"""An edge that left at level k has the count GONE + k."""
LEFT = -(2**30)
"""Counts below this are those of edges that left."""
NEVER = 2**32 - 1
"""More than any count."""


@njit(cache=True, nogil=True)
def open_level(base, stop, count, role, live, leaving, event, level, alarm):
    """List the edges that leave at `level` and the halves that are at most `alarm`; drop from `live` what has left.

    `live` has a bit for each half. Gives the lengths of both lists and the least count of the keepers and of the split
    halves that stay, NEVER for none.
    """
    leaves, events = 0, 0
    keeper, split = np.int64(NEVER), np.int64(NEVER)
    for w in range((stop - base + 63) >> 6):
        bits = live[w]
        left = bits
        while bits:
            bit = bits & (~bits + np.uint64(1))
            bits ^= bit
            h = base + (w << 6) + np.int64(popcount(bit - np.uint64(1)))
            c = count[h]
            if c <= STANDING:
                left ^= bit
            elif role[h] == KEEPER:
                if c <= level:
                    role[h] = LEAVING
                    leaving[leaves] = h
                    leaves += 1
                elif c < keeper:
                    keeper = np.int64(c)
            elif role[h] == SPLIT:
                if c <= alarm:
                    event[events] = h
                    events += 1
                elif c < split:
                    split = np.int64(c)
        live[w] = left
    return leaves, events, keeper, split


@njit(cache=True, nogil=True)
def receive(words, target, stop, far, base, count, role, leaving, leaves, event, events, level, alarm, keeps):
    """Take in the messages of one shard for one shard: those from `target` to `stop` in `words`, whose values lie `far`
    words behind.

    Gives the new lengths of the lists of edges that leave and of events. `keeps` says whether this shard has the lower
    class: where two alarms crossed, it keeps the count.
    """
    for i in range(target, stop):
        h = base + np.int64(words[i])
        told = np.int32(words[i + far])
        kind, v = told & np.int32(3), told >> np.int32(2)
        c = count[h]
        if c <= STANDING or role[h] == LEAVING:
            continue
        if kind == ALARM:
            if role[h] == ALARMED and not keeps:
                continue
            c += v
            count[h] = c
            role[h] = KEEPER
            if c <= level:
                role[h] = LEAVING
                leaving[leaves] = h
                leaves += 1
            elif c > 2 * alarm + 1:
                role[h] = GRANTING
                event[events] = h
                events += 1
        elif kind == REPORT:
            count[h] = c + v
            if role[h] == KEEPER:
                if c + v <= level:
                    role[h] = LEAVING
                    leaving[leaves] = h
                    leaves += 1
            elif role[h] == SPLIT and c > alarm and c + v <= alarm:
                event[events] = h
                events += 1
        else:
            count[h] = c + v
            role[h] = SPLIT
            if c + v <= alarm:
                event[events] = h
                events += 1
    return leaves, events


@njit(cache=True, nogil=True)
def settle_alarms(count, role, told, tellers):
    """Make reporters of the halves whose alarm was not crossed by a lower shard's."""
    for i in range(tellers):
        h = told[i]
        if role[h] == ALARMED:
            role[h] = REPORTER
            if count[h] > STANDING:
                count[h] = 0


@njit(cache=True, nogil=True)
def decide(
    low, high, vertices, shards, own, count, role, edge, leaving, leaves, event, events, told, begins, level, alarm
):
    """Decide on the listed events: edges that leave, and halves that tell something, which go into `told`.

    Counts in `begins` [all shards + 1] where the messages to each shard start. Gives the new length of `leaving` and
    the length of `told`.
    """
    stop = 0
    begins[:] = 0
    for i in range(events):
        h = event[i]
        c = count[h]
        if c <= STANDING:
            continue
        if role[h] == GRANTING and c <= 2 * alarm + 1:
            role[h] = KEEPER
        if role[h] == KEEPER:
            if c <= level:
                role[h] = LEAVING
                leaving[leaves] = h
                leaves += 1
        elif role[h] != LEAVING:
            told[stop] = h
            stop += 1
            begins[other_class(low[edge[h]], high[edge[h]], own, vertices, shards) + 1] += 1
    for t in range(shards):
        begins[t + 1] += begins[t]
    return leaves, stop


@njit(cache=True, nogil=True)
def tell(
    low, high, vertices, shards, own, count, role, edge, partner, told, tellers, place, far, group_of, words, kinds
):
    """Write the messages of the halves in `told`, and change their roles and counts.

    `place` [all shards] is where the next message to each shard goes in `words`, and its value goes `far[group]` words
    behind. `kinds` [3] counts the messages by kind.
    """
    for i in range(tellers):
        h = told[i]
        t = other_class(low[edge[h]], high[edge[h]], own, vertices, shards)
        to = place[t]
        place[t] += 1
        c = count[h]
        if role[h] == SPLIT:
            role[h] = ALARMED
            kind = ALARM
            kinds[ALARM] += 1
        elif role[h] == REPORTER:
            count[h] = 0
            kind = REPORT
            kinds[REPORT] += 1
        else:
            role[h] = SPLIT
            count[h] = c - c // 2
            c = c // 2
            kind = GRANT
            kinds[GRANT] += 1
        words[to] = partner[h]
        words[to + far[group_of[t]]] = np.uint32(4 * c + kind)


@njit(cache=True, nogil=True, inline="always")
def other_class(low, high, own, vertices, shards):
    """The class of the endpoint that is not of class `own`."""
    at = class_of(low, vertices, shards)
    return class_of(high, vertices, shards) if at == own else at
