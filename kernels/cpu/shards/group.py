"""A group of shards of one process, with its state: the twin on the CPU, one thread at work on each shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from ...graph import IntArray, LongArray
from . import halves as roles
from .halves import GONE, LEFT, NEVER, STANDING
from .letters import HEADER, LARGE, fits, merge_runs, place_letters, read_headers
from .room import MEMORY, Room
from .rounds import find_live, open_levels, play, start_halves, write_letters
from .rows import ShardRows
from .sides import certify, halves_by_side, link_halves, take_owned

MOST_IN_A_ROUND = STANDING - LEFT
"""Edges that may leave in one round: their positions are told apart by their counts."""
MOST_TRIANGLES = -STANDING
"""Supports are below this, so that no half that falls is taken for an edge that has left."""
SMALL = 16
"""Edges and messages of a round up to which one thread plays it: to wake others takes longer."""

BLOCK = 256
"""Edges whose rows a thread asks for at once."""

Words = NDArray[np.uint32]


@dataclass(frozen=True)
class Heard:
    """What the letters of all groups say together."""

    edges: int
    """Edges that leave in this round."""
    keeper: int
    """The least count of an edge that one shard keeps alone, as of the start of the level."""
    split: int
    """The least half of the other edges, as of the start of the level."""
    told: int
    """Messages between any groups."""
    late: bool
    """Whether a group's time is over."""


