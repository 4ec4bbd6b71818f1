"""Edges with triangles go to the groups of their two ends: what is peeled, and where the owner's edges are published.

exchange   send_halves   buckets → groups: build_edges
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.held import Held
from .. import order
from ..device import moved
from ..identity import Put
from ..ingest import OwnedRows
from ..messages import Bundle, bundle
from ..triangulate import check_supports
from .dealing import Dealing
from .edges import ShardEdges
from .streams import SortedEdges
from .supports import BucketSupports, check_room


@dataclass(frozen=True)
class SupportedEdges(Held):
    """Edges with triangles on their way from a bucket to the group of an end. `len()` counts them."""

    low: NDArray[np.uint32]
    """[edges] rank of the low end; sorted by (low, high)."""

    high: NDArray[np.uint32]
    """[edges] rank of the high end."""

    support: NDArray[np.int32]
    """[edges] triangles of the edge."""

    row: NDArray[np.int32]
    """[owned edges] row in the bucket's BucketEdges, of those that the group owns."""

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class ShardCounts:
    """Sizes of one group, for the manifest."""

    group: int
    shards: int
    edges: int
    """Edges with triangles that have an end here."""
    owned: int
    """Those whose high end is here."""
    entries: int
    """Ends here, which are as many entries of rows."""
    vertices: int
    """Vertices of its classes."""
    bytes: int
    """What the edges take before they are peeled."""


@dataclass(frozen=True)
class GroupEdges(Held):
    """The edges of one group, and where it has its results published."""

    edges: ShardEdges

    rows: OwnedRows
    """In the order of those `edges` that the group owns."""

    counts: ShardCounts


def send_halves(edges: SortedEdges, supports: BucketSupports, dealing: Dealing) -> Bundle[SupportedEdges]:
    """Bucket → groups: each edge with triangles to the groups of its ends, once where both are of one group."""
    support = supports.support[edges.row]
    closed = np.flatnonzero(support)
    low, high, support = edges.stream.lows()[closed], edges.stream.high[closed], support[closed]
    row = edges.row[closed]
    at_low, at_high = dealing.group_of(low), dealing.group_of(high)
    parts = {}
    for group in range(dealing.groups):
        own = at_high == group
        here = np.flatnonzero(own | (at_low == group))
        parts[group] = SupportedEdges(low[here], high[here], support[here], row[own])
    return bundle(edges.stream.bucket, parts)


def build_edges(
    group: int, dealing: Dealing, edges: int, put: Put, put_rows: Put, parts: Mapping[int, SupportedEdges]
) -> GroupEdges:
    """The edges of one group, where `put` has them, from those each bucket sent; `edges` have triangles in the whole
    graph. What publishing needs of them goes where `put_rows` has it.

    Takes 12 bytes an edge, and 6 for those that the group owns; on a GPU about 76 an edge meanwhile. Raises OutOfRoom
    as `check_room` does, and on a GPU as `check_supports`.
    """
    senders = sorted(parts)
    runs = order.offsets(np.array([len(parts[b]) for b in senders], np.int64))
    none = moved(SupportedEdges(np.zeros(0, np.uint32), np.zeros(0, np.uint32), *[np.zeros(0, np.int32)] * 2), put)
    on_gpu = not kernels.on_host(none.low)
    check_room(group, dealing, int(runs[-1]), on_gpu)
    arrived = [moved(parts[b], put) for b in senders] or [none]
    low, high, support, row = (
        np.concatenate([getattr(part, name) for part in arrived]) for name in ("low", "high", "support", "row")
    )
    del arrived
    if on_gpu:
        check_supports(support)
    owned = dealing.group_of(high) == group
    entries = int(np.count_nonzero(owned)) + int(np.count_nonzero(dealing.group_of(low) == group))
    merged = kernels.merge_rows(low, high, runs, dealing.cut.vertices)
    low, support, bucket, row = kernels.arrange(
        merged.origin, owned, low, support, row, runs, np.array(senders or [0], np.int16)
    )
    found = ShardEdges(group, dealing.groups, dealing.cut, low, merged.high, support, edges)
    rows = moved(OwnedRows(group, bucket, row), put_rows)
    size = found.low.nbytes + found.high.nbytes + found.support.nbytes
    sizes = len(found.low), len(rows), entries, dealing.vertices(group)
    counts = ShardCounts(group, dealing.shards(group), *sizes, size)
    return GroupEdges(found, rows, counts)
