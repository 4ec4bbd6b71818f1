"""The synchronous order: all groups run a superstep, then exchange.

Bulk-synchronous (Valiant, CACM 33(8), 1990; Malewicz et al., "Pregel", SIGMOD 2010). One exchange per superstep sends
values of vertices to the groups that have edges from them. All values for a vertex are combined in one group, in the
order of their sources, so results are bitwise equal for every partitioning.

A monotone program with a `priority` may have *windows*: of the vertices that changed, those below a bound send now, and
the others wait. This is delta-stepping (Meyer and Sanders, "Δ-stepping: a parallelizable shortest path algorithm",
J. Algorithms 49(1), 2003). All groups have the same bound. When no group has a vertex below it, each tells the smallest
priority that waits there, and the next window is the one that contains the smallest of all.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from .... import kernels
from ....kernels.chunked import ChunkedRows
from ....kernels.cpu.programs.shortest_paths import next_bound
from ...device import place_like
from ...ids import order
from ..block import GraphBlock
from ..program import Array, EdgeFacts, Program, Totals
from ..totals import Part, add_parts, parts_of
from ..words import NO_WORDS, json_to_words, words_to_json
from .calls import has_windows
from .state import BlockState

SAMPLED_ROWS = 4096
"""About this many vertices are sampled for the mean weight."""
SAMPLED_ENTRIES = 16
"""Most edges of such a vertex."""
SORTED_PART = 8
"""Waiting vertices are sorted if they are fewer than one in SORTED_PART of the block, and otherwise read off a mask."""

Ending: TypeAlias = Literal["ended", "stopped", "switched"]
"""The program ended by itself; a limit stopped it; or it continues in the asynchronous order."""


_Told: TypeAlias = tuple[Part, dict[str, Part], bool, int, int, float | None]
"""What a group tells all groups: how much its vertices changed, its shares of totals, whether its time has passed, the
entries that it has read plus those of its block, how many vertices send, and the least priority that waits.
"""


@dataclass(frozen=True)
class Limits:
    """What stops all groups after the same superstep."""

    most_steps: int | None = None
    stop: float | None = None
    """Time on the monotonic clock."""
    progress: Callable[[int, float], None] | None = None
    """Called with the number of supersteps and the total change after each superstep."""
    exchange_entries: float | None = None
    """The cost of an exchange, as the number of entries that a group reads in the same time. It decides when the groups
    switch to the asynchronous order: with infinity after the first superstep, with None never.
    """

    @property
    def is_late(self) -> bool:
        """Whether the time has passed."""
        return self.stop is not None and time.monotonic() >= self.stop


def run_in_step(run: BlockState, limits: Limits) -> tuple[Ending, float]:
    """Run supersteps; returns how they ended, and the total change in the last one.

    With `exchange_entries`, the groups switch to the asynchronous order once their exchanges have cost more than the
    entries that they have read and one more reading of the largest block, which the asynchronous order may need. All
    groups decide by the same counts, so a run is repeatable.
    """
    program, most_entries, windows = run.program, 0, open_windows(run, run.program)
    while True:
        cost = None if run.all_steps == limits.most_steps else limits.exchange_entries
        if cost is not None and run.exchanges * cost > most_entries > 0:
            if windows is not None:
                run.rows = windows.release()
            return "switched", 0
        if windows is not None:
            windows.admit()
        vertices = run.vertices()
        values = run.emit(vertices)
        sums = run.calls.totals(vertices)
        change, *shares = parts_of([run.moved if windows is None else windows.counts, *sums.values()])
        parts = dict(zip(sums, shares, strict=True))
        least = None if windows is None else windows.least
        common = json_to_words([change, parts, limits.is_late, run.entries + len(run.block), len(run.rows), least])
        packets = run.mirrors.exchange(common, run.gatherer.packets(values, run.rows))
        run.exchanges += 1
        received: list[_Told] = [words_to_json(packet.common) for packet in packets]
        moved = add_parts([part for part, *_ in received])
        most_entries = max(entries for _, _, _, entries, _, _ in received)
        if run.step and limits.progress is not None:
            limits.progress(run.all_steps, moved)
        if run.step == program.steps or _has_ended(run, moved):
            return "ended", moved
        if run.all_steps == limits.most_steps or any(late for _, _, late, *_ in received):
            if windows is not None:
                run.rows = windows.release()
            return "stopped", moved
        if windows is not None and not any(acting for *_, acting, _ in received):
            windows.open(min(least for *_, least in received if least is not None))
            continue
        totals = Totals({name: add_parts([part[name] for _, part, *_ in received]) for name in parts})
        run.apply(*run.gatherer.gather(vertices, values, run.rows, packets), totals)
        run.step += 1


def _has_ended(run: BlockState, moved: float) -> bool:
    if run.program.senders == "changed":
        return moved == 0
    return run.step > 0 and run.calls.converged(run.vertices(), moved)


class Windows:
    """The windows of one group: which of its vertices send, and which wait."""

    def __init__(self, run: BlockState, width: float) -> None:
        self.run, self.width = run, width
        self.bound = -math.inf
        """Vertices with a smaller priority send."""
        self.waiting = 0
        """Number of vertices that wait."""
        self._waits = np.zeros_like(run.block.number, np.bool_)
        self._lists: list[Array] = []  # may have vertices twice, and vertices that have sent since

    def admit(self) -> None:
        """Of the rows that would send next, keep those in the window; the others wait."""
        rows = self.run.rows
        if not len(rows):
            return
        now = self._priority(rows) < self.bound
        inside = int(np.count_nonzero(now))
        acting = rows if inside == len(rows) else rows[now]
        self.waiting -= int(np.count_nonzero(self._waits[acting]))
        self._waits[acting] = False
        if inside < len(rows):
            later = rows[~now]
            later = later[~self._waits[later]]
            self.waiting += len(later)
            self._waits[later] = True
            self._lists.append(later)
        self.run.rows = acting

    @property
    def counts(self) -> Array:
        """[2] how many vertices send now, and how many wait; on the host."""
        return np.array([len(self.run.rows), self.waiting])

    @property
    def least(self) -> float | None:
        """The smallest priority of the vertices that wait; None if none does, or if others send now."""
        if len(self.run.rows) or not self.waiting:
            return None
        least = float(self._priority(self._all_waiting()).min())
        if not math.isfinite(least):
            self.run.calls.refuse("priority", self.run.vertices(), f"returns {least}; windows need finite priorities")
        return least

    def open(self, least: float) -> None:
        """Let the vertices in the window of priority `least`, the smallest of all groups, send next."""
        self.bound = next_bound(least, self.width)
        self.run.rows = self.release()

    def release(self) -> Array:
        """All vertices that have not sent, ascending; none of them waits afterwards."""
        rows = self._all_waiting()
        self._waits[rows] = False
        self._lists, self.waiting = [], 0
        sending = self.run.rows
        if not len(sending):
            return rows
        return order.distinct(np.concatenate([sending, rows])) if len(rows) else sending

    def _all_waiting(self) -> Array:
        """The vertices that wait, ascending."""
        listed = sum(map(len, self._lists))
        if listed * SORTED_PART > len(self._waits):
            rows: Array = np.flatnonzero(self._waits).astype(np.int32)
        elif listed:
            rows = np.concatenate(self._lists)
            rows = order.distinct(rows[self._waits[rows]])
        else:
            rows = self.run.rows[:0]
        self._lists = [rows]
        return rows

    def _priority(self, rows: Array) -> Array:
        run = self.run
        priority = run.calls.priority(run.vertices().at(rows))
        if priority is None:
            run.calls.refuse("priority", run.vertices().at(rows), "returns None, and the program has a `window`")
        return priority


def open_windows(run: BlockState, program: Program) -> Windows | None:
    """The windows of a program, or None if it has none. All groups must call this: it takes an exchange."""
    if not has_windows(program):
        return None
    width = program.window(_edge_facts(run))
    if width is None:
        return None
    if not 0 < width < math.inf:
        run.calls.refuse("window", run.vertices(), f"returns {width}, not a positive number or None")
    return Windows(run, width)


def _edge_facts(run: BlockState) -> EdgeFacts:
    """Facts of all edges: the same for any partitioning."""
    share = json_to_words(_share_of_facts(run.block))
    packets = run.mirrors.exchange(share, [NO_WORDS] * run.mirrors.carrier.groups)
    run.exchanges += 1
    return _facts(run.block.vertices, [words_to_json(packet.common) for packet in packets])


def facts_of(block: GraphBlock) -> EdgeFacts:
    """Facts of the edges of a graph in one block, for `Program.at_once`."""
    return replace(_facts(block.vertices, [_share_of_facts(block)]), at_once=True)


_Share: TypeAlias = tuple[int, bool, list[Part]]
"""Entries of a block, whether it is on a GPU, and the number and sum of weights of some vertices' in-edges."""


def _share_of_facts(block: GraphBlock) -> _Share:
    rows = block.rows.home if isinstance(block.rows, ChunkedRows) else block.rows
    stride = max(1, block.vertices // SAMPLED_ROWS)
    sampled = np.flatnonzero(block.number % stride == 0)
    parts: list[Part] = [[0], [0, 0]]
    if rows.weight is not None:
        offsets = rows.offsets
        chosen = place_like(offsets, kernels.to_host(sampled))
        place = offsets[chosen][:, None] + np.arange(SAMPLED_ENTRIES, like=offsets)
        weights = rows.weight[place[place < offsets[chosen + 1][:, None]]]
        parts = parts_of([np.ones_like(weights, np.bool_), weights])
    return len(block), block.on_device, parts


def _facts(vertices: int, told: list[_Share]) -> EdgeFacts:
    count, total = (add_parts([shares[i] for _, _, shares in told]) for i in range(2))
    mean = total / count if count else 1.0
    return EdgeFacts(vertices, sum(entries for entries, _, _ in told), mean, any(there for _, there, _ in told))
