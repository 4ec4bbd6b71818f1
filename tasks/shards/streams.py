"""The edges of a bucket, sorted by rank, to stream to every group and to send to the groups that own them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.runtime.sizes import SizedArrays
from ..ids import order
from ..ingest.degrees import OrientedEdges
from ..messages import Bundle, Payload, bundle
from .assignment import ShardAssignment


@dataclass(frozen=True)
class EdgeStream(Payload):
    """The edges of a bucket as rows low → high, 4 bytes per edge and 8 per row. `len()` is the number of edges."""

    bucket: int

    low: NDArray[np.uint32]
    """[rows] rank of the low endpoint, ascending, each once."""

    starts: NDArray[np.uint32]
    """[rows + 1] where each row starts."""

    high: NDArray[np.uint32]
    """[edges] rank of the high endpoint, ascending within a row."""

    def __len__(self) -> int:
        return len(self.high)

    def lows(self) -> NDArray[np.uint32]:
        """[edges] rank of each edge's low endpoint."""
        if kernels.on_host(self.low):
            return np.repeat(self.low, np.diff(self.starts))
        return self.low[kernels.row_numbers(self.starts.astype(np.int64))]


@dataclass(frozen=True)
class SortedEdges(SizedArrays):
    """A bucket's stream, and the row of each of its edges in BucketEdges. `len()` is the number of edges."""

    stream: EdgeStream

    row: NDArray[np.int32]
    """[edges] row of each edge of the stream."""

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class EdgeRun(Payload):
    """Edges sent by a bucket to the group that owns them, sorted by (low, high). `len()` is the number of edges."""

    low: NDArray[np.uint32]
    """[edges] rank of the low endpoint."""

    high: NDArray[np.uint32]
    """[edges] rank of the high endpoint."""

    def __len__(self) -> int:
        return len(self.low)


def concatenated(streams: Sequence[EdgeStream]) -> EdgeStream:
    """Several streams as one, in order; a vertex may have a row of each stream."""
    if len(streams) == 1:
        return streams[0]
    ends = order.offsets(np.array(list(map(len, streams)))).astype(np.uint32)
    starts = [own.starts[:-1] + end for own, end in zip(streams, ends, strict=False)]
    starts.append(streams[-1].starts[-1:] + ends[-2])
    low, high = (np.concatenate([getattr(own, name) for own in streams]) for name in ("low", "high"))
    return EdgeStream(streams[0].bucket, low, np.concatenate(starts), high)


def sort_edges(oriented: OrientedEdges) -> SortedEdges:
    """Sort a bucket's edges by (low, high). Ranks are at most 2^32 - 3, as `ShardAssignment.of` checks."""
    rank, (low, high) = order.encode(oriented.low, oriented.high)
    row = order.order_pairs(low, high, len(rank), len(rank)).astype(np.int32, copy=False)
    counts = kernels.bincount(low, len(rank))
    listed = np.flatnonzero(counts)
    starts = order.offsets(counts[listed]).astype(np.uint32)
    stream = EdgeStream(
        oriented.bucket, rank[listed].astype(np.uint32), starts, oriented.high[row].astype(np.uint32, copy=False)
    )
    return SortedEdges(stream, row)


def by_owner(edges: SortedEdges, assignment: ShardAssignment) -> list[NDArray[np.intp]]:
    """[groups] indices in the stream, ascending, of the edges that each group owns."""
    return list(order.positions_by_group(assignment.group_of(edges.stream.high), assignment.groups))


def send_edges(edges: SortedEdges, assignment: ShardAssignment) -> Bundle[EdgeRun]:
    """Bucket → groups: send every edge to the group that owns it."""
    low, high = edges.stream.lows(), edges.stream.high
    if assignment.groups == 1:
        return bundle(edges.stream.bucket, {0: EdgeRun(low, high)})
    runs = {g: EdgeRun(low[own], high[own]) for g, own in enumerate(by_owner(edges, assignment))}
    return bundle(edges.stream.bucket, runs)
