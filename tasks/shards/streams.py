"""The edges of a bucket, sorted by rank: to be shown to every group, and to be sent to the groups that own them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.held import Held
from .. import order
from ..degrees import OrientedEdges
from ..messages import Bundle, bundle
from .dealing import Dealing


@dataclass(frozen=True)
class EdgeStream(Held):
    """The edges of a bucket as rows low → high, 4 bytes an edge and 8 a row. `len()` counts the edges."""

    bucket: int

    low: NDArray[np.uint32]
    """[rows] rank of the low end, ascending, each once."""

    starts: NDArray[np.uint32]
    """[rows + 1] where each row starts."""

    high: NDArray[np.uint32]
    """[edges] rank of the high end, ascending within a row."""

    def __len__(self) -> int:
        return len(self.high)

    def lows(self) -> NDArray[np.uint32]:
        """[edges] rank of each edge's low end."""
        if kernels.on_host(self.low):
            return np.repeat(self.low, np.diff(self.starts))
        return self.low[kernels.row_numbers(self.starts.astype(np.int64))]


@dataclass(frozen=True)
class SortedEdges(Held):
    """A bucket's stream, and which rows of its BucketEdges the edges are. `len()` counts the edges."""

    stream: EdgeStream

    row: NDArray[np.int32]
    """[edges] row of each edge of the stream."""

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class EdgeRun(Held):
    """Edges on their way from a bucket to the group that owns them, sorted by (low, high). `len()` counts them."""

    low: NDArray[np.uint32]
    """[edges] rank of the low end."""

    high: NDArray[np.uint32]
    """[edges] rank of the high end."""

    def __len__(self) -> int:
        return len(self.low)


def joined(streams: Sequence[EdgeStream]) -> EdgeStream:
    """Several streams, one behind the other, as one; a vertex may have a row of each."""
    if len(streams) == 1:
        return streams[0]
    ends = order.offsets(np.array(list(map(len, streams)))).astype(np.uint32)
    starts = [own.starts[:-1] + end for own, end in zip(streams, ends, strict=False)]
    starts.append(streams[-1].starts[-1:] + ends[-2])
    low, high = (np.concatenate([getattr(own, name) for own in streams]) for name in ("low", "high"))
    return EdgeStream(streams[0].bucket, low, np.concatenate(starts), high)


def sort_edges(oriented: OrientedEdges) -> SortedEdges:
    """Sort a bucket's edges by (low, high); ranks are at most 2^32 - 3, see `Dealing.of`."""
    rank, (low, high) = order.encode(oriented.low, oriented.high)
    row = order.order_pairs(low, high, len(rank), len(rank)).astype(np.int32)
    counts = np.bincount(low, minlength=len(rank))
    listed = np.flatnonzero(counts)
    starts = order.offsets(counts[listed]).astype(np.uint32)
    stream = EdgeStream(
        oriented.bucket, rank[listed].astype(np.uint32), starts, oriented.high[row].astype(np.uint32, copy=False)
    )
    return SortedEdges(stream, row)


def by_owner(edges: SortedEdges, dealing: Dealing) -> list[NDArray[np.intp]]:
    """[groups] positions in the stream, ascending, of the edges that each group owns."""
    positions, cuts = order.group(dealing.group_of(edges.stream.high), dealing.groups)
    return [positions[cuts[g] : cuts[g + 1]] for g in range(dealing.groups)]


def send_edges(edges: SortedEdges, dealing: Dealing) -> Bundle[EdgeRun]:
    """Bucket → groups: every edge to the group that owns it."""
    low, high = edges.stream.lows(), edges.stream.high
    if dealing.groups == 1:
        return bundle(edges.stream.bucket, {0: EdgeRun(low, high)})
    runs = {g: EdgeRun(low[own], high[own]) for g, own in enumerate(by_owner(edges, dealing))}
    return bundle(edges.stream.bucket, runs)
