"""Removal of all edges with fewer triangles than a threshold, where each of several workers removes a share of a pass.

Each worker has all edges. In a pass it lists how much the removal of its share lowers which counts; the sums over all
workers are then subtracted from the counts, which are the same everywhere. All methods give the same on all workers if
their arguments are the same, for any number of threads.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba import get_num_threads, prange

from ...filters import EDGE_WORK, LEAST_BINS, Frontier, Removed, Survey
from ...graph import GONE, Adjacency, IntArray, LongArray, Topology
from ...runtime.cache import cached_njit
from ..adjacency import adjacency, compact
from ..arrays.gather import join, nonzero, number_marked, take
from ..arrays.mix import mixed
from .cascade import REMOVED, Cascade, set_to
from .changes import DENSE, Changes, even_cuts
from .live_rows import LiveRows
from .scan import Live, below, not_removed

RENUMBER_AT = 0.7
"""Edges are numbered anew when less than this share of them is left."""


@cached_njit(parallel=True)
def _survey(count, cuts, histogram, sums, digests, least):
    """Sums, digests and least of the counts of the edges that are left, and how often each count occurs, by thread."""
    for part in prange(sums.size):
        total = np.int64(0)
        digest = np.uint64(0)
        smallest = np.int32(2147483647)
        own = histogram[part]
        for e in range(np.uint64(cuts[part]), np.uint64(cuts[part + 1])):
            c = count[e]
            if c >= 0:
                total += c
                digest += mixed((e << np.uint64(32)) | np.uint64(c))
                smallest = min(smallest, c)
                if c < own.size:
                    own[c] += 1
        sums[part] = total
        digests[part] = digest
        least[part] = smallest


class Filtering(Changes):
    """See `kernels.filtering`. Mutable, not thread-safe."""

    def __init__(self, topology: Topology, count: IntArray, rows: Adjacency | None = None) -> None:
        super().__init__(count, np.zeros(topology.edges, np.int32))
        self.topology, self.left = topology, topology.edges
        self._state = np.zeros(topology.edges, np.int8)
        self._destroyed = np.zeros(topology.edges, np.int32)
        """[edges] triangles that the removal of each edge destroyed, on the worker that removed it."""
        rows = adjacency(topology) if rows is None else rows
        self._rows = LiveRows(topology, rows, self._state, self.left)
        self._cascade = Cascade(topology, rows)
        self._cascade.firsts = self._destroyed
        self._live = Live(topology.edges)
        self._frontier: IntArray = np.zeros(0, np.int32)
        self._work: LongArray = np.zeros(0, np.int64)
        """[frontier] the work of the edges up to each."""

    def survey(self, threshold: int) -> Survey:
        """See `kernels.filters.Filtering`."""
        limit = max(LEAST_BINS, 2 * threshold)
        while True:
            parts = get_num_threads()
            histogram, sums = np.zeros((parts, limit), np.int64), np.zeros(parts, np.int64)
            digests, least = np.zeros(parts, np.uint64), np.zeros(parts, np.int32)
            _survey(self.count, even_cuts(self.topology.edges), histogram, sums, digests, least)
            if least.min() < limit // 2 or not self.left:
                break
            limit = 4 * int(least.min())
        return Survey.of(histogram.sum(0), int(least.min()), int(sums.sum()), int(digests.sum(dtype=np.uint64)))

    def find(self, threshold: int) -> Frontier:
        """See `kernels.filters.Filtering`."""
        self._limit = threshold
        return self._enter(below(self._live, self.count, threshold)[0])

    def _enter(self, frontier: IntArray) -> Frontier:
        """Make these edges the frontier, in the order in which they are divided."""
        self._frontier = self._cascade.enter(np.sort(frontier), self._state)
        self._work = np.cumsum(take(self.count, self._frontier) + np.int64(EDGE_WORK))
        edges = len(frontier)
        return Frontier(edges, int(self._work[-1]) - EDGE_WORK * edges if edges else 0)

    def remove_alone(self, enough: int) -> tuple[Removed, Frontier]:
        """See `kernels.filters.Filtering`."""
        frontier, limit = self._frontier, np.array([self._limit], np.int32)
        self._cascade.round(self._rows.rows, self.count, self._state, frontier, limit)
        self._remove(frontier)
        triangles = int(take(self._destroyed, frontier).sum(dtype=np.int64))
        return Removed(len(frontier), triangles, 1), self._enter(self._cascade.next_frontier())

    def remove_share(self, worker: int, workers: int) -> int:
        """See `kernels.filters.Filtering`."""
        edges, work = len(self._frontier), int(self._work[-1])
        cuts = np.searchsorted(self._work, np.linspace(0, work, workers + 1)[1:-1])
        share = self._frontier[slice(*[0, *cuts.tolist(), edges][worker : worker + 2])]
        self._lowered = self._lower(share)
        self._dense = (work - EDGE_WORK * edges) * DENSE > self.topology.edges
        if not self._dense:
            self._lowered.sort()
        self._weak = []
        return int(take(self._destroyed, share).sum(dtype=np.int64))

    def _lower(self, share: IntArray) -> IntArray:
        """Add to `delta` what the removal of edges lowers. Returns the edges that it lowers."""
        cascade, none = self._cascade, share[:0]
        cascade.begin()
        done = False
        while not done:
            done = cascade.list_losses(self._rows.rows, self._state, share, None)
            cascade.lower(self.delta, self._state, _ZERO, None, none)
        return cascade.next_frontier()

    def end_pass(self) -> Frontier:
        """See `kernels.filters.Filtering`."""
        set_to(self.count, self._frontier, GONE)
        set_to(self._state, self._frontier, REMOVED)
        self._remove(self._frontier)
        return self._enter(join(self._weak))

    def _remove(self, frontier: IntArray) -> None:
        self.left -= len(frontier)
        self._rows.remove(frontier, self.left)

    def restore(self, count: IntArray, left: int) -> None:
        """See `kernels.filters.Filtering`."""
        self.count[:] = count
        self._state[:] = np.where(count < 0, np.int8(REMOVED), np.int8(0))
        self.delta[:] = 0
        self._touched = []
        self.left, self._live = left, Live(self.topology.edges)
        rows = compact(adjacency(self.topology), not_removed(self._state))
        self._rows = LiveRows(self.topology, rows, self._state, left)

    @property
    def wasteful(self) -> bool:
        """See `kernels.filters.Filtering`."""
        return 0 < self.left < RENUMBER_AT * self.topology.edges

    def smaller(self) -> tuple[IntArray, Filtering]:
        """See `kernels.filters.Filtering`."""
        remain = not_removed(self._state)
        kept, topology = nonzero(remain), self.topology
        rows = compact(self._rows.rows, remain)
        rows = replace(rows, edge=take(number_marked(remain), rows.edge))
        part = Topology(take(topology.low, kept), take(topology.high, kept), topology.vertices)
        return kept, Filtering(part, take(self.count, kept), rows)


_ZERO = np.zeros(1, np.int32)
