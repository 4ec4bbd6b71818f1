"""The shards of one group with their state, on the CPU: one thread works on each shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numba
import numpy as np
from numpy.typing import NDArray

from ...graph import IntArray, LongArray
from ...runtime.sizes import NUMPY_ALLOCATOR, Allocator
from .endpoint_words import counts_by_endpoint, gather_owned, link_halves, write_intervals
from .half_counts import KEEPER, LIVE_ABOVE, NO_COUNT, REMOVED_AT, REMOVED_BELOW, REPORTER, SPLIT
from .packets import HEADER, LARGE, are_complete, lay_out_packets, merge_runs, read_headers, write_packets
from .rounds import find_live, open_levels, run_round, start_halves
from .rows import ShardRows
from .state import GroupState, Layout, RoundEdges, Runs, Window, Words

MAX_ROUND_EDGES = LIVE_ABOVE - REMOVED_BELOW
"""Maximum number of edges of one round, since the counts of these edges hold their positions in the round."""
MAX_SUPPORT = -LIVE_ABOVE
"""Supports are below this, so that no decreasing half count reaches the counts of removed edges."""
ONE_THREAD_UP_TO = 16
"""One thread runs a round of at most this many edges and messages, as waking others takes longer."""

BLOCK = 256
"""Edges whose rows a thread prefetches together."""


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

    `words` uint32 [2, edges] are the endpoint words of `build_rows`, completed with the words of the other groups.
    `low`, `high` [edges] uint32 are the edges that the rows were built from; the group keeps references to them.
    `support` [edges] int32 is the number of triangles of each edge, `firsts` [groups + 1] the first shard of each
    group. Raises ValueError for a support of 2^28 or more.
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
        shards, total, classes, groups = rows.shards, len(rows.edge), rows.cut.shards, len(firsts) - 1
        starts = np.array(firsts, np.int64)
        self.rank = int(np.searchsorted(starts, rows.first, side="right")) - 1
        self._threads = numba.get_num_threads()
        live_start = np.append(0, np.cumsum((np.diff(rows.half_start) + 63) // 64))
        # Only pages of these lists that are written take memory.
        leaving, event, sending = (np.empty(total + shards, np.uint32) for _ in range(3))
        limit = np.full(6, NO_COUNT, np.int64)
        limit[REPORTER] = 0
        self._state = GroupState(
            low=low,
            high=high,
            vertices=np.uint32(rows.cut.vertices),
            shards=np.uint32(classes),
            first=rows.first,
            firsts=starts,
            group_of=np.repeat(np.arange(groups), np.diff(starts)),
            half_start=rows.half_start,
            edge=rows.edge,
            partner=allocator.allocate(total, np.uint32),
            half_count=np.empty(total, np.int32),
            role=np.empty(total, np.uint8),
            live_start=live_start,
            live=np.zeros(int(live_start[-1]), np.uint64),
            has_row=rows.has_row,
            row=rows.row,
            row_start=rows.row_start,
            entry=rows.entry,
            entry_start=rows.entry_start,
            leaving=leaving,
            leaving_count=np.zeros(shards, np.int64),
            event=event,
            sending=sending,
            sending_count=np.zeros(shards, np.int64),
            begins=np.zeros((shards, classes + 1), np.int64),
            limit=limit,
            marks=np.zeros((shards, rows.cut.width), np.uint32),
            found=np.empty((2, shards, rows.widest + 1), np.uint32),
            rows_found=np.empty((2, shards, BLOCK), np.uint64),
            counts=np.zeros((shards, 3), np.int64),
            kinds=np.zeros((shards, 3), np.int64),
            left=np.diff(rows.half_start),
            in_rows=np.diff(rows.half_start),
            received=np.zeros(shards, np.int64),
        )
        self.count, self.role = self._state.half_count, self._state.role
        link_halves(self._state, *words)
        self.supports = int(start_halves(self._state, support).sum())
        """The sum of the supports of the edges whose high endpoint is in this group."""
        self._least = np.zeros((shards, 2), np.int64)
        self._layout = Layout(
            message_at=np.zeros((shards, classes), np.int64),
            value_offset=np.zeros(groups, np.int64),
            edge_offset=np.zeros(shards + 1, np.int64),
            packet_start=np.zeros(groups + 1, np.int64),
        )
        self._runs = Runs(*np.zeros((3, classes), np.int64))
        self._header_totals = np.zeros(4, np.int64)
        self._common, self._words = np.empty(HEADER, np.uint32), np.empty(0, np.uint32)
        self._all, self._mine = np.empty(0, np.uint32), np.empty(0, np.uint32)
        self._mine_start = np.zeros(groups + 1, np.int64)
        self._round = RoundEdges(*(np.empty(0, np.uint32) for _ in range(4)))
        self._edges = self._load = 0
        allocator.advise_random(rows.entry)
        self.kinds = self._state.kinds
        """int64 [shards, 3] the alarms, reports and grants that each shard sent."""
        self.counts = self._state.counts
        """int64 [shards, 3] columns ENTRIES, TRIANGLES and FINGERPRINT of `removal`."""
        self.messages = 0
        """Messages sent by this group."""
        self.edges = 0
        """Edges that this group announced for removal."""
        self.packet_words = 0
        """Words of the last round's packets to one group each, without the packet to this group itself."""

    @property
    def received(self) -> int:
        """Messages that this group received."""
        return int(self._state.received.sum())

    @received.setter
    def received(self, messages: int) -> None:
        self._state.received[:] = 0
        self._state.received[0] = messages

    def find_live(self) -> tuple[int, int]:
        """Find the live halves and compact the rows. To be called after counts were set, and at a stop.

        Returns the sum of the live half counts, and the number of live edges whose high endpoint is in this group.
        """
        self._state.live[:] = 0
        found = find_live(self._state)
        self._state.left[:] = self._state.in_rows[:] = found[:, 0]
        return int(found[:, 1].sum()), int(found[:, 2].sum())

    def open_level(self, level: int, last: int) -> None:
        """Start a level of the window that ends with `last`. No message may be under way."""
        self._state.limit[SPLIT], self._state.limit[KEEPER] = last // 2 + 1, level + 1
        open_levels(self._state, Window(level, last // 2), self._least)

    def write(self, level: int, last: int, left: int, late: bool) -> tuple[Words, list[Words]]:
        """Write this round's packets: a common packet, and one packet to each group. The next call overwrites them.

        `left` is the number of edges of the graph that remain before this round; `late` says whether the time of this
        group is over.
        """
        state, layout = self._state, self._layout
        messages = lay_out_packets(state, layout)
        leaving, starts = int(layout.edge_offset[-1]), layout.packet_start.tolist()
        size = HEADER + self.rows.shards + 2 * leaving
        self._common, self._words = _with_capacity(self._common, size), _with_capacity(self._words, starts[-1])
        self._use_threads(leaving + messages >= LARGE)
        write_packets(state, layout, self._common, self._words)
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
        """Read the packets of all groups, in order of their ranks: the common ones, and those to this group.

        Returns None if headers disagree or packets are malformed. Raises ValueError if a round has too many edges.
        """
        self._all, start = _concatenated(common, self._all)
        self._mine, self._mine_start = _concatenated(own, self._mine)
        firsts = self._state.firsts
        edges = read_headers(self._all, start, firsts, self._runs, self._header_totals)
        if edges < 0 or not are_complete(self._mine, self._mine_start, firsts, self.rows.shards):
            return None
        if edges > MAX_ROUND_EDGES:
            raise ValueError(f"{edges:,} edges are removed in one round, {MAX_ROUND_EDGES:,} at most")
        keeper, split, messages, late = self._header_totals.tolist()
        self._edges, self._load = edges, edges + messages
        return RoundTotals(edges, keeper, split, messages, bool(late))

    def run_round(self, level: int, last: int) -> None:
        """Apply the messages that were read, remove the edges of the round, and decide what to send next."""
        state, edges = self._state, self._edges
        if edges:
            self._round = RoundEdges(*(_with_capacity(array, edges) for array in self._round))
            large = edges >= LARGE
            self._use_threads(large)
            parts = self.rows.shards if large else 1
            merge_runs(self._all, self._runs, parts, (state.vertices, state.shards), self._round)
        self._use_threads(self._load > ONE_THREAD_UP_TO)
        removed = RoundEdges(*(array[:edges] for array in self._round))
        run_round(self._mine, self._mine_start, removed, state, Window(level, last // 2))
        self._use_threads(True)

    def endpoint_counts(self) -> NDArray[np.uint32]:
        """[2, edges] the half counts of live edges, by endpoint; 0 for removed edges and endpoints of other groups."""
        counts = self.allocator.allocate(2 * len(self.low), np.uint32).reshape(2, -1)
        counts[:] = 0
        counts_by_endpoint(self._state, LIVE_ABOVE, *counts)
        return counts

    def intervals(self, counts: NDArray[np.uint32], level: int) -> tuple[IntArray, IntArray]:
        """Lower and upper bounds of λ of the edges whose high endpoint is in this group, in the order of edges.

        `counts` uint32 [2, edges] is the result of `endpoint_counts`, completed with the counts of the other groups. It
        is overwritten. `level` is the lower bound for edges that are not removed.
        """
        state = self._state
        write_intervals(state, (LIVE_ABOVE, REMOVED_AT), level, *counts)
        first, stop = state.firsts[self.rank : self.rank + 2].tolist()
        fixed = (self.high, state.vertices, state.shards, first, stop, *counts)
        none = np.empty(0, np.int32)
        lower, upper = (np.empty(gather_owned(*fixed, none, none), np.int32) for _ in range(2))
        gather_owned(*fixed, lower, upper)
        return lower, upper

    def _use_threads(self, many: bool) -> None:
        numba.set_num_threads(self._threads if many else 1)


def _with_capacity(array: Words, length: int) -> Words:
    """The array if it has at least this length, else a new, longer array with undefined content."""
    return array if len(array) >= length else np.empty(length + length // 4, np.uint32)


def _concatenated(packets: Sequence[Words], buffer: Words) -> tuple[Words, LongArray]:
    """All packets in one array, and where each packet starts. The array is `buffer` if the packets fit."""
    start = np.zeros(len(packets) + 1, np.int64)
    np.cumsum([len(words) for words in packets], out=start[1:])
    buffer = _with_capacity(buffer, int(start[-1]))
    np.concatenate(packets, out=buffer[: start[-1]])
    return buffer, start
