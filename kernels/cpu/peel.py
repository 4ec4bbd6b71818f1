"""Peeling, level by level: each level is a cascade."""

from __future__ import annotations

import numpy as np

from ..graph import IntArray, Topology
from .adjacency import adjacency, compact, shorten
from .cascade import Cascade, set_to
from .scan import Live, below, not_removed

COMPACT_AT = 0.85
"""Rows are compacted when less than this share of their edges remains. From 0.7 to 0.9 equally fast."""
PACK_AT = 0.5
"""Compacted rows are packed, so that they lie close together, when less than this share of their memory is in use."""


class Peeling:
    """The state of one subgraph's peeling; see `kernels.peeling`. Not thread-safe."""

    def __init__(
        self, topology: Topology, count: IntArray, low: IntArray | None = None, level: int = 0, levels: int = 0
    ) -> None:
        self.count = count.copy()
        self.low = np.zeros(topology.edges, np.int32) if low is None else low.copy()
        self.left = topology.edges
        self.level, self.levels = level, levels
        self.removed = np.zeros(0, np.int32)
        """Edges that the last `advance` removed, in the order in which they fell."""
        self._rows = adjacency(topology)
        self._live, self._cascade = Live(topology.edges), Cascade(topology, self._rows)
        if low is not None:
            self._rows = compact(self._rows, not_removed(self.count))
            self.left = int(np.count_nonzero(self.count >= 0))
        self._in_rows = self._in_memory = self.left

    def advance(self) -> None:
        """Remove the edges of the next level that has edges."""
        frontier, least = below(self._live, self.count, self.level + 1)
        if not len(frontier):
            self.level = least
            frontier, _ = below(self._live, self.count, self.level + 1)
        limit = np.array([self.level + 1], np.int32)
        self.removed, _ = self._cascade.run(self._rows, self.count, frontier, limit, None)
        set_to(self.low, self.removed, self.level)
        self.left -= len(self.removed)
        self.level += 1
        self.levels += 1
        if self.left < COMPACT_AT * self._in_rows:
            self.compact()

    def compact(self) -> None:
        """Take the removed edges out of the rows, and divide the remaining ones evenly among the threads."""
        live = not_removed(self.count)
        if self.left < PACK_AT * self._in_memory:
            self._rows, self._in_memory = compact(self._rows, live), self.left
        else:
            self._rows = shorten(self._rows, live)
        self._in_rows = self.left
        self._live.share_out()


class RecordedPeeling(Peeling):
    """A peeling that records of each edge two numbers of triangles."""

    def __init__(self, topology: Topology, count: IntArray) -> None:
        super().__init__(topology, count)
        self.level_counts = self._live.start = np.zeros(topology.edges, np.int32)
        """[edges] triangles of a removed edge whose other edges have at least its λ: its count as its level began."""
        self.remainders = self._cascade.firsts = np.zeros(topology.edges, np.int32)
        """[edges] triangles of a removed edge whose other edges come later in the order of `removed`."""
