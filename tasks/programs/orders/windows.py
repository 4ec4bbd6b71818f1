"""Windows of priorities: of the vertices that changed, those below a bound send now, and the others wait.

Delta-stepping (Meyer and Sanders, "Δ-stepping: a parallelizable shortest path algorithm", J. Algorithms 49(1), 2003)
for any monotone program with a `priority`. All groups have the same bound. When no group has a vertex below it, each
tells the smallest priority that waits there, and the next window is the one that contains the smallest of all.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from .... import kernels
from ....kernels.chunked import ChunkedRows
from ....kernels.cpu.programs.shortest_paths import next_bound
from ...device import place_like
from ..block import Block
from ..program import Array, EdgeFacts, Program
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


class Windows:
    """The windows of one group."""

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
        own = self.run.rows
        if not len(own):
            return rows
        return _distinct(np.concatenate([own, rows])) if len(rows) else own

    def _all_waiting(self) -> Array:
        """The vertices that wait, ascending."""
        listed = sum(map(len, self._lists))
        if listed * SORTED_PART > len(self._waits):
            rows: Array = np.flatnonzero(self._waits).astype(np.int32)
        elif listed:
            rows = np.concatenate(self._lists)
            rows = _distinct(rows[self._waits[rows]])
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


def _distinct(rows: Array) -> Array:
    """The distinct rows, ascending. Sorts: `np.unique` of NumPy hashes, which takes three times as long."""
    ordered = np.sort(rows)
    kept = np.ones_like(ordered, np.bool_)
    kept[1:] = ordered[1:] != ordered[:-1]
    return ordered[kept]


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
    own = json_to_words(_share_of_facts(run.block))
    packets = run.mirrors.exchange(own, [NO_WORDS] * run.mirrors.carrier.groups)
    run.exchanges += 1
    return _facts(run.block.vertices, [words_to_json(packet.common) for packet in packets])


def facts_of(block: Block) -> EdgeFacts:
    """Facts of the edges of a graph in one block, for `Program.at_once`."""
    return replace(_facts(block.vertices, [_share_of_facts(block)]), at_once=True)


_Share: TypeAlias = tuple[int, bool, list[Part]]
"""Entries of a block, whether it is on a GPU, and the number and sum of weights of some vertices' in-edges."""


def _share_of_facts(block: Block) -> _Share:
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
    return EdgeFacts(vertices, sum(own for own, _, _ in told), mean, any(there for _, there, _ in told))
