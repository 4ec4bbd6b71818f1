"""Choose the cuts of a RangePartitioner so that its ranges of vertices have about equal work."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ..partition import RangePartitioner


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
