"""Peeling on the GPU: a launch of peel.cu runs many levels, then the remaining edges are renumbered."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..graph import FROM_THE_START, GONE, PeelingStart, Topology
from .adjacency import HashedRows, adjacency, trim
from .arrays.indexing import total
from .arrays.transfer import wait_for
from .runtime import source
from .runtime.constants import CASCADE_HEAVY_PARTS, CASCADE_WARPS, CASCADE_WORK_BYTES, FRONTIER_BINS


class Rounds:
    """Launches cooperative kernels over the edges of one subgraph, with as many blocks as run at once."""

    def __init__(self, topology: Topology) -> None:
        self._low: Any = topology.low
        self._high: Any = topology.high
        self.queue = cupy.empty(topology.edges, np.int32)
        self.state = cupy.zeros(20, np.uint32)
        self._heavy = cupy.empty((CASCADE_HEAVY_PARTS, 2), np.int32)

    def launch(self, name: str, rows: HashedRows, *own: Any, size: tuple[Any, ...] = ()) -> None:
        """Run the kernel on the present state. Its arguments are `size`, then the graph's arrays, then `own`."""
        kernel = source.kernel(name, cooperative=True)
        block, shared = 32 * CASCADE_WARPS, CASCADE_WARPS * CASCADE_WORK_BYTES
        graph = (self._low, self._high, rows.offsets, rows.length, rows.buckets, rows.pairs, rows.table, rows.filters)
        barrier = cupy.zeros(3, np.uint32)
        arguments = (self.queue, self.state, barrier, self._heavy, *size, *graph, *own)
        blocks = source.resident(kernel, block, shared)
        kernel((blocks,), (block,), arguments, shared_mem=shared)


COMPACTION = ((2**28, 0.5, 0.8), (2**24, 0.25, 0.8), (0, 0.1, 0.5))
"""For graphs of at least the first number of edges: the share of the edges at which the remaining edges are renumbered,
and the share of the edges in the rows at which the rows are trimmed, that is, removed edges are taken out of them.
Either costs at least a millisecond. The fewer the edges, the more of their counts are in the L2 cache anyway;
docs/engineering/gpu-kernels.md has times.
"""
GROUPED_EDGES = 2**28
"""Frontiers of graphs of at least this many edges are grouped by higher ends. Smaller graphs gain less than this costs.
"""
_GROUPED = 0.25
"""The largest frontier that is grouped, as a share of the edges."""
_NEVER = 2**30
"""Count of an edge of a higher band: no level reaches it, however many triangles the edge loses."""
MAX_ROUNDS = 1000
"""Rounds of one launch, about a tenth of a second. Time limits and progress are checked between launches."""


class Peeling:
    """The state of one subgraph's peeling; see `kernels.peeling`.

    When few edges remain they get new, consecutive numbers, so that their counts are close together in memory.
    """

    def __init__(
        self, topology: Topology, count: Any, start: PeelingStart = FROM_THE_START, higher: Any = None
    ) -> None:
        low: Any = start.low
        self.level, self.levels = start.level, start.levels
        self._higher = 0
        if higher is not None:
            self._higher = total(higher)
            count = cupy.where(higher, np.int32(_NEVER), count)
        self.left = topology.edges - self._higher
        self._in_rows = 0
        self._removed_at: Any = None
        self._origin: Any = None  # [present edges] original numbers; None if the numbers have not changed
        if low is None:
            self._low = cupy.zeros(topology.edges, np.int32)
            self._start(topology, count.copy() if higher is None else count)
        else:
            self._low, self._topology, self._count = low.copy(), topology, count
            self._shrink()
            self.left = len(self._count) - self._higher

    @property
    def low(self) -> Any:
        """[edges] λ of the removed edges."""
        if self._origin is not None:
            removed = cupy.flatnonzero(self._count == GONE)
            self._low[self._origin[removed]] = self._removed_at[removed]
        return self._low

    @property
    def count(self) -> Any:
        """[edges] remaining triangles; negative for removed edges."""
        if self._origin is None:
            return self._count
        count = cupy.full_like(self._low, GONE)
        count[self._origin] = self._count
        return count

    def advance(self) -> None:
        """Run levels until enough edges are removed to compact the rows, and compact them."""
        edges = len(self._count)
        shrink_at, trim_at = next(shares for fewest, *shares in COMPACTION if edges >= fewest)
        shrink_to = int(shrink_at * edges)
        stop_at = max(shrink_to, int(trim_at * self._in_rows), self._higher)
        limits = (np.uint32(stop_at), np.uint32(MAX_ROUNDS))
        size = (np.int32(edges),)
        grouping = (np.int32(self._topology.vertices), self._grouped, np.uint32(len(self._grouped)), self._bins)
        lists = (self._count, self._candidates, self._removed_at)
        self._rounds.launch("peel", self._rows, *lists, *limits, *grouping, size=size)
        removed, _, _, self.level, self.levels = wait_for(self._rounds.state[:5]).tolist()
        present = edges - removed
        self.left = present - self._higher
        if self.left and present <= shrink_to:
            self._shrink()
        elif self.left:
            trim(self._rows, self._count)
            self._in_rows = present

    def _start(self, topology: Topology, count: Any) -> None:
        self._topology, self._count = topology, count
        self._in_rows = len(count)
        self._rows: Any = adjacency(topology)
        self._removed_at = self._low if self._origin is None else cupy.zeros_like(count)
        self._candidates: Any = cupy.empty_like(count)
        room = int(_GROUPED * len(count)) if len(count) >= GROUPED_EDGES else 0
        self._grouped: Any = cupy.empty(room, np.int32)
        self._bins = cupy.zeros(2 * FRONTIER_BINS, np.uint32)
        self._rounds: Any = Rounds(topology)
        self._rounds.state[3], self._rounds.state[4] = self.level, self.levels

    def _shrink(self) -> None:
        _ = self.low  # stores λ of removed edges before the numbers change
        self._rows = self._rounds = self._candidates = self._grouped = (
            None  # frees memory for the rows of the remaining edges
        )
        stay = cupy.flatnonzero(self._count != GONE).astype(np.int32)
        self._origin = stay if self._origin is None else self._origin[stay]
        topology = Topology(self._topology.low[stay], self._topology.high[stay], self._topology.vertices)
        self._start(topology, self._count[stay])
