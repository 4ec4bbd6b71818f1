"""How many copies of an edge there will be over all partitions, from a sample.

For a triangle a < b < c in degree order, (a, b) and (a, c) are ghosts where b is, and (b, c) where a is, if that is
another partition (triangulate.py). So an edge (x, y) that has triangles lies in the partition of x, in those of the
common neighbours that come before y, and in that of y if one comes after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from . import order
from .partition import HashPartitioner, Partitioner, RangePartitioner
from .sampling import Sample

MOST_WITNESSES = 16_000
"""Edges whose triangles are looked at."""
MOST_LOOKED_UP = 500_000
"""Neighbours of theirs that are looked up."""
SEED = 1


@dataclass(frozen=True)
class Copies:
    """Copies of an edge."""

    mean: float
    """In all partitions together; below 1 where edges have no triangles: these are not bounded anywhere."""

    largest: float
    """Share of the edges that the partition with most of them has."""

    basis: Literal["estimated", "assumed"]
    """Estimated from triangles, or assumed, as of a part of the rows hardly any triangles are seen."""


@dataclass(frozen=True)
class Witnesses:
    """Edges between vertices of S, with all their triangles if all rows were read. Vertices are numbered as there."""

    whole: bool
    """Whether all rows were read."""

    low: NDArray[np.int32]
    """[edges] first end in degree order; edges are in random order."""

    high: NDArray[np.int32]
    """[edges] other end."""

    closable: float
    """Share of the edges whose known ends have other neighbours: no other edge is in a triangle."""

    support: NDArray[np.int64]
    """[witnesses] triangles, of the first so many edges."""

    edge: NDArray[np.int64]
    """[places] which witness."""

    at: NDArray[np.int32]
    """[places] a vertex in whose partition it has a copy."""

    @property
    def with_triangles(self) -> float:
        """Share of the edges that have triangles; the most it can be where that is not known, as in a star."""
        if not self.whole:
            return 1.0
        return np.count_nonzero(self.support) / len(self.support) if len(self.support) else self.closable

    def copies(self, method: str, partitions: int) -> Copies:
        """Copies that a partitioning method makes."""
        partitioner = self._partitioner(method, partitions)
        lies = np.zeros((max(1, len(self.support)), partitions), np.bool_)
        lies[self.edge, partitioner(self.at)] = True
        held = np.count_nonzero(lies, axis=0)
        mean, largest = float(held.sum() / len(lies)), float(held.max() / len(lies))
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
        """What R-MAT has by hash, near 1.1 P^0.65, less as fewer edges are cut than there."""
        partitions = partitioner.partitions
        if partitions == 1:
            return 1.0
        cut = np.count_nonzero(partitioner(self.low) != partitioner(self.high)) / max(1, len(self.low))
        worst: float = min(partitions, 1.1 * partitions**0.65)
        return 1 + (worst - 1) * min(1.0, cut / (1 - 1 / partitions))


def find_witnesses(sample: Sample) -> Witnesses:
    """Take the edges between vertices of S, and find triangles of as many as may be looked at."""
    vertices, picked = len(sample.picked), sample.picked
    seen = np.bincount(sample.low, minlength=vertices) + np.bincount(sample.high, minlength=vertices)
    degree = _degrees(sample, seen)
    inside = np.flatnonzero(picked[sample.low] & picked[sample.high])
    inside = np.random.default_rng(SEED).permutation(inside)
    first, second = sample.low[inside], sample.high[inside]
    swapped = degree[first] > degree[second]  # of equal degrees the smaller id comes first, as it stands
    low, high = np.where(swapped, second, first), np.where(swapped, first, second)

    shorter = np.where(seen[low] <= seen[high], low, high)[:MOST_WITNESSES]
    shorter = shorter[: np.searchsorted(np.cumsum(seen[shorter]), MOST_LOOKED_UP) + 1]
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
    """Share of the edges whose ends in S, of which all neighbours are seen, have another one."""
    alone = sample.picked & (seen < 2)
    return 1 - np.count_nonzero(alone[sample.low] | alone[sample.high]) / len(sample) if len(sample) else 1.0


def _degrees(sample: Sample, seen: NDArray[np.int64]) -> NDArray[np.float64]:
    """[vertices] degrees. Outside S only neighbours in S are seen: such a vertex gets the degree of some vertex of S
    that has as many of them.
    """
    vertices, picked = len(sample.picked), sample.picked
    there = np.bincount(sample.low[picked[sample.high]], minlength=vertices)
    there += np.bincount(sample.high[picked[sample.low]], minlength=vertices)
    known, others = np.flatnonzero(picked), np.flatnonzero(~picked)
    known = known[np.argsort(there[known], kind="stable")]
    first, last = (np.searchsorted(there[known], there[others], side=side) for side in ("left", "right"))
    drawn = first + np.random.default_rng(SEED).integers(0, np.maximum(last - first, 1))
    alike = last > first
    degree = seen.astype(np.float64)
    degree[others] = there[others] / sample.share
    degree[others[alike]] = seen[known[drawn[alike]]]
    return degree


def _common(
    sample: Sample, one: NDArray[np.int32], other: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The common neighbours of pairs of vertices: which pair, and which vertex."""
    vertices = len(sample.picked)
    wanted = np.zeros(vertices, np.bool_)
    wanted[one] = wanted[other] = True
    forth, back = wanted[sample.low], wanted[sample.high]
    end = np.concatenate([sample.low[forth], sample.high[back]]).astype(np.int64)
    keys = np.sort(end * vertices + np.concatenate([sample.high[forth], sample.low[back]]))
    start, stop = (np.searchsorted(keys, (one + np.int64(side)) * vertices) for side in (0, 1))
    pair = np.repeat(np.arange(len(one)), stop - start)
    ahead = order.offsets(stop - start)
    neighbour = keys[np.arange(len(pair)) + (start - ahead[:-1])[pair]] % vertices
    asked = other[pair] * np.int64(vertices) + neighbour
    found = np.searchsorted(keys, asked)
    found[found == len(keys)] = 0
    common = np.flatnonzero(keys[found] == asked)
    return pair[common], neighbour[common].astype(np.int32)
