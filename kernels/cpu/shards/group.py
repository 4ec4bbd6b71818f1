"""A group of shards of one process, with its state: the twin on the CPU, one thread at work on each shard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...graph import LongArray
from . import halves as roles
from .halves import GONE, LEFT, STANDING, Messages, open_level, receive, send, settle_alarms
from .rounds import compact, leave, mark_leaving, remove
from .rows import Pairs, ShardRows

COMPACT_AT = 0.8
"""Rows are compacted when this share of the entries is left that there were the last time."""
MOST_IN_A_ROUND = STANDING - LEFT
"""Edges that may leave in one round: their positions are told apart by their counts."""
MOST_TRIANGLES = -STANDING
"""Supports are below this, so that no half that falls is taken for an edge that has left."""


@dataclass(frozen=True)
class Leaving:
    """Edges that leave in the next round, shard after shard."""

    low: NDArray[np.uint32]
    high: NDArray[np.uint32]


class ShardGroup:
    """Peels the shards `rows.first` to `rows.first + rows.shards - 1`. Not for several threads at once.

    `support` [halves] int32 is the number of triangles of each half's edge, the same in both of its shards. Raises
    ValueError for a support of 2^29 or more.
    """

    def __init__(self, rows: ShardRows, pairs: Pairs, support: NDArray[np.int32]) -> None:
        if support.max(initial=0) >= MOST_TRIANGLES:
            raise ValueError(f"an edge of {support.max():,} triangles; shards count up to {MOST_TRIANGLES - 1:,}")
        self.rows, self._pairs = rows, pairs
        shards, total = rows.shards, len(rows.low)
        self._cut = np.uint32(rows.cut.vertices), np.uint32(rows.cut.shards)
        low_class, high_class = rows.cut.classes(rows.low), rows.cut.classes(rows.high)
        own = np.repeat(np.arange(rows.first, rows.first + shards), np.diff(rows.half_start)).astype(np.uint32)
        inside = low_class == high_class
        self._at_high = high_class == own
        self.supports = int(support[self._at_high].sum(dtype=np.int64))
        """Triangles of the edges of which this group has the high endpoint's half."""
        share = np.where(self._at_high, support - support // 2, support // 2)
        self._count = np.where(inside, support, share).astype(np.int32)
        self._role = np.where(inside, roles.KEEPER, roles.SPLIT).astype(np.uint8)
        del low_class, high_class, own, inside, share
        self._partner = np.arange(total, dtype=np.uint32)
        for s in range(shards):
            self._partner[rows.half_start[s] : rows.half_start[s + 1]] -= np.uint32(rows.half_start[s])
        self._length, self._neighbour, self._half = rows.length.copy(), rows.neighbour.copy(), rows.half.copy()
        self._live, self._live_stop = np.arange(total, dtype=np.uint32), rows.half_start[1:].copy()
        self._leaving, self._leaving_count = np.empty(total, np.uint32), np.zeros(shards, np.int64)
        self._event, self._event_count = np.empty(total, np.uint32), np.zeros(shards, np.int64)
        self._told, self._target = np.empty(total, np.uint32), np.empty(total, np.uint32)
        self._value = np.empty(total, np.int64)
        self._told_start = np.zeros((shards, rows.cut.shards + 1), np.int64)
        self._limit = np.full(6, roles.NEVER, np.int64)
        self._limit[roles.REPORTER] = 0
        self._marks = np.zeros((shards, rows.cut.width), np.uint32)
        self._found = np.empty((2, shards, rows.widest + 1), np.uint32)
        self._left = self._in_rows = total
        self.kinds = np.zeros((shards, 3), np.int64)
        """[shards, 3] alarms, reports and grants that each shard sent."""
        self.received = 0
        """Messages that the group took in."""
        self.counts = np.zeros((shards, 3), np.int64)
        """[shards, 3] see `rounds.ENTRIES` and what follows it."""

    def partners_for(self, first: int, shards: int) -> Messages:
        """What the shards of another group, or of this one, need for `link`: the numbers of the halves here."""
        rows, pairs = self.rows, self._pairs
        number = pairs.half - np.repeat(rows.half_start[:-1], np.diff(rows.half_start)).astype(np.uint32)
        return _parts(rows.half_start, pairs.start, first, shards, number, None)

    def link(self, first: int, given: Messages) -> None:
        """Note the partners of the halves whose edges lead to the group of `first`; `given` is its `partners_for`."""
        rows, pairs = self.rows, self._pairs
        for s in range(rows.shards):
            for t in range(len(given.start)):
                begin, stop = rows.half_start[s] + pairs.start[s, first + t : first + t + 2]
                theirs = given.target[given.start[t, s] : given.start[t, s + 1]]
                self._partner[pairs.half[begin:stop]] = theirs

    def open_level(self, level: int, last: int) -> tuple[int, int]:
        """Start a level of the window that ends with `last`, while nothing is on its way.

        Gives the least count of the edges that this group decides on and that stay, and the least half of the others.
        """
        self._limit[roles.SPLIT], self._limit[roles.KEEPER] = last // 2 + 1, level + 1
        lists = (self._leaving, self._leaving_count, self._event, self._event_count)
        state = (self._count, self._role, self._live, self._live_stop)
        least = open_level(self.rows.half_start, *state, *lists, level, last // 2)
        self.send(level, last)
        keeper, split = least.min(axis=0).tolist()
        return keeper, split

    @property
    def leaving(self) -> Leaving:
        """The edges that the group wants to leave in the next round."""
        starts = self.rows.half_start[:-1]
        parts = [self._leaving[a : a + n] for a, n in zip(starts, self._leaving_count, strict=True)]
        half = np.concatenate(parts)
        return Leaving(self.rows.low[half], self.rows.high[half])

    def messages_for(self, first: int, shards: int) -> Messages:
        """What the group's shards tell the shards from `first` on."""
        return _parts(self.rows.half_start, self._told_start, first, shards, self._target, self._value)

    def receive(self, first: int, given: Messages, level: int, last: int) -> None:
        """Take in what the group of `first` has told; every group's before `remove`."""
        lists = (self._leaving, self._leaving_count, self._event, self._event_count)
        state = (self._count, self._role)
        message = (given.target, given.value, given.start)
        self.received += len(given.target)
        receive(self.rows.half_start, self.rows.first, *state, *lists, level, last // 2, first, *message)

    def begin_round(self) -> None:
        """Empty the list of edges that leave, once `leaving` and `messages_for` were read."""
        self._leaving_count[:] = 0

    def settle_alarms(self) -> None:
        """After all messages are in: who asked, and was not asked by a lower shard, reports from now on."""
        settle_alarms(self.rows.half_start, self._count, self._role, self._told, self._told_start[:, -1].copy())

    def remove(self, leaving: Leaving, level: int) -> None:
        """Remove the edges that leave in this round, of all groups, in the order that all groups have them in."""
        edges = _by_high(leaving)
        rows = self.rows
        if len(leaving.low) > MOST_IN_A_ROUND:
            raise ValueError(f"{len(leaving.low):,} edges leave in one round, {MOST_IN_A_ROUND:,} at most")
        table = (rows.word, rows.before, rows.begin, self._length, self._neighbour, self._half)
        mine, mine_count = self._told, np.zeros(rows.shards, np.int64)
        mark_leaving(
            edges, self._cut, rows.first, table, rows.half_start, self._count, mine, mine_count, level, self.counts
        )
        state = (self._count, self._role, self._limit, self._marks, *self._found)
        remove(edges, table, rows.half_start, *state, self._event, self._event_count, self.counts)
        leave(rows.half_start, mine, mine_count, self._count, level)
        self._left -= int(mine_count.sum())
        if self._left < COMPACT_AT * self._in_rows:
            compact(rows.row_start, rows.begin, self._length, self._neighbour, self._half, self._count)
            self._in_rows = self._left

    def send(self, level: int, last: int) -> None:
        """Decide what follows from this round: edges that leave in the next one, and messages."""
        rows = self.rows
        lists = (self._leaving, self._leaving_count, self._event, self._event_count)
        outgoing = (self._told, self._target, self._value, self._told_start)
        fixed = (self._cut, self._partner, (rows.low, rows.high))
        state = (self._count, self._role)
        send(rows.half_start, rows.first, *fixed, *state, *lists, *outgoing, level, last // 2, self.kinds)

    @property
    def told(self) -> int:
        """Messages that wait to be carried."""
        return int(self._told_start[:, -1].sum())

    def levels(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.int32]]:
        """Low and high endpoint and λ of the edges of which the shards of this group have the high endpoint's half."""
        here = np.flatnonzero(self._at_high)
        return self.rows.low[here], self.rows.high[here], self._count[here] - np.int32(GONE)


def _parts(
    half_start: LongArray, start: LongArray, first: int, shards: int, target: Any, value: Any | None
) -> Messages:
    """The parts of lists, kept shard after shard, that go to the shards from `first` on; copies."""
    begin, stop = half_start[:-1] + start[:, first], half_start[:-1] + start[:, first + shards]
    where = [slice(a, b) for a, b in zip(begin, stop, strict=True)]
    within = start[:, first : first + shards + 1] - start[:, first : first + 1]
    before = np.concatenate([[0], np.cumsum(stop - begin)[:-1]])
    values = np.empty(0, np.int64) if value is None else np.concatenate([value[part] for part in where])
    return Messages(np.concatenate([target[part] for part in where]), values, within + before[:, None])


def _by_high(leaving: Leaving) -> tuple[Any, Any, Any]:
    """Low, high and position of edges, sorted by high endpoint."""
    key = leaving.high.astype(np.uint64) << np.uint64(32)
    key |= np.arange(len(key), dtype=np.uint64)
    key.sort()
    position = (key & np.uint64(2**32 - 1)).astype(np.int64)
    return leaving.low[position], leaving.high[position], position
