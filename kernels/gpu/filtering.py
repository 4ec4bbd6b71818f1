"""The coarse filter on a GPU, in plain rows. A pass reads all counts of the edges that are left; see filter.cu.

Lowered counts are sent in packets in the format of `kernels.cpu.peeling.filtering`; see changes.cu.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from ..filters import EDGE_WORK, HEADER, LEAST_BINS, Frontier, Packet, Removed, Survey, Words
from ..graph import Topology
from .adjacency import HashedRows, adjacency, starts_of, trim
from .arrays.transfer import to_device, wait_for
from .peel import Rounds
from .runtime import source

_BITS = 64
"""A packet marks lowered edges in whole words of this many bits."""


class Changes:
    """See `kernels.changes`."""

    def __init__(self, count: Any, amounts: Any) -> None:
        self.count = count
        self.amounts = amounts
        """int32 [edges] by how much counts are lowered so far."""

    def pack(self, first: int, stop: int) -> tuple[Words, int]:
        """See `kernels.filters.Changes`."""
        own = self.amounts[first:stop]
        size = -(-len(own) // _BITS) * _BITS // 32
        places, ones, sums = cupy.empty(size, np.uint32), cupy.empty(size, np.int32), cupy.zeros(2, np.uint64)
        blocks = source.grid(max(32 * size, 1), _BLOCK)
        edges, words = np.uint32(len(own)), np.uint32(size)
        source.kernel("changes:mark")((blocks,), (_BLOCK,), (own, np.uint32(first), edges, words, places, ones, sums))
        starts = starts_of(ones)
        total, most = wait_for(sums).tolist()
        width, set_bits = 1 if most < 256 else 4, int(starts[-1])
        packed = cupy.empty(HEADER + size + -(-set_bits * width // 4), np.uint32)
        packed[HEADER : HEADER + size] = places
        if set_bits:
            packed[-1] = 0
            listed = packed[HEADER + size :]
            arguments = (own, edges, words, places, starts, np.int32(width), listed)
            source.kernel("changes:write")((blocks,), (_BLOCK,), arguments)
        packed[:HEADER] = cupy.asarray(np.array([True, width, set_bits, size], np.uint32))
        return packed, total

    def collect(self, words: Words, first: int) -> int:
        """See `kernels.filters.Changes`."""
        return _lower(self.amounts, words, first, -1)

    def apply(self, words: Words, first: int) -> int:
        """See `kernels.filters.Changes`."""
        return _lower(self.count, words, first, 1)

    def weigh(self, first: int, stop: int) -> int:
        """See `kernels.filters.PlainChanges`."""
        own, total = self.amounts[first:stop], cupy.zeros(1, np.uint64)
        arguments = (own, np.uint32(first), np.uint32(len(own)), total)
        source.kernel("changes:weigh")((source.grid(max(len(own), 1), _BLOCK, 8),), (_BLOCK,), arguments)
        return int(wait_for(total)[0])

    def subtract(self, parts: Sequence[tuple[int, Any]]) -> int:
        """See `kernels.filters.PlainChanges`."""
        total = cupy.zeros(1, np.uint64)
        for first, amounts in parts:
            size = len(amounts)
            arguments = (self.count[first : first + size], amounts, np.uint32(first), np.uint32(size), total)
            source.kernel("changes:subtract")((source.grid(max(size, 1), _BLOCK, 8),), (_BLOCK,), arguments)
        return int(wait_for(total)[0])


def _lower(values: Any, packed: Words, first: int, sign: int) -> int:
    """Lower `values` by `sign` times the amounts of a packed range of edges. Returns the amounts' weighted sum."""
    dense, width, size, *_ = found = Packet.of(packed, first, len(values))
    if not dense:
        raise ValueError(f"{len(packed)} words are no packet of {size} lowered counts of a range")
    if not size:
        return 0
    words, sums, length = to_device(packed), cupy.zeros(1, np.uint64), len(found.places)
    places, ones = words[HEADER : HEADER + length], cupy.empty(length, np.int32)
    source.kernel("changes:count")((source.grid(length, _BLOCK),), (_BLOCK,), (places, np.uint32(length), ones))
    starts = starts_of(ones)
    if int(starts[-1]) != size:
        raise ValueError(f"{int(starts[-1])} edges are marked in a packet of {size} lowered counts")
    listed, own = words[HEADER + length :], (values[first:], np.uint32(first), np.uint32(length))
    arguments = (*own, places, starts, np.int32(width), listed, np.int32(sign), sums)
    source.kernel("changes:lower")((source.grid(32 * length, _BLOCK),), (_BLOCK,), arguments)
    return int(wait_for(sums)[0])


RENUMBER_AT = 0.5
"""Edges are numbered anew when less than this share of them is left."""
TRIM_AT = 0.8
"""Removed edges are taken from the rows when less than this share of the edges in the rows is left."""
_BLOCK = 256
_NEAR_BINS = 2**13
"""Counts below this are tallied in shared memory."""
_NOTHING = 2**31 - 1


