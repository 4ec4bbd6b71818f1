"""Estimate the copies of an edge over all partitions from a sample.

For a triangle a < b < c in degree order, (a, b) and (a, c) are ghosts in the partition of b, and (b, c) in the
partition of a, if the partitions differ (see `tasks/graph/triangulate.py`). So an edge (x, y) with triangles has copies
in the partition of x, in the partitions of common neighbours before y, and in the partition of y if a common neighbour
comes after y.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..ids import order
from ..partition import HashPartitioner, Partitioner, RangePartitioner
from .sampling import Sample

MAX_WITNESSES = 16_000
"""The most edges whose triangles are counted."""
MAX_LOOKED_UP = 500_000
"""The most neighbours of these edges' ends that are looked up."""
SEED = 1


@dataclass(frozen=True)
class Copies:
    """Estimated copies of an edge over partitions."""

    mean: float
    """Mean copies of an edge over all partitions. Below 1 if edges have no triangles: these are not bounded."""

    largest: float
    """Share of all edges that the largest partition has."""

    basis: Literal["estimated", "assumed"]
    """Estimated from triangles, or assumed: a sample of part of the rows has hardly any triangles."""


@dataclass(frozen=True)
class Witnesses:
    """Edges between vertices of S, with all their triangles if all rows were read. Numbers are those of the sample."""

    whole: bool
    """Whether all rows were read."""

    low: NDArray[np.int32]
    """[edges] first end in degree order. Edges are in random order."""

    high: NDArray[np.int32]
    """[edges] other end."""

    closable: float
    """Upper bound of the share of edges in triangles: edges whose ends in S have other neighbours."""

    support: NDArray[np.int64]
    """[witnesses] triangles of each of the first edges."""

    edge: NDArray[np.int64]
    """[copies] the witness."""

    at: NDArray[np.int32]
    """[copies] a vertex whose partition has a copy of it."""

    @property
    def with_triangles(self) -> float:
        """Share of the edges with triangles, or an upper bound of it if the sample does not tell, as for a star."""
        if not self.whole:
            return 1.0
        return np.count_nonzero(self.support) / len(self.support) if len(self.support) else self.closable

    @property
    def mean_triangles(self) -> float | None:
        """Mean number of triangles of an edge, or None if the sample does not tell."""
        return float(self.support.mean()) if self.whole and len(self.support) else None

    def copies(self, method: str, partitions: int) -> Copies:
        """The copies by a partitioning method."""
        partitioner = self._partitioner(method, partitions)
        has_copy = np.zeros((max(1, len(self.support)), partitions), np.bool_)
        has_copy[self.edge, partitioner(self.at)] = True
        copies = np.count_nonzero(has_copy, axis=0)
        mean, largest = float(copies.sum() / len(has_copy)), float(copies.max() / len(has_copy))
        if self.whole:
            return Copies(mean, largest, "estimated")
        assumed = self._assumed(partitioner)
        return Copies(max(mean, assumed), max(largest, assumed / partitions), "assumed")

    def _partitioner(self, method: str, partitions: int) -> Partitioner:
        if method == "hash" or not len(self.low):
            return HashPartitioner(partitions)
        cuts = np.arange(1, partitions) * len(self.low) // partitions
        return RangePartitioner(np.sort(self.low)[cuts].astype(np.int64))

    def _assumed(self, partitioner: Partitioner) -> float:
        """The copies of R-MAT graphs by hash, about 1.1 P^0.65, reduced if fewer edges are cut than by hash."""
        partitions = partitioner.partitions
        if partitions == 1:
            return 1.0
        cut = np.count_nonzero(partitioner(self.low) != partitioner(self.high)) / max(1, len(self.low))
        worst: float = min(partitions, 1.1 * partitions**0.65)
        return 1 + (worst - 1) * min(1.0, cut / (1 - 1 / partitions))


