"""The triangle count of an edge as two half counts, one in each shard that stores an entry of the edge.

The number of triangles left at an edge is the sum of its two half counts, less the losses in messages under way.
Peeling takes levels in windows; `last` is the last level of the window and `alarm` is last // 2. While both half counts
exceed `alarm`, their sum exceeds `last`: the edge cannot be removed within the window, and its shards exchange nothing.
When a half count drops to `alarm`, its shard sends the half count to the other shard (an alarm). The receiver then has
the whole count and becomes the keeper of the edge. If the whole count is large enough for two halves above `alarm`, the
keeper gives one half back (a grant). Otherwise the shard that sent the alarm tells the keeper in each round how many
triangles it removed (a report). A group reads the messages of an exchange before it removes the edges of that exchange.

An edge with both endpoints in one class has one half count, and its shard is the keeper from the start. The functions
handle one shard of a `state.GroupState`.
"""

from __future__ import annotations

import numpy as np

from ...runtime.cache import cached_njit
from ..arrays.intrinsics import popcount
from .cut import class_of

SPLIT, KEEPER, REPORTER, ALARMED, GRANTING, LEAVING = range(6)
"""Roles of a half: SPLIT has a part of the count, KEEPER the whole count, REPORTER the losses since its last report.
ALARMED lasts from an alarm to the next exchange, GRANTING from the arrival of an alarm to the next decision, LEAVING
from the decision to remove the edge to its removal. Between levels only the first three occur.
"""
ALARM, REPORT, GRANT = range(3)
"""Kinds of messages. The value of a message is four times the count that it carries, plus the kind."""

LIVE_ABOVE = -(2**28)
"""Edges with a count above this are live (not removed). The half count of a live edge may be negative, but by less than
its support. An edge of the running round has the count LIVE_ABOVE less its position in the round, so that the positions
of two such edges can be compared.
"""
REMOVED_AT = -(2**31)
"""An edge removed at level k has the count REMOVED_AT + k."""
REMOVED_BELOW = REMOVED_AT - LIVE_ABOVE
"""Counts below this belong to removed edges, as levels are below 2^28. Counts from here to LIVE_ABOVE are positions in
a round.
"""
NO_COUNT = 2**32 - 1
"""Stands for the minimum over no counts; larger than any count."""


@cached_njit
def open_level(s, state, window):
    """List the keepers of shard s whose count is at most the level and its split halves whose count is at most the
    alarm, in `leaving` and `event`. Clear the bits of removed edges in `live`.

    Returns the lengths of both lists, and the least count of the keepers and of the split halves that are in neither
    list, NO_COUNT if there are none.
    """
    base, stop = state.half_start[s], state.half_start[s + 1]
    leaving, event = state.leaving[base + s :], state.event[base + s :]
    live = state.live[state.live_start[s] :]
    count, role, level, alarm = state.half_count, state.role, window.level, window.alarm
    leaves, events = 0, 0
    keeper, split = np.int64(NO_COUNT), np.int64(NO_COUNT)
    for w in range((stop - base + 63) >> 6):
        bits = live[w]
        left = bits
        while bits:
            bit = bits & (~bits + np.uint64(1))
            bits ^= bit
            h = base + (w << 6) + np.int64(popcount(bit - np.uint64(1)))
            c = count[h]
            if c <= LIVE_ABOVE:
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


@cached_njit
def receive(messages, s, state, leaves, events, window):
    """Apply the messages of one sending shard to shard s. Returns the new lengths of `leaving` and `event`."""
    words, value_offset, keeps = messages.words, messages.value_offset, messages.keeps
    base = state.half_start[s]
    leaving, event = state.leaving[base + s :], state.event[base + s :]
    count, role, level, alarm = state.half_count, state.role, window.level, window.alarm
    for i in range(messages.first, messages.stop):
        h = base + np.int64(words[i])
        value = np.int32(words[i + value_offset])
        kind, v = value & np.int32(3), value >> np.int32(2)
        c = count[h]
        if c <= LIVE_ABOVE or role[h] == LEAVING:
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


@cached_njit
def settle_alarms(s, state):
    """Make a reporter of each half of shard s that has sent an alarm and is still ALARMED.

    If both shards of an edge sent an alarm in the same exchange, `receive` has made the half of the lower class a
    keeper before.
    """
    first, count, role = state.half_start[s] + s, state.half_count, state.role
    for h in state.sending[first : first + state.sending_count[s]]:
        if role[h] == ALARMED:
            role[h] = REPORTER
            if count[h] > LIVE_ABOVE:
                count[h] = 0


@cached_njit
def decide(s, state, leaves, events, window):
    """Decide for each half in `event` of shard s whether its edge is to be removed or the half sends a message.

    Appends halves of edges to remove to `leaving`, and writes the halves that send a message to `sending`. Writes the
    lengths of both lists, and the prefix sums `begins` of the number of messages to each class.
    """
    first = state.half_start[s] + s
    leaving, event, sending, begins = state.leaving[first:], state.event[first:], state.sending[first:], state.begins[s]
    low, high, edge, vertices, shards = state.low, state.high, state.edge, state.vertices, state.shards
    count, role, level, alarm = state.half_count, state.role, window.level, window.alarm
    own = np.uint32(state.first + s)
    stop = 0
    begins[:] = 0
    for i in range(events):
        h = event[i]
        c = count[h]
        if c <= LIVE_ABOVE:
            continue
        if role[h] == GRANTING and c <= 2 * alarm + 1:
            role[h] = KEEPER
        if role[h] == KEEPER:
            if c <= level:
                role[h] = LEAVING
                leaving[leaves] = h
                leaves += 1
        elif role[h] != LEAVING:
            sending[stop] = h
            stop += 1
            begins[other_class(low[edge[h]], high[edge[h]], own, vertices, shards) + 1] += 1
    for t in range(shards):
        begins[t + 1] += begins[t]
    state.leaving_count[s], state.sending_count[s] = leaves, stop


@cached_njit
def write_messages(s, state, layout, words):
    """Write the messages of the halves of shard s in `sending`, and update their roles and counts.

    Advances `layout.message_at`. Adds to `kinds` the number of messages of each kind.
    """
    low, high, edge, vertices, shards = state.low, state.high, state.edge, state.vertices, state.shards
    count, role, partner, group_of, kinds = state.half_count, state.role, state.partner, state.group_of, state.kinds[s]
    message_at, value_offset = layout.message_at[s], layout.value_offset
    own, first = np.uint32(state.first + s), state.half_start[s] + s
    for h in state.sending[first : first + state.sending_count[s]]:
        t = other_class(low[edge[h]], high[edge[h]], own, vertices, shards)
        to = message_at[t]
        message_at[t] += 1
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
        words[to + value_offset[group_of[t]]] = np.uint32(4 * c + kind)


@cached_njit(inline="always")
def other_class(low, high, own, vertices, shards):
    """The class of the endpoint that is not of class `own`."""
    at = class_of(low, vertices, shards)
    return class_of(high, vertices, shards) if at == own else at
