"""Sends edges with triangles to the groups of their two endpoints, which peel them.

exchange   send_supported_edges   buckets → groups: build_group_edges
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ... import kernels
from ...kernels.runtime.sizes import SizedArrays
from ..device import MemorySpace, move_arrays
from ..graph.triangulate import check_supports
from ..ingest import OwnedRows
from ..messages import Bundle, bundle
from .assignment import ShardAssignment
from .edges import ShardEdges, SupportedEdges
from .gpu.merged_edges import merge_edges
from .streams import SortedEdges
from .supports import BucketSupports, check_limits


@dataclass(frozen=True)
class ShardCounts:
    """Sizes of one group, for the manifest."""

    group: int
    shards: int
    edges: int
    """Edges with triangles and an endpoint in the group."""
    owned: int
    """Of these, the edges whose high endpoint is in the group."""
    entries: int
    """Endpoints in the group, which is the number of row entries."""
    vertices: int
    """Vertices in the group's classes."""
    bytes: int
    """Size of the edges before peeling."""


@dataclass(frozen=True)
class GroupInput(SizedArrays):
    """The edges of a group, and where its results are published."""

    edges: ShardEdges

    rows: OwnedRows
    """Bucket and row of the owned edges, in the order of `edges`."""

    counts: ShardCounts


def send_supported_edges(
    edges: SortedEdges, supports: BucketSupports, assignment: ShardAssignment
) -> Bundle[SupportedEdges]:
    """Bucket → groups: send each edge with triangles to the groups of its endpoints, once if both are in one group."""
    low, high, support = edges.stream.lows(), edges.stream.high, supports.support[edges.row]
    at_low, at_high = assignment.group_of(low), assignment.group_of(high)
    for at in (at_low, at_high):
        at[support == 0] = -1  # no group
    parts = {}
    for group in range(assignment.groups):
        own = at_high == group
        here = np.flatnonzero(own | (at_low == group))
        parts[group] = SupportedEdges(low[here], high[here], support[here], edges.row[own])
    return bundle(edges.stream.bucket, parts)


def build_group_edges(
    group: int,
    assignment: ShardAssignment,
    edges: int,
    space: MemorySpace,
    row_space: MemorySpace,
    parts: Mapping[int, SupportedEdges],
) -> GroupInput:
    """Build the edges of a group from those that each bucket sent.

    `edges` is the number of edges with triangles in the whole graph. The edges are moved to `space`, the rows to
    publish to `row_space`. The result takes 12 bytes per edge, and 6 per edge that the group owns. Building it on a GPU
    takes about 30 bytes per edge. Raises OutOfRoom as `check_limits` does, and on a GPU as `check_supports` does.
    """
    senders = sorted(parts)
    runs = np.cumsum([0, *(len(parts[b]) for b in senders)], dtype=np.int64)
    none = move_arrays(
        SupportedEdges(np.zeros(0, np.uint32), np.zeros(0, np.uint32), *[np.zeros(0, np.int32)] * 2), space
    )
    on_gpu = not kernels.on_host(none.low)
    check_limits(group, int(runs[-1]), on_gpu)
    arrived = [move_arrays(parts[b], space) for b in senders] or [none]
    if on_gpu:
        for part in arrived:
            check_supports(part.support)
        low, high, support, bucket, row, entries = merge_edges(
            arrived, senders or [0], lambda ends: assignment.group_of(ends) == group
        )
    else:
        from ...kernels.cpu import to_merged_order  # imports Numba

        low, high, support, row = (
            np.concatenate([getattr(part, name) for part in arrived]) for name in ("low", "high", "support", "row")
        )
        owned = assignment.group_of(high) == group
        entries = kernels.total(owned) + kernels.total(assignment.group_of(low) == group)
        merged = kernels.merge_rows(low, high, runs, assignment.cut.vertices)
        high = merged.high
        low, support, bucket, row = to_merged_order(
            merged.origin, owned, low, support, row, runs, np.array(senders or [0], np.int16)
        )
    del arrived
    found = ShardEdges(group, assignment.groups, assignment.cut, low, high, support, edges)
    rows = move_arrays(OwnedRows(group, bucket, row), row_space)
    size = found.low.nbytes + found.high.nbytes + found.support.nbytes
    sizes = len(found.low), len(rows), entries, assignment.vertices(group)
    counts = ShardCounts(group, assignment.shards(group), *sizes, size)
    return GroupInput(found, rows, counts)