class ShardGroup:
    """Peels the shards `rows.first` to `rows.first + rows.shards - 1`. Not for several threads at once.

    `sides` are those of `build_rows`, with the words of all groups. `low`, `high` [edges] uint32 are what the rows were
    built from, and are kept; `support` [edges] int32 is the number of triangles of each edge. `firsts` [groups + 1] is
    the first shard of each group. Raises ValueError for a support of 2^29 or more.
    """

    def __init__(
        self,
        rows: ShardRows,
        sides: NDArray[np.uint32],
        low: NDArray[np.uint32],
        high: NDArray[np.uint32],
        support: IntArray,
        firsts: Sequence[int],
        room: Room = MEMORY,
    ) -> None:
        most = int(support.max(initial=0))
        if most >= MOST_TRIANGLES:
            raise ValueError(f"an edge of {most:,} triangles; shards count up to {MOST_TRIANGLES - 1:,}")
        self.rows, self.room, self.low, self.high = rows, room, low, high
        shards, total, classes = rows.shards, len(rows.edge), rows.cut.shards
        self._firsts = np.array(firsts, np.int64)
        self.rank = int(np.searchsorted(self._firsts, rows.first, side="right")) - 1
        self._group_of = np.repeat(np.arange(len(firsts) - 1), np.diff(self._firsts))
        self._threads = numba.get_num_threads()
        self._cut = (
            low,
            high,
            np.uint32(rows.cut.vertices),
            np.uint32(classes),
            rows.first,
            rows.half_start,
            rows.edge,
        )
        self._partner = room.array(total, np.uint32)
        link_halves(*self._cut, *sides, self._partner)
        self.count, self.role = np.empty(total, np.int32), np.empty(total, np.uint8)
        self.supports = int(start_halves(*self._cut, support, self.count, self.role).sum())
        """Triangles of the edges of which this group has the high endpoint's half."""
        words = (np.diff(rows.half_start) + 63) // 64
        self._live_start = np.append(0, np.cumsum(words))
        self._live = np.zeros(int(self._live_start[-1]), np.uint64)
        # Of these lists only the pages that are written take memory.
        self._leaving, self._event, self._told = (np.empty(total + shards, np.uint32) for _ in range(3))
        self._leaving_count, self._told_count = np.zeros(shards, np.int64), np.zeros(shards, np.int64)
        self._begins = np.zeros((shards, classes + 1), np.int64)
        self._limit = np.full(6, NEVER, np.int64)
        self._limit[roles.REPORTER] = 0
        self._least = np.zeros((shards, 2), np.int64)
        self._marks = np.zeros((shards, rows.cut.width), np.uint32)
        self._found = np.empty((2, shards, rows.widest + 1), np.uint32)
        self._rows_found = np.empty((2, shards, BLOCK), np.uint64)
        self._left, self._in_rows = np.diff(rows.half_start), np.diff(rows.half_start)
        self._received = np.zeros(shards, np.int64)
        groups = len(firsts) - 1
        self._place, self._far = np.zeros((shards, classes), np.int64), np.zeros(groups, np.int64)
        self._edge_place, self._own_start = np.zeros(shards + 1, np.int64), np.zeros(groups + 1, np.int64)
        self._run, self._run_high, self._run_length = np.zeros((3, classes), np.int64)
        self._found_in_heads = np.zeros(4, np.int64)
        self._common, self._words = np.empty(HEADER, np.uint32), np.empty(0, np.uint32)
        self._all, self._mine = np.empty(0, np.uint32), np.empty(0, np.uint32)
        self._mine_start = np.zeros(groups + 1, np.int64)
        self._round = [np.empty(0, np.uint32) for _ in range(4)]
        self._edges = self._load = 0
        room.at_random(rows.entry)
        self.kinds = np.zeros((shards, 3), np.int64)
        """[shards, 3] alarms, reports and grants that each shard sent."""
        self.counts = np.zeros((shards, 3), np.int64)
        """[shards, 3] see `removal.ENTRIES` and what follows it."""
        self.messages = 0
        """Messages that the group sent."""
        self.edges = 0
        """Edges that the group told all others to remove."""
        self.letter_words = 0
        """Words of the last letters to other groups alone."""

    @property
    def received(self) -> int:
        """Messages that the group took in."""
        return int(self._received.sum())

    @received.setter
    def received(self, messages: int) -> None:
        self._received[:] = 0
        self._received[0] = messages

    def find_live(self) -> tuple[int, int]:
        """Find what stands, after counts were given or at a stop; gives the sum of the halves that stand, and the edges
        that stand whose high endpoint is of this group.
        """
        rows = self.rows
        table = (rows.row_start, rows.row, rows.entry_start, rows.entry)
        self._live[:] = 0
        found = find_live(*self._cut, self.count, self._live_start, self._live, *table)
        self._left, self._in_rows = found[:, 0].copy(), found[:, 0].copy()
        return int(found[:, 1].sum()), int(found[:, 2].sum())

    def open_level(self, level: int, last: int) -> None:
        """Start a level of the window that ends with `last`, while nothing is on its way."""
        self._limit[roles.SPLIT], self._limit[roles.KEEPER] = last // 2 + 1, level + 1
        state = (self.count, self.role, self._live_start, self._live)
        open_levels(*self._cut, *state, *self._lists, self._begins, level, last // 2, self._least)

    def write(self, level: int, last: int, left: int, late: bool) -> tuple[Words, list[Words]]:
        """What to tell all groups, and each of them alone. The arrays are those of the next call, too.

        `left` is the number of edges of the graph that are left before this round.
        """
        start = self._own_start
        told = place_letters(
            self._leaving_count, self._begins, self._firsts, self._place, self._far, self._edge_place, start
        )
        leaving = int(self._edge_place[-1])
        size = HEADER + self.rows.shards + 2 * leaving
        starts = start.tolist()
        self._common, self._words = _grown(self._common, size), _grown(self._words, starts[-1])
        self._use_threads(leaving + told >= LARGE)
        leaving_lists = (self._leaving, self._leaving_count, self._told, self._told_count)
        write_letters(
            *self._cut,
            self._partner,
            self.count,
            self.role,
            *leaving_lists,
            self._begins,
            self._place,
            self._far,
            self._edge_place,
            start,
            self._firsts,
            self._group_of,
            self._common,
            self._words,
            self.kinds,
        )
        self._use_threads(True)
        keeper, split = self._least.min(axis=0).tolist()
        low = 2**32 - 1
        self._common[:HEADER] = (
            leaving, level, last, left & low, left >> 32, keeper, split, told & low, told >> 32, late
        )  # fmt: skip
        self.messages += told
        self.edges += leaving
        self.letter_words = starts[-1] - starts[self.rank + 1] + starts[self.rank]
        return self._common[:size], [self._words[a:b] for a, b in pairwise(starts)]

    def read(self, common: Sequence[Words], own: Sequence[Words]) -> Heard | None:
        """Take the letters of all groups, by rank; None where headers disagree or letters are not whole.

        Raises ValueError where more edges leave than one round may have.
        """
        self._all, start = _joined(common, self._all)
        self._mine, self._mine_start = _joined(own, self._mine)
        runs = (self._run, self._run_high, self._run_length)
        edges = read_headers(self._all, start, self._firsts, *runs, self._found_in_heads)
        if edges < 0 or not fits(self._mine, self._mine_start, self._firsts, self.rows.shards):
            return None
        if edges > MOST_IN_A_ROUND:
            raise ValueError(f"{edges:,} edges leave in one round, {MOST_IN_A_ROUND:,} at most")
        keeper, split, told, late = self._found_in_heads.tolist()
        self._edges, self._load = edges, edges + told
        return Heard(edges, keeper, split, told, bool(late))

    def play(self, level: int, last: int) -> None:
        """Take in the messages that were read, remove the edges that leave, and decide what follows."""
        rows, edges = self.rows, self._edges
        if edges:
            self._round = [_grown(array, edges) for array in self._round]
            large = edges >= LARGE
            self._use_threads(large)
            runs = (self._run, self._run_high, self._run_length)
            parts = rows.shards if large else 1
            merge_runs(self._all, *runs, parts, self._cut[2], self._cut[3], *self._round)
        self._use_threads(self._load > SMALL)
        table = (rows.row_start, rows.row, rows.entry_start, rows.entry)
        play(
            self._mine,
            self._mine_start,
            self._firsts,
            edges,
            *self._round,
            *self._cut,
            self.count,
            self.role,
            *self._lists,
            self._begins,
            rows.has_row,
            *table,
            self._limit,
            self._marks,
            *self._found,
            *self._rows_found,
            self.counts,
            self._left,
            self._in_rows,
            self._received,
            level,
            last // 2,
        )
        self._use_threads(True)

    def sides(self) -> NDArray[np.uint32]:
        """[2, edges] the count of each half that stands here, by the side of its edge; 0 elsewhere."""
        sides = self.room.array(2 * len(self._cut[0]), np.uint32).reshape(2, -1)
        sides[:] = 0
        halves_by_side(*self._cut, self.count, STANDING, *sides)
        return sides

    def certified(self, sides: NDArray[np.uint32], level: int) -> tuple[IntArray, IntArray]:
        """Both ends of the interval of λ of the edges whose high endpoint is of this group, in their order.

        `sides` are those of this group, with what the others have, and are used up.
        """
        certify(*self._cut, self.count, STANDING, GONE, level, *sides)
        first, stop = self._firsts[self.rank : self.rank + 2].tolist()
        fixed = (self.high, self._cut[2], self._cut[3], first, stop, *sides)
        none = np.empty(0, np.int32)
        low, high = (np.empty(take_owned(*fixed, none, none), np.int32) for _ in range(2))
        take_owned(*fixed, low, high)
        return low, high

    @property
    def _lists(self) -> tuple[Any, ...]:
        return self._leaving, self._leaving_count, self._event, self._told, self._told_count

    def _use_threads(self, many: bool) -> None:
        numba.set_num_threads(self._threads if many else 1)


def _grown(array: Words, length: int) -> Words:
    """The array, or a longer one without its content."""
    return array if len(array) >= length else np.empty(length + length // 4, np.uint32)


def _joined(letters: Sequence[Words], room: Words) -> tuple[Words, LongArray]:
    """All letters in one array, `room` where they fit, and where each starts."""
    start = np.zeros(len(letters) + 1, np.int64)
    np.cumsum([len(words) for words in letters], out=start[1:])
    room = _grown(room, int(start[-1]))
    np.concatenate(letters, out=room[: start[-1]])
    return room, start
