"""The shards of one group with their state, on the CPU: one thread works on each shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from ...graph import IntArray, LongArray
from ...runtime.sizes import NUMPY_ALLOCATOR, Allocator
from .endpoint_words import counts_by_endpoint, gather_owned, link_halves, write_intervals
from .half_counts import KEEPER, LIVE_ABOVE, NO_COUNT, REMOVED_AT, REMOVED_BELOW, REPORTER, SPLIT
from .packets import HEADER, LARGE, are_complete, lay_out_packets, merge_runs, read_headers
from .rounds import find_live, open_levels, run_round, start_halves, write_packets
from .rows import ShardRows

MAX_ROUND_EDGES = LIVE_ABOVE - REMOVED_BELOW
"""Maximum number of edges of one round: their counts hold their positions in the round."""
MAX_SUPPORT = -LIVE_ABOVE
"""Supports are below this, so that no decreasing half count reaches the counts of removed edges."""
ONE_THREAD_UP_TO = 16
"""Edges and messages of a round up to which one thread runs it, as waking others takes longer."""

BLOCK = 256
"""Edges whose rows a thread prefetches together."""

Words = NDArray[np.uint32]


@dataclass(frozen=True)
class RoundTotals:
    """Totals over the packets of all groups."""

    edges: int
    """Edges to remove in this round."""
    least_keeper: int
    """The least count of a keeper that is not removed, at the start of the level; NO_COUNT if there is none."""
    least_split: int
    """The least split half count above the alarm, at the start of the level; NO_COUNT if there is none."""
    messages: int
    """Messages between any groups."""
    late: bool
    """Whether the time of any group is over."""


class ShardGroup:
    """Peels the shards `rows.first` to `rows.first + rows.shards - 1`. Not safe for concurrent calls.

    `words` [2, edges] are those of `build_rows`, completed with the words of the other groups. `low`, `high` [edges]
    uint32 are the edges that the rows were built from; they are kept. `support` [edges] int32 is the number of
    triangles of each edge, `firsts` [groups + 1] the first shard of each group. Raises ValueError for a support of 2^28
    or more.
    """

    def __init__(
        self,
        rows: ShardRows,
        words: NDArray[np.uint32],
        low: NDArray[np.uint32],
        high: NDArray[np.uint32],
        support: IntArray,
        firsts: Sequence[int],
        allocator: Allocator = NUMPY_ALLOCATOR,
    ) -> None:
        most = int(support.max(initial=0))
        if most >= MAX_SUPPORT:
            raise ValueError(f"an edge of {most:,} triangles; shards count up to {MAX_SUPPORT - 1:,}")
        self.rows, self.allocator, self.low, self.high = rows, allocator, low, high
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
        self._partner = allocator.allocate(total, np.uint32)
        link_halves(*self._cut, *words, self._partner)
        self.count, self.role = np.empty(total, np.int32), np.empty(total, np.uint8)
        self.supports = int(start_halves(*self._cut, support, self.count, self.role).sum())
        """The sum of the supports of the edges whose high endpoint is in this group."""
        live_words = (np.diff(rows.half_start) + 63) // 64
        self._live_start = np.append(0, np.cumsum(live_words))
        self._live = np.zeros(int(self._live_start[-1]), np.uint64)
        # Only pages of these lists that are written take memory.
        self._leaving, self._event, self._sending = (np.empty(total + shards, np.uint32) for _ in range(3))
        self._leaving_count, self._sending_count = np.zeros(shards, np.int64), np.zeros(shards, np.int64)
        self._begins = np.zeros((shards, classes + 1), np.int64)
        self._limit = np.full(6, NO_COUNT, np.int64)
        self._limit[REPORTER] = 0
        self._least = np.zeros((shards, 2), np.int64)
        self._marks = np.zeros((shards, rows.cut.width), np.uint32)
        self._found = np.empty((2, shards, rows.widest + 1), np.uint32)
        self._rows_found = np.empty((2, shards, BLOCK), np.uint64)
        self._left, self._in_rows = np.diff(rows.half_start), np.diff(rows.half_start)
        self._received = np.zeros(shards, np.int64)
        groups = len(firsts) - 1
        self._message_at, self._value_offset = np.zeros((shards, classes), np.int64), np.zeros(groups, np.int64)
        self._edge_offset, self._packet_start = np.zeros(shards + 1, np.int64), np.zeros(groups + 1, np.int64)
        self._run, self._run_high, self._run_length = np.zeros((3, classes), np.int64)
        self._header_totals = np.zeros(4, np.int64)
        self._common, self._words = np.empty(HEADER, np.uint32), np.empty(0, np.uint32)
        self._all, self._mine = np.empty(0, np.uint32), np.empty(0, np.uint32)
        self._mine_start = np.zeros(groups + 1, np.int64)
        self._round = [np.empty(0, np.uint32) for _ in range(4)]
        self._edges = self._load = 0
        allocator.advise_random(rows.entry)
        self.kinds = np.zeros((shards, 3), np.int64)
        """int64 [shards, 3] the alarms, reports and grants that each shard sent."""
        self.counts = np.zeros((shards, 3), np.int64)
        """int64 [shards, 3] columns ENTRIES, TRIANGLES and FINGERPRINT of `removal`."""
        self.messages = 0
        """Messages sent by this group."""
        self.edges = 0
        """Edges that this group announced for removal."""
        self.packet_words = 0
        """Words of the last packets to single other groups."""

    @property
    def received(self) -> int:
        """Messages that this group received."""
        return int(self._received.sum())

    @received.setter
    def received(self, messages: int) -> None:
        self._received[:] = 0
        self._received[0] = messages

    def find_live(self) -> tuple[int, int]:
        """Find the live halves, after counts were set or at a stop, and compact the rows.

        Returns the sum of the live half counts, and the number of live edges whose high endpoint is in this group.
        """
        rows = self.rows
        table = (rows.row_start, rows.row, rows.entry_start, rows.entry)
        self._live[:] = 0
        found = find_live(*self._cut, self.count, self._live_start, self._live, *table)
        self._left, self._in_rows = found[:, 0].copy(), found[:, 0].copy()
        return int(found[:, 1].sum()), int(found[:, 2].sum())

    def open_level(self, level: int, last: int) -> None:
        """Start a level of the window that ends with `last`. No message may be under way."""
        self._limit[SPLIT], self._limit[KEEPER] = last // 2 + 1, level + 1
        state = (self.count, self.role, self._live_start, self._live)
        open_levels(*self._cut, *state, *self._lists, self._begins, level, last // 2, self._least)

    def write(self, level: int, last: int, left: int, late: bool) -> tuple[Words, list[Words]]:
        """Write the packets of this round: the common one, and one to each group. The next call overwrites them.

        `left` is the number of edges of the graph that remain before this round; `late` says whether the time of this
        group is over.
        """
        start = self._packet_start
        messages = lay_out_packets(
            self._leaving_count,
            self._begins,
            self._firsts,
            self._message_at,
            self._value_offset,
            self._edge_offset,
            start,
        )
        leaving = int(self._edge_offset[-1])
        size = HEADER + self.rows.shards + 2 * leaving
        starts = start.tolist()
        self._common, self._words = _with_capacity(self._common, size), _with_capacity(self._words, starts[-1])
        self._use_threads(leaving + messages >= LARGE)
        leaving_lists = (self._leaving, self._leaving_count, self._sending, self._sending_count)
        write_packets(
            *self._cut,
            self._partner,
            self.count,
            self.role,
            *leaving_lists,
            self._begins,
            self._message_at,
            self._value_offset,
            self._edge_offset,
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
            leaving, level, last, left & low, left >> 32, keeper, split, messages & low, messages >> 32, late
        )  # fmt: skip
        self.messages += messages
        self.edges += leaving
        self.packet_words = starts[-1] - starts[self.rank + 1] + starts[self.rank]
        return self._common[:size], [self._words[a:b] for a, b in pairwise(starts)]

    def read(self, common: Sequence[Words], own: Sequence[Words]) -> RoundTotals | None:
        """Read the packets of all groups, by rank. Returns None if headers disagree or packets are malformed.

        Raises ValueError for more edges than one round may have.
        """
        self._all, start = _concatenated(common, self._all)
        self._mine, self._mine_start = _concatenated(own, self._mine)
        runs = (self._run, self._run_high, self._run_length)
        edges = read_headers(self._all, start, self._firsts, *runs, self._header_totals)
        if edges < 0 or not are_complete(self._mine, self._mine_start, self._firsts, self.rows.shards):
            return None
        if edges > MAX_ROUND_EDGES:
            raise ValueError(f"{edges:,} edges are removed in one round, {MAX_ROUND_EDGES:,} at most")
        keeper, split, messages, late = self._header_totals.tolist()
        self._edges, self._load = edges, edges + messages
        return RoundTotals(edges, keeper, split, messages, bool(late))

    def run_round(self, level: int, last: int) -> None:
        """Apply the messages that were read, remove the edges of the round, and decide what to send next."""
        rows, edges = self.rows, self._edges
        if edges:
            self._round = [_with_capacity(array, edges) for array in self._round]
            large = edges >= LARGE
            self._use_threads(large)
            runs = (self._run, self._run_high, self._run_length)
            parts = rows.shards if large else 1
            merge_runs(self._all, *runs, parts, self._cut[2], self._cut[3], *self._round)
        self._use_threads(self._load > ONE_THREAD_UP_TO)
        table = (rows.row_start, rows.row, rows.entry_start, rows.entry)
        run_round(
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

    def endpoint_counts(self) -> NDArray[np.uint32]:
        """[2, edges] the half counts of live edges, by endpoint; 0 for removed edges and endpoints of other groups."""
        counts = self.allocator.allocate(2 * len(self._cut[0]), np.uint32).reshape(2, -1)
        counts[:] = 0
        counts_by_endpoint(*self._cut, self.count, LIVE_ABOVE, *counts)
        return counts

    def intervals(self, counts: NDArray[np.uint32], level: int) -> tuple[IntArray, IntArray]:
        """Lower and upper bounds of λ of the edges whose high endpoint is in this group, in the order of edges.

        `counts` [2, edges] are those of `endpoint_counts`, completed with the counts of the other groups. They are
        overwritten.
        """
        write_intervals(*self._cut, self.count, LIVE_ABOVE, REMOVED_AT, level, *counts)
        first, stop = self._firsts[self.rank : self.rank + 2].tolist()
        fixed = (self.high, self._cut[2], self._cut[3], first, stop, *counts)
        none = np.empty(0, np.int32)
        lower, upper = (np.empty(gather_owned(*fixed, none, none), np.int32) for _ in range(2))
        gather_owned(*fixed, lower, upper)
        return lower, upper

    @property
    def _lists(self) -> tuple[Any, ...]:
        return self._leaving, self._leaving_count, self._event, self._sending, self._sending_count

    def _use_threads(self, many: bool) -> None:
        numba.set_num_threads(self._threads if many else 1)


def _with_capacity(array: Words, length: int) -> Words:
    """The array if it has this length, else a longer one without its content."""
    return array if len(array) >= length else np.empty(length + length // 4, np.uint32)


def _concatenated(packets: Sequence[Words], buffer: Words) -> tuple[Words, LongArray]:
    """All packets in one array, in `buffer` if they fit, and where each starts."""
    start = np.zeros(len(packets) + 1, np.int64)
    np.cumsum([len(words) for words in packets], out=start[1:])
    buffer = _with_capacity(buffer, int(start[-1]))
    np.concatenate(packets, out=buffer[: start[-1]])
    return buffer, start
