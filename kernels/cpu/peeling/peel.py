"""Peeling, level by level: each level is a cascade."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...graph import FROM_THE_START, Adjacency, IntArray, PeelingStart, Topology
from ..adjacency import adjacency, compact
from ..arrays.indexing import copied
from .cascade import HIGHER, REMOVED, Cascade, set_to
from .live_edges import Live, LiveRows, below, not_removed

SHARE_AT = 0.85
"""The remaining edges are divided anew among the threads when less than this share of them remains."""


class Peeling:
    """The state of one subgraph's peeling; see `kernels.peeling`. Not thread-safe."""

    def __init__(
        self,
        topology: Topology,
        count: IntArray,
        start: PeelingStart = FROM_THE_START,
        higher: NDArray[np.bool_] | None = None,
    ) -> None:
        self.count = copied(count)
        self.low = np.zeros(topology.edges, np.int32) if start.low is None else copied(start.low)
        self.left = topology.edges
        self.level, self.levels = start.level, start.levels
        self.removed = np.zeros(0, np.int32)
        """Edges that the last `advance` removed, in the order in which they fell."""
        state = np.zeros(topology.edges, np.int8)
        rows = adjacency(topology)
        if start.low is not None:
            state[self.count < 0] = REMOVED
            self.left = int(np.count_nonzero(state == 0))
            rows = compact(rows, not_removed(state))
        self._rows = LiveRows(topology, rows, state, self.left)
        self._higher = 0
        self._live, self._cascade = Live(topology.edges), Cascade(topology, self._rows.rows)
        if higher is not None:
            state[higher] = HIGHER
            self._higher = int(np.count_nonzero(higher))
            self.left -= self._higher
            self._live = Live(topology.edges, np.flatnonzero(~higher).astype(np.int32))
        self._cascade.state, self._cascade.after_round = state, self._remove
        self._shared = self.left

    def _remove(self, edges: IntArray) -> Adjacency:
        self.left -= len(edges)
        return self._rows.remove(edges, self.left + self._higher)

    def advance(self) -> None:
        """Remove the edges of the next level that has edges."""
        frontier, least = below(self._live, self.count, self.level + 1)
        if not len(frontier):
            self.level = least
            frontier, _ = below(self._live, self.count, self.level + 1)
        limit = np.array([self.level + 1], np.int32)
        self.removed, _ = self._cascade.run(self._rows.rows, self.count, frontier, limit, None)
        set_to(self.low, self.removed, self.level)
        self.level += 1
        self.levels += 1
        if self.left < SHARE_AT * self._shared:
            self._live.share_out()
            self._shared = self.left


class RecordedPeeling(Peeling):
    """A peeling that records two numbers of triangles for each edge that it removes."""

    def __init__(self, topology: Topology, count: IntArray) -> None:
        super().__init__(topology, count)
        self.level_counts = self._live.start = np.zeros(topology.edges, np.int32)
        """[edges] triangles of a removed edge whose other edges have at least its λ: its count as its level began."""
        self.remainders = self._cascade.firsts = np.zeros(topology.edges, np.int32)
        """[edges] triangles of a removed edge whose other edges come later in the order of `removed`."""
