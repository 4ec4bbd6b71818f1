"""Buckets → partitions: each edge goes to the partition of its low end in degree order, which owns it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import MAX_LOCAL_EDGES
from ...kernels.runtime.sizes import SizedArrays
from ..device import MemorySpace, move_arrays
from ..errors import OutOfRoom
from ..ids import order
from ..ids.order import Ints
from ..messages import Bundle, Payload, bundle
from ..partition import Partitioner
from .degrees import OrientedEdges
from .numbering import BucketEdges


@dataclass(frozen=True)
class EdgeParts(Payload):
    """Edges that a bucket sends to the partition that owns them. `len()` is the number of edges."""

    low: Ints
    """[edges] rank of the low end."""

    high: Ints
    """[edges] rank of the high end."""

    part_high: NDArray[np.int16] | None
    """[edges] partition of the high end; None if there is one partition only."""

    row: NDArray[np.int32]
    """[edges] row in the bucket's BucketEdges, ascending."""

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class OwnedEdges(SizedArrays):
    """The edges that one partition owns, as an oriented CSR over their vertices. `len()` is the number of edges."""

    partition: int

    rank: NDArray[np.int64]
    """[vertices] degree-order rank of each local vertex, ascending. The local vertices are the ends of owned edges."""

    part: NDArray[np.int16]
    """[vertices] partition of each local vertex."""

    offsets: NDArray[np.int64]
    """[vertices + 1] oriented CSR over local vertices, low → high."""

    high: NDArray[np.int32]
    """[edges] local vertex, ascending within each low."""

    bucket: NDArray[np.int16]
    """[edges] bucket that publishes the edge."""

    row: NDArray[np.int32]
    """[edges] its row in that bucket's BucketEdges."""

    def __len__(self) -> int:
        return len(self.high)


@dataclass(frozen=True)
class OwnedRows(SizedArrays):
    """For each edge that one partition owns, the row in which it is published. `len()` is the number of edges."""

    partition: int

    bucket: NDArray[np.int16]
    """[edges] bucket that publishes the edge."""

    row: NDArray[np.int32]
    """[edges] its row in that bucket's BucketEdges."""

    def __len__(self) -> int:
        return len(self.row)


def send_owned(edges: BucketEdges, oriented: OrientedEdges, partitioner: Partitioner) -> Bundle[EdgeParts]:
    """Bucket → partitions: each edge goes to the partition of its low end in degree order."""
    if partitioner.partitions == 1:
        row = np.arange(len(edges), dtype=np.int32, like=edges.low)
        parts = {0: EdgeParts(oriented.low, oriented.high, None, row)}
        return bundle(edges.bucket, parts)
    own = partitioner(np.arange(edges.first, edges.first + edges.vertices, like=edges.low))
    highs = partitioner(edges.highs)
    row = np.arange(len(edges), dtype=np.int32, like=edges.low)
    part_low, part_high = own[edges.low], highs[edges.high]
    owner = np.where(oriented.swapped, part_high, part_low)
    other = np.where(oriented.swapped, part_low, part_high)
    by_owner, cuts = order.group(owner, partitioner.partitions)
    parts = {}
    for p in np.flatnonzero(np.diff(cuts)).tolist():
        rows = by_owner[cuts[p] : cuts[p + 1]]
        parts[p] = EdgeParts(oriented.low[rows], oriented.high[rows], other[rows], row[rows])
    return bundle(edges.bucket, parts)


def rows_to_publish(owned: OwnedEdges) -> OwnedRows:
    """The bucket and row of each edge of a partition: all that publishing needs of them."""
    return OwnedRows(owned.partition, owned.bucket, owned.row)


def owned_to_device(owned: OwnedEdges) -> OwnedEdges:
    """The edges of a partition in GPU memory, without `bucket` and `row`, which only publishing reads."""
    unused = np.zeros(0, np.int16)
    return move_arrays(replace(owned, bucket=unused, row=unused.astype(np.int32)), MemorySpace.DEVICE)


def collect_owned(partition: int, space: MemorySpace, parts: Mapping[int, EdgeParts]) -> OwnedEdges:
    """The owned edges of one partition, from the edges that each bucket sent. An empty result is placed in `space`.

    Raises OutOfRoom for more than 2^31 - 2 edges, whose numbers would overflow int32.
    """
    senders = sorted(parts)
    edges = sum(map(len, parts.values()))
    if edges > MAX_LOCAL_EDGES:
        raise OutOfRoom(
            f"partition {partition} owns {edges:,} edges, over the {MAX_LOCAL_EDGES:,} allowed; "
            "raise partitioning.count"
        )
    if not senders:
        none = space.place(np.zeros(0, np.int32))
        return OwnedEdges(
            partition,
            none.astype(np.int64),
            none.astype(np.int16),
            space.place(np.zeros(1, np.int64)),
            none,
            none.astype(np.int16),
            none,
        )
    low, high, part_high, row = (
        _joined([getattr(parts[b], name) for b in senders]) for name in ("low", "high", "part_high", "row")
    )
    ends = order.offsets(np.array([len(parts[b]) for b in senders])).tolist()
    bucket = np.empty_like(low, np.int16)
    for b, start, stop in zip(senders, ends, ends[1:], strict=False):
        bucket[start:stop] = b
    if part_high is None:
        # All edges are here, and vertices without edges have the lowest ranks, so the ranks of ends have no gaps.
        first, last = int(low.min()), order.largest(high)
        order.check_codes(last - first + 1)
        low, high = ((ends - first if first else ends).astype(np.int32, copy=False) for ends in (low, high))
        rank = np.arange(first, last + 1, like=high)
    else:
        rank, (low, high) = order.encode(low, high)
    # Right for every low end: each edge was sent to the partition of its low end.
    part = np.full_like(rank, partition, np.int16)
    if part_high is not None:
        part[high] = part_high
    by_pair = order.order_pairs(low, high, len(rank), len(rank))
    return OwnedEdges(
        partition,
        rank.astype(np.int64),
        part,
        order.offsets(kernels.bincount(low, len(rank))),
        kernels.take(high, by_pair),
        kernels.take(bucket, by_pair) if len(senders) > 1 else bucket,
        kernels.take(row, by_pair),
    )


def _joined(columns: Sequence[NDArray[Any] | None]) -> Any:
    """The columns of all senders as one; None if they have none."""
    found = [column for column in columns if column is not None]
    return kernels.join(found) if len(found) > 1 else columns[0]
