"""Partition by ranges of the id order that own about equally many edges: keeps the locality that ids carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ..degrees import Counts, OrientedEdges, send_counts
from ..messages import Bundle
from ..numbering import BucketEdges


@dataclass(frozen=True)
class RangePartitioner:
    """Partition p has the vertices cuts[p - 1] ≤ dense number < cuts[p]."""

    cuts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """[partitions - 1] dense numbers, ascending."""

    @property
    def partitions(self) -> int:
        """How many there are."""
        return len(self.cuts) + 1

    def __call__(self, vertices: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.int16]:
        """The partition of each vertex, given by its dense number."""
        cuts = np.asarray(self.cuts, like=vertices)
        return np.searchsorted(cuts, vertices, side="right").astype(np.int16)


def send_out_degrees(edges: BucketEdges, oriented: OrientedEdges) -> Bundle[Counts]:
    """Bucket → buckets: how many edges of this bucket each larger end owns, to the bucket of that end."""
    return send_counts(edges, np.bincount(edges.high[oriented.swapped], minlength=len(edges.highs)))


def collect_out_degrees(edges: BucketEdges, oriented: OrientedEdges, parts: Mapping[int, Counts]) -> NDArray[np.int64]:
    """Edges owned by each vertex of a bucket (its neighbours later in degree order): int64 [vertices], in id order."""
    out = np.bincount(edges.low[~oriented.swapped], minlength=edges.vertices)
    for part in parts.values():
        out[part.vertices - edges.first] += part.counts
    return out


def cut_targets(owned: Sequence[int], partitions: int) -> list[NDArray[np.int64]]:
    """For each bucket, the cuts that fall into it, as edges its vertices own before the cut; from each bucket's sum.

    Cut k lies where k/partitions of all edges are owned before it. Targets of no edges at all go to bucket 0.
    """
    ends = np.cumsum(np.array(owned, np.int64))
    targets = np.arange(1, partitions) * int(ends[-1]) // partitions
    holder = np.searchsorted(ends, targets)
    before = ends - np.array(owned, np.int64)
    return [targets[holder == b] - before[b] for b in range(len(owned))]


def cuts_within(out: NDArray[np.int64], first: int, targets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The cuts, as dense numbers, that come nearest to the targets; `out` is the bucket's `collect_out_degrees`."""
    if not len(out):
        return np.full(len(targets), first, np.int64)
    targets = np.asarray(targets, like=out)
    ends = np.cumsum(out)
    holder = np.searchsorted(ends, targets)  # the first vertex whose end reaches the target
    over = ends[holder] - targets
    under = targets - (ends[holder] - out[holder])
    return kernels.to_host(first + holder + (over < under))


def range_partitioner(cuts: Sequence[NDArray[np.int64]]) -> RangePartitioner:
    """The partitioner of all cuts, from those of each bucket in order."""
    return RangePartitioner(np.concatenate(cuts))