class Filtering(Changes):
    """See `kernels.filtering`. Mutable, not thread-safe."""

    def __init__(self, topology: Topology, count: Any, rows: HashedRows | None = None) -> None:
        super().__init__(count, cupy.zeros(topology.edges, np.int32))
        self.topology, self.left = topology, topology.edges
        self._rows: Any = adjacency(topology) if rows is None else rows
        self._in_rows = topology.edges
        self._rounds: Any = Rounds(topology)
        self._limit = 0
        self._frontier = Frontier(0, 0)

    def survey(self, threshold: int) -> Survey:
        """See `kernels.filters.Filtering`."""
        edges, bins = self.topology.edges, max(LEAST_BINS, 2 * threshold)
        while True:
            near = min(bins, _NEAR_BINS)
            histogram, sums = cupy.zeros(bins, np.uint32), cupy.zeros(2, np.uint64)
            least = cupy.full(1, _NOTHING, np.int32)
            source.kernel("filter:survey")(
                (source.grid(edges, 4 * _BLOCK, 2),),
                (4 * _BLOCK,),
                (self.count, np.uint32(edges), np.int32(bins), np.int32(near), histogram, sums, least),
                shared_mem=4 * near,
            )
            smallest = int(wait_for(least)[0])
            if smallest < bins // 2 or not self.left:
                break
            bins = 4 * smallest
        counts, digest = sums.get().tolist()
        return Survey.of(histogram.get().astype(np.int64), smallest, counts, digest)

    def find(self, threshold: int) -> Frontier:
        """See `kernels.filters.Filtering`."""
        self._limit = threshold
        if self.left < TRIM_AT * self._in_rows:  # here alone: `restore` goes back to the counts of this moment
            trim(self._rows, self.count)
            self._in_rows = self.left
        return self._measure()

    def _measure(self) -> Frontier:
        edges, sums = self.topology.edges, cupy.zeros(2, np.uint64)
        arguments = (self.count, np.uint32(edges), np.int32(self._limit), sums)
        source.kernel("filter:measure")((source.grid(edges, _BLOCK, 8),), (_BLOCK,), arguments)
        self._frontier = Frontier(*wait_for(sums).tolist())
        return self._frontier

    def remove_alone(self, enough: int) -> tuple[Removed, Frontier]:
        """See `kernels.filters.Filtering`."""
        most = min(enough // (EDGE_WORK + self._limit), self.topology.edges)
        passes, edges, triangles = self._remove(self.count, 0, 1, most)
        self.left -= edges
        return Removed(edges, triangles, passes), self._measure()

    def remove_share(self, worker: int, workers: int) -> int:
        """See `kernels.filters.Filtering`."""
        self.amounts[:] = self.count
        *_, triangles = self._remove(self.amounts, worker, workers, None)
        edges = self.topology.edges
        arguments = (self.count, self.amounts, np.uint32(edges), np.int32(self._limit))
        source.kernel("filter:subtract")((source.grid(edges, _BLOCK, 8),), (_BLOCK,), arguments)
        return triangles

    def _remove(self, count: Any, worker: int, workers: int, most: int | None) -> tuple[int, int, int]:
        """Remove a share of the frontier from `count`; without `most` in one pass. Returns passes, edges, triangles."""
        rounds, edges, limit = self._rounds, self.topology.edges, np.int32(self._limit)
        rounds.state.fill(0)
        source.kernel("filter:list_below")(
            (source.grid(edges, _BLOCK, 16),),
            (_BLOCK,),
            (count, np.uint32(edges), limit, np.uint32(worker), np.uint32(workers), rounds.queue, rounds.state),
        )
        triangles = cupy.zeros(1, np.uint64)
        own = (count, limit, np.bool_(most is None), np.uint32(most or 0), triangles)
        rounds.launch("filter:remove_edges", self._rows, *own)
        _, passes, removed = wait_for(rounds.state[:3]).tolist()
        return passes, removed, int(triangles[0])

    def end_pass(self) -> Frontier:
        """See `kernels.filters.Filtering`."""
        self.left -= self._frontier.edges
        return self._measure()

    def restore(self, count: Any, left: int) -> None:
        """See `kernels.filters.Filtering`."""
        self.count[:] = count
        self.left = left

    @property
    def wasteful(self) -> bool:
        """See `kernels.filters.Filtering`."""
        return 0 < self.left < RENUMBER_AT * self.topology.edges

    def smaller(self) -> tuple[Any, Filtering]:
        """See `kernels.filters.Filtering`."""
        self._rows = self._rounds = None  # frees memory for the rows of the edges that are left
        self.amounts = self.amounts[:0]
        kept = cupy.flatnonzero(self.count >= 0).astype(np.int32)
        topology = self.topology
        part = Topology(topology.low[kept], topology.high[kept], topology.vertices)
        return kept, Filtering(part, self.count[kept])