def find_witnesses(sample: Sample) -> Witnesses:
    """Take the edges between vertices of S, and find the triangles of up to MAX_WITNESSES of them."""
    vertices, picked = len(sample.picked), sample.picked
    seen = np.bincount(sample.low, minlength=vertices) + np.bincount(sample.high, minlength=vertices)
    degree = _degrees(sample, seen)
    inside = np.flatnonzero(picked[sample.low] & picked[sample.high])
    inside = np.random.default_rng(SEED).permutation(inside)
    first, second = sample.low[inside], sample.high[inside]
    swapped = degree[first] > degree[second]  # for equal degrees the smaller id comes first
    low, high = np.where(swapped, second, first), np.where(swapped, first, second)

    shorter = np.where(seen[low] <= seen[high], low, high)[:MAX_WITNESSES]
    shorter = shorter[: np.searchsorted(np.cumsum(seen[shorter]), MAX_LOOKED_UP) + 1]
    longer = low[: len(shorter)] + high[: len(shorter)] - shorter
    witness, third = _common(sample, shorter, longer)

    top = high[witness]
    before = (degree[third] < degree[top]) | ((degree[third] == degree[top]) & (third < top))
    support = np.bincount(witness, minlength=len(shorter))
    owned = np.flatnonzero(support)
    return Witnesses(
        sample.is_whole,
        low,
        high,
        _closable(sample, seen),
        support,
        np.concatenate([witness, owned]),
        np.concatenate([np.where(before, third, top), low[owned]]),
    )


def _closable(sample: Sample, seen: NDArray[np.int64]) -> float:
    """Share of the edges whose ends in S have another neighbour. All neighbours of a vertex in S are in the sample."""
    alone = sample.picked & (seen < 2)
    return 1 - np.count_nonzero(alone[sample.low] | alone[sample.high]) / len(sample) if len(sample) else 1.0


def _degrees(sample: Sample, seen: NDArray[np.int64]) -> NDArray[np.float64]:
    """[vertices] degrees. For a vertex outside S the sample has only neighbours in S: it gets the degree of a random
    vertex of S with as many neighbours in S.
    """
    vertices, picked = len(sample.picked), sample.picked
    inside = np.bincount(sample.low[picked[sample.high]], minlength=vertices)
    inside += np.bincount(sample.high[picked[sample.low]], minlength=vertices)
    known, others = np.flatnonzero(picked), np.flatnonzero(~picked)
    known = known[np.argsort(inside[known], kind="stable")]
    first, last = (np.searchsorted(inside[known], inside[others], side=side) for side in ("left", "right"))
    drawn = first + np.random.default_rng(SEED).integers(0, np.maximum(last - first, 1))
    alike = last > first
    degree = seen.astype(np.float64)
    degree[others] = inside[others] / sample.share
    degree[others[alike]] = seen[known[drawn[alike]]]
    return degree


def _common(
    sample: Sample, one: NDArray[np.int32], other: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The common neighbours of pairs of vertices, as (pair, vertex)."""
    vertices = len(sample.picked)
    is_end = np.zeros(vertices, np.bool_)
    is_end[one] = is_end[other] = True
    forth, back = is_end[sample.low], is_end[sample.high]
    end = np.concatenate([sample.low[forth], sample.high[back]]).astype(np.int64)
    keys = np.sort(end * vertices + np.concatenate([sample.high[forth], sample.low[back]]))
    start, stop = (np.searchsorted(keys, (one + np.int64(side)) * vertices) for side in (0, 1))
    pair = np.repeat(np.arange(len(one)), stop - start)
    pair_starts = order.offsets(stop - start)
    neighbour = keys[np.arange(len(pair)) + (start - pair_starts[:-1])[pair]] % vertices
    queries = other[pair] * np.int64(vertices) + neighbour
    found = np.searchsorted(keys, queries)
    found[found == len(keys)] = 0
    common = np.flatnonzero(keys[found] == queries)
    return pair[common], neighbour[common].astype(np.int32)
