"""Triangles of some edges of a sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..ids import order
from .sampling import Sample

MAX_WITNESSES = 16_000
"""The most edges whose triangles are counted."""
MAX_LOOKED_UP = 500_000
"""The most neighbours of these edges' ends that are looked up."""
SEED = 1


@dataclass(frozen=True)
class Witnesses:
    """Edges between vertices of S, with all their triangles if all rows were read."""

    whole: bool
    """Whether all rows were read."""

    closable: float
    """Upper bound of the share of edges in triangles: edges whose ends in S have other neighbours."""

    support: NDArray[np.int64]
    """[witnesses] triangles of each of the first edges."""

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


def find_witnesses(sample: Sample) -> Witnesses:
    """Take the edges between vertices of S, and find the triangles of up to MAX_WITNESSES of them."""
    vertices, picked = len(sample.picked), sample.picked
    seen = np.bincount(sample.low, minlength=vertices) + np.bincount(sample.high, minlength=vertices)
    inside = np.flatnonzero(picked[sample.low] & picked[sample.high])
    inside = np.random.default_rng(SEED).permutation(inside)
    low, high = sample.low[inside], sample.high[inside]
    shorter = np.where(seen[low] <= seen[high], low, high)[:MAX_WITNESSES]
    shorter = shorter[: np.searchsorted(np.cumsum(seen[shorter]), MAX_LOOKED_UP) + 1]
    longer = low[: len(shorter)] + high[: len(shorter)] - shorter
    support = np.bincount(_common(sample, shorter, longer), minlength=len(shorter))
    return Witnesses(sample.is_whole, _closable(sample, seen), support)


def _closable(sample: Sample, seen: NDArray[np.int64]) -> float:
    """Share of the edges whose ends in S have another neighbour. All neighbours of a vertex in S are in the sample."""
    alone = sample.picked & (seen < 2)
    return 1 - np.count_nonzero(alone[sample.low] | alone[sample.high]) / len(sample) if len(sample) else 1.0


def _common(sample: Sample, one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int64]:
    """Of pairs of vertices, the pair of each common neighbour."""
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
    common: NDArray[np.int64] = pair[keys[found] == queries]
    return common
