"""The count of an edge kept as two halves, one in each shard that stores an entry of it.

The triangles that an edge has left are the sum of its halves, less what is on its way. Levels are taken in windows;
`last` is the last level of the window and `alarm` is last // 2. While both halves exceed `alarm`, the sum exceeds
`last` and the edge cannot leave within the window, so nothing is asked. A half that drops to `alarm` goes to the other
shard (an alarm). That shard then has the whole count, as its keeper. It gives half of it back (a grant) where both
would exceed `alarm`, else the first shard reports each round what it has removed (a report). All that is sent in one
exchange arrives in the next, before any edge is removed.

Edges inside a class have one half, which is its own keeper from the start.

Kernels take arrays that they write one by one: Numba's parallel loops drop writes to an array that comes in a tuple.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from ...graph import LongArray
from .cut import class_of

SPLIT, KEEPER, REPORTER, ALARMED, GRANTING, LEAVING = range(6)
"""Roles of a half. ALARMED lasts from an alarm to the next exchange, GRANTING from an alarm that arrived to the next
answer, LEAVING from the decision to remove the edge to its removal.
"""
ALARM, REPORT, GRANT = range(3)
"""Kinds of messages, in the two low bits of a value."""

STANDING = -(2**29)
"""A count above this is that of an edge that stands: a half may fall below zero, by less than the supports there are.
Edges of the running round have STANDING less their position in it, so that two of them can be compared.
"""
GONE = -(2**31)
"""An edge that left at level k has the count GONE + k."""
LEFT = -(2**30)
"""Counts below this are those of edges that left."""
NEVER = 2**62
"""More than any count."""


@dataclass(frozen=True)
class Messages:
    """What the shards of one group tell the shards of another."""

    target: NDArray[np.uint32]
    """[messages] number of the half within its shard."""
    value: NDArray[np.int64]
    """[messages] four times the value, and the kind."""
    start: LongArray
    """[shards that send, shards that receive + 1] where the messages of each pair of shards start."""


@njit(parallel=True, cache=True, nogil=True)
def open_level(half_start, count, role, live, live_stop, leaving, leaving_count, event, event_count, level, alarm):
    """List the edges that leave at `level` and the halves that are at most `alarm`; drop from `live` what has left.

    Gives for each shard the least count of the keepers and of the split halves that stay, NEVER for none.
    """
    least = np.full((half_start.size - 1, 2), NEVER, np.int64)
    for s in prange(half_start.size - 1):
        to = half_start[s]
        leaves = half_start[s]
        events = half_start[s]
        for i in range(half_start[s], live_stop[s]):
            h = live[i]
            c = count[h]
            if c > STANDING:
                live[to] = h
                to += 1
                if role[h] == KEEPER:
                    if c <= level:
                        role[h] = LEAVING
                        leaving[leaves] = h
                        leaves += 1
                    elif c < least[s, 0]:
                        least[s, 0] = c
                elif role[h] == SPLIT:
                    if c <= alarm:
                        event[events] = h
                        events += 1
                    elif c < least[s, 1]:
                        least[s, 1] = c
        live_stop[s] = to
        leaving_count[s] = leaves - half_start[s]
        event_count[s] = events - half_start[s]
    return least


@njit(parallel=True, cache=True, nogil=True)
def receive(
    half_start,
    first,
    count,
    role,
    leaving,
    leaving_count,
    event,
    event_count,
    level,
    alarm,
    sender_first,
    target,
    value,
    start,
):
    """Take in the messages of one group; `start` [its shards, shards here + 1] says which are for which shard.

    Adds to the lists of edges that leave and of events. Where two alarms crossed, the shard of the lower class
    keeps the count.
    """
    for s in prange(half_start.size - 1):
        base = half_start[s]
        leaves = base + leaving_count[s]
        events = base + event_count[s]
        for sender in range(start.shape[0]):
            keeps = first + s < sender_first + sender
            for i in range(start[sender, s], start[sender, s + 1]):
                h = base + target[i]
                kind, v = value[i] & 3, value[i] >> 2
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
        leaving_count[s] = leaves - base
        event_count[s] = events - base


@njit(parallel=True, cache=True, nogil=True)
def settle_alarms(half_start, count, role, told, told_count):
    """Make reporters of the halves whose alarm was not crossed by a lower shard's."""
    for s in prange(half_start.size - 1):
        for i in range(half_start[s], half_start[s] + told_count[s]):
            h = told[i]
            if role[h] == ALARMED:
                role[h] = REPORTER
                if count[h] > STANDING:
                    count[h] = 0


@njit(parallel=True, cache=True, nogil=True)
def send(
    half_start,
    first,
    cut,
    partner,
    ends,
    count,
    role,
    leaving,
    leaving_count,
    event,
    event_count,
    told,
    target,
    value,
    start,
    level,
    alarm,
    kinds,
):
    """Decide on the listed events: edges that leave, or messages, by the shard that they go to.

    `told` are the halves that tell something, `target` the numbers of their partners, `value` four times the value and
    the kind, all from `half_start` on; `start` [shards, all shards + 1] is where the messages to each shard start,
    counted from there. `kinds` [shards, 3] counts the messages by kind.
    """
    vertices, shards = cut
    low, high = ends
    for s in prange(half_start.size - 1):
        base = half_start[s]
        own = np.uint32(first + s)
        leaves = base + leaving_count[s]
        stop = half_start[s]
        begins = start[s]
        begins[:] = 0
        for i in range(base, base + event_count[s]):
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
                event[stop] = h
                stop += 1
                begins[_other(low[h], high[h], own, vertices, shards) + 1] += 1
        for t in range(shards):
            begins[t + 1] += begins[t]
        for i in range(base, stop):
            h = event[i]
            t = _other(low[h], high[h], own, vertices, shards)
            to = base + begins[t]
            begins[t] += 1
            told[to] = h
            target[to] = partner[h]
            c = np.int64(count[h])
            if role[h] == SPLIT:
                role[h] = ALARMED
                value[to] = 4 * c + ALARM
                kinds[s, ALARM] += 1
            elif role[h] == REPORTER:
                value[to] = 4 * c + REPORT
                count[h] = 0
                kinds[s, REPORT] += 1
            else:
                value[to] = 4 * (c // 2) + GRANT
                count[h] = c - c // 2
                role[h] = SPLIT
                kinds[s, GRANT] += 1
        for t in range(shards, 0, -1):
            begins[t] = begins[t - 1]
        begins[0] = 0
        leaving_count[s] = leaves - base
        event_count[s] = 0


@njit(cache=True, nogil=True, inline="always")
def _other(low, high, own, vertices, shards):
    """The class of the endpoint that is not of class `own`."""
    at = class_of(low, vertices, shards)
    return class_of(high, vertices, shards) if at == own else at
