"""Maps from vertex to partition, for the blocks of vertex programs.

All partitioners have the signature of `Partitioner`. Hashes balance without locality. Ranges of dense numbers keep the
locality that ids carry; `cut_targets` and `cuts_within` choose their cuts so that ranges have about equal work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from .ids.identity import splitmix64


@dataclass(frozen=True)
class HashPartitioner:
    """Spreads vertices over partitions by a 64-bit hash of the dense number."""

    partitions: int

    def __call__(self, vertices: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.int16]:
        """The partition of each vertex, by its dense number."""
        return (splitmix64(vertices.astype(np.uint64)) % np.uint64(self.partitions)).astype(np.int16)


@dataclass(frozen=True)
class RangePartitioner:
    """Partition p has the vertices cuts[p - 1] ≤ dense number < cuts[p]. Without cuts there is one partition."""

    cuts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """[partitions - 1] dense numbers, ascending."""

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return len(self.cuts) + 1

    def __call__(self, vertices: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.int16]:
        """The partition of each vertex, by its dense number."""
        cuts = np.asarray(self.cuts, like=vertices)
        return np.searchsorted(cuts, vertices, side="right").astype(np.int16)


class Partitioner(Protocol):
    """Maps vertices to partitions 0 … partitions - 1. Picklable, and gives the same answer in every process."""

    @property
    def partitions(self) -> int:
        """The number of partitions, at most 32,767."""
        ...

    def __call__(self, vertices: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.int16]:
        """The partition of each vertex, by its dense number."""
        ...


def cut_targets(work: Sequence[int], partitions: int) -> list[NDArray[np.int64]]:
    """For each bucket, the targets of the cuts within it: the work of its vertices before the cut.

    `work` [buckets] is the work of each bucket's vertices. Cut k lies where k/partitions of all work is before it. If
    there is no work, all targets go to bucket 0.
    """
    ends = np.cumsum(np.array(work, np.int64))
    targets = np.arange(1, partitions) * int(ends[-1]) // partitions
    bucket = np.searchsorted(ends, targets)
    before = ends - np.array(work, np.int64)
    return [targets[bucket == b] - before[b] for b in range(len(work))]


def cuts_within(work: NDArray[np.int64], first: int, targets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The dense numbers of the cuts nearest to the targets of one bucket.

    `work` [vertices] is the work of each vertex, `first` the dense number of its first vertex.
    """
    if not len(work):
        return np.full(len(targets), first, np.int64)
    targets = np.asarray(targets, like=work)
    ends = np.cumsum(work)
    vertex = np.searchsorted(ends, targets)  # the first vertex whose end reaches the target
    over = ends[vertex] - targets
    under = targets - (ends[vertex] - work[vertex])
    return kernels.to_host(first + vertex + (over < under))


def range_partitioner(cuts: Sequence[NDArray[np.int64]]) -> RangePartitioner:
    """The partitioner with the cuts of all buckets, given in bucket order."""
    return RangePartitioner(np.concatenate(cuts))
