"""Removal of all edges with fewer triangles than a threshold, where each of several workers removes a share of a pass.

Each worker has all edges. In a pass it lists how much the removal of its share lowers which counts; the sums over all
workers are then subtracted from the counts, which are the same everywhere. All methods give the same on all workers if
their arguments are the same, for any number of threads.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numba import get_num_threads, prange

from ...graph import GONE, Adjacency, IntArray, LongArray, Topology
from ...runtime.cache import cached_njit
from ..adjacency import adjacency, compact
from ..arrays.gather import nonzero, number_marked, take
from .cascade import REMOVED, Cascade, set_to
from .changes import even_cuts
from .live_rows import LiveRows
from .scan import Live, below, not_removed

EDGE_WORK = 50
"""Work of the removal of an edge, besides its triangles, in removals of a triangle: its rows are read. Chosen from
the times of bands of R-MAT 20; docs/engineering/bands.md.
"""
RENUMBER_AT = 0.7
"""Edges are numbered anew when less than this share of them is left."""
_LIMIT = 4096
"""Counts that a survey tells apart, at least."""


@cached_njit(parallel=True)
def _survey(count, cuts, histogram, sums, digests, least):
    """Sums, digests and least of the counts of the edges that are left, and how often each count occurs, by thread."""
    for part in prange(sums.size):
        total = np.int64(0)
        digest = np.uint64(0)
        smallest = np.int32(2147483647)
        own = histogram[part]
        for e in range(cuts[part], cuts[part + 1]):
            c = count[e]
            if c >= 0:
                total += c
                mixed = ((np.uint64(e) << np.uint64(32)) | np.uint64(c)) * np.uint64(0x9E3779B97F4A7C15)
                digest += mixed ^ (mixed >> np.uint64(29))
                smallest = min(smallest, c)
                if c < own.size:
                    own[c] += 1
        sums[part] = total
        digests[part] = digest
        least[part] = smallest


class Survey(NamedTuple):
    """The counts of the edges that are left."""

    listed: LongArray
    """[t] the work of the edges with fewer than t triangles, each of which counts once for each of these edges."""
    least: int
    """The least count."""
    counts: int
    """The sum of all counts: three for each triangle."""
    digest: int
    """A digest of all counts, of 64 bits."""


class Filtering:
    """Edges that are left of a graph, and their counts. Mutable, not thread-safe."""

    def __init__(self, topology: Topology, count: IntArray, rows: Adjacency | None = None) -> None:
        """`count` [edges] are the triangles of each edge, all edges being left; `rows` are theirs."""
        self.topology, self.count, self.left = topology, count, topology.edges
        self._state = np.zeros(topology.edges, np.int8)
        self.delta = np.zeros(topology.edges, np.int32)
        """[edges] what the present pass has lowered so far, as numbers below 0."""
        self.destroyed = np.zeros(topology.edges, np.int32)
        """[edges] triangles that the removal of each edge destroyed, on the worker that removed it."""
        rows = adjacency(topology) if rows is None else rows
        self._rows = LiveRows(topology, rows, self._state, self.left)
        self._cascade = Cascade(topology, rows)
        self._cascade.firsts = self.destroyed
        self._live = Live(topology.edges)

    def survey(self, threshold: int) -> Survey:
        """The counts of the edges that are left, all of at least `threshold`."""
        limit = max(_LIMIT, 2 * threshold)
        while True:
            parts = get_num_threads()
            histogram, sums = np.zeros((parts, limit), np.int64), np.zeros(parts, np.int64)
            digests, least = np.zeros(parts, np.uint64), np.zeros(parts, np.int32)
            _survey(self.count, even_cuts(self.topology.edges), histogram, sums, digests, least)
            if least.min() < limit // 2 or not self.left:
                break
            limit = 4 * int(least.min())
        listed = np.concatenate([[0], np.cumsum(histogram.sum(0) * (np.arange(limit) + EDGE_WORK))])
        return Survey(listed, int(least.min()), int(sums.sum()), int(digests.sum(dtype=np.uint64)))

    def below(self, threshold: int) -> IntArray:
        """The edges with fewer than `threshold` triangles, ascending."""
        return below(self._live, self.count, threshold)[0]

    def enter(self, frontier: IntArray) -> tuple[IntArray, LongArray]:
        """The edges of a pass in the order in which they are divided, and the work of the edges up to each."""
        frontier = self._cascade.enter(np.sort(frontier), self._state)
        return frontier, np.cumsum(take(self.count, frontier) + np.int64(EDGE_WORK))

    def lose(self, share: IntArray) -> IntArray:
        """Add to `delta` what the removal of a share of the pass lowers. Gives the edges that it lowers."""
        cascade, none = self._cascade, share[:0]
        cascade.begin()
        done = False
        while not done:
            done = cascade.list_losses(self._rows.rows, self._state, share, None)
            cascade.lower(self.delta, self._state, _ZERO, None, none)
        return cascade.next_frontier()

    def remove(self, frontier: IntArray) -> None:
        """Mark the edges of a pass as removed."""
        set_to(self.count, frontier, GONE)
        set_to(self._state, frontier, REMOVED)
        self._remove(frontier)

    def _remove(self, frontier: IntArray) -> None:
        self.left -= len(frontier)
        self._rows.remove(frontier, self.left)

    def remove_all(self, frontier: IntArray, threshold: int) -> IntArray:
        """Do a whole pass here; gives the edges of the next one."""
        self._cascade.round(self._rows.rows, self.count, self._state, frontier, np.array([threshold], np.int32))
        self._remove(frontier)
        return self._cascade.next_frontier()

    def restore(self, count: IntArray, left: int) -> None:
        """Go back to earlier counts, `left` edges being left."""
        self.count[:] = count
        self._state[:] = np.where(count < 0, np.int8(REMOVED), np.int8(0))
        self.delta[:] = 0
        self.left, self._live = left, Live(self.topology.edges)
        rows = compact(adjacency(self.topology), not_removed(self._state))
        self._rows = LiveRows(self.topology, rows, self._state, left)

    @property
    def wasteful(self) -> bool:
        """Whether to go on with `smaller`."""
        return 0 < self.left < RENUMBER_AT * self.topology.edges

    def smaller(self) -> tuple[IntArray, Filtering]:
        """The edges that are left, ascending, and the same state with these edges alone, numbered anew."""
        remain = not_removed(self._state)
        kept, topology = nonzero(remain), self.topology
        rows = compact(self._rows.rows, remain)
        rows = replace(rows, edge=take(number_marked(remain), rows.edge))
        part = Topology(take(topology.low, kept), take(topology.high, kept), topology.vertices)
        return kept, Filtering(part, take(self.count, kept), rows)


_ZERO = np.zeros(1, np.int32)
