"""Choose the cuts of a RangePartitioner so that partitions own about equally many edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ..messages import Bundle
from ..partition import RangePartitioner
from .degrees import Counts, OrientedEdges, send_counts
from .numbering import BucketEdges


def send_out_degrees(edges: BucketEdges, oriented: OrientedEdges) -> Bundle[Counts]:
    """Bucket → buckets: the number of this bucket's edges that each larger end owns, to the bucket of that end."""
    return send_counts(edges, kernels.bincount(edges.high[oriented.swapped], len(edges.highs)))


def collect_out_degrees(edges: BucketEdges, oriented: OrientedEdges, parts: Mapping[int, Counts]) -> NDArray[np.int64]:
    """The number of edges that each vertex of a bucket owns: int64 [vertices], in id order.

    A vertex owns its edges to neighbours that come later in degree order.
    """
    out = kernels.bincount(edges.low[~oriented.swapped], edges.vertices)
    for part in parts.values():
        out[part.vertices - edges.first] += part.counts
    return out


def cut_targets(owned: Sequence[int], partitions: int) -> list[NDArray[np.int64]]:
    """For each bucket, the targets of the cuts within it: the number of edges its vertices own before the cut.

    `owned` [buckets] is the number of edges that each bucket's vertices own. Cut k lies where k/partitions of all edges
    are owned before it. If there are no edges, all targets go to bucket 0.
    """
    ends = np.cumsum(np.array(owned, np.int64))
    targets = np.arange(1, partitions) * int(ends[-1]) // partitions
    bucket = np.searchsorted(ends, targets)
    before = ends - np.array(owned, np.int64)
    return [targets[bucket == b] - before[b] for b in range(len(owned))]


def cuts_within(out: NDArray[np.int64], first: int, targets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The dense numbers of the cuts nearest to the targets of one bucket.

    `out` is the bucket's `collect_out_degrees`, `first` the dense number of its first vertex.
    """
    if not len(out):
        return np.full(len(targets), first, np.int64)
    targets = np.asarray(targets, like=out)
    ends = np.cumsum(out)
    vertex = np.searchsorted(ends, targets)  # the first vertex whose end reaches the target
    over = ends[vertex] - targets
    under = targets - (ends[vertex] - out[vertex])
    return kernels.to_host(first + vertex + (over < under))


def range_partitioner(cuts: Sequence[NDArray[np.int64]]) -> RangePartitioner:
    """The partitioner with the cuts of all buckets, given in bucket order."""
    return RangePartitioner(np.concatenate(cuts))
