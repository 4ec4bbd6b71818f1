"""Supports of a graph in shards: every edge is streamed to every group, which finds the triangles with its vertices.

A triangle a < b < c belongs to the group of c, which owns (a, c) and (b, c). The steps are:

    every bucket  sort_edges
    exchange 1    send_edges      buckets → groups: collect_owned_edges
    every group   count_streams   over the streams of all buckets, in batches; returns partial counts of each batch
    every batch   add_partials    sums the partial counts of all groups
    exchange 2    send_sums       groups → buckets: collect_supports
                  sum(), triangles           → driver: check_triangles

Buckets may be on the host and groups on a GPU: what arrives is moved to the device of the receiver.

Two kinds of messages have the edges of a bucket, sorted by rank: an `EdgeStream` goes to every group, an `EdgeRun` to
the group that owns its edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.cpu.shards.triangles import ThirdVertexRows
from ...kernels.graph import MAX_LOCAL_EDGES
from ...kernels.runtime.sizes import SizedArrays
from ..device import MemorySpace, move_arrays, place_like
from ..errors import InternalError, OutOfRoom
from ..graph import check_supports
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


MAX_EDGES = 2**32 - 2
"""Maximum number of edges of a group, as they are numbered by uint32."""


@dataclass(frozen=True)
class OwnedEdgeRows(SizedArrays):
    """The edges that a group owns. `len()` is their number."""

    group: int

    rows: ThirdVertexRows

    origin: NDArray[np.uint32]
    """[edges] index of each edge in the concatenated runs."""

    senders: NDArray[np.int64]
    """[runs] the bucket that sent each run."""

    runs: NDArray[np.int64]
    """[runs + 1] where each run starts."""

    def __len__(self) -> int:
        return len(self.origin)


@dataclass(frozen=True)
class TriangleSums(SizedArrays):
    """The triangles that a group has found in the streams so far."""

    sums: NDArray[np.int32]
    """[edges of the group] triangles found so far with the edge as (a, c) or (b, c)."""

    partial: NDArray[np.int32]
    """[edges of the last streams, concatenated] triangles found by this group with the edge as (a, b)."""

    triangles: int
    """Triangles found so far."""


@dataclass(frozen=True)
class BucketSupports(SizedArrays):
    """The triangles of a bucket's edges, in the row order of BucketEdges. `len()` is the number of edges."""

    bucket: int

    support: NDArray[np.int32]
    """[edges] triangles of each edge."""

    def __len__(self) -> int:
        return len(self.support)

    @property
    def closed(self) -> int:
        """Number of edges with triangles."""
        return kernels.total(self.support > 0)

    @property
    def total(self) -> int:
        """Sum of the supports."""
        return kernels.total(self.support)


def check_limits(group: int, edges: int, on_gpu: bool) -> None:
    """Raises OutOfRoom for more edges of a group than can be numbered."""
    most = MAX_LOCAL_EDGES if on_gpu else MAX_EDGES
    if edges > most:
        raise OutOfRoom(
            f"group {group} has {edges:,} edges, over the {most:,} allowed; use more workers (cluster.workers=…)"
        )


def collect_owned_edges(
    group: int, assignment: ShardAssignment, space: MemorySpace, parts: Mapping[int, EdgeRun]
) -> OwnedEdgeRows:
    """Build the rows of the edges that a group owns, in `space`, from the edges that each bucket sent.

    The result takes 8 bytes per edge, and on a GPU 8 bytes per vertex of the graph more. Building it on a GPU takes
    about 56 bytes per edge. Raises OutOfRoom as `check_limits` does.
    """
    senders = sorted(parts)
    runs = order.offsets(np.array([len(parts[b]) for b in senders], np.int64))
    none = space.place(np.zeros(0, np.uint32))
    check_limits(group, int(runs[-1]), not kernels.on_host(none))
    low, high = (
        np.concatenate([space.place(getattr(parts[b], end)) for b in senders] or [none]) for end in ("low", "high")
    )
    merged = kernels.merge_rows(low, high, runs, assignment.cut.vertices)
    rows = kernels.third_vertex_rows(merged, assignment.cut, assignment.first[group], assignment.shards(group))
    return OwnedEdgeRows(group, rows, merged.origin, np.array(senders, np.int64), runs)


def count_streams(
    owned: OwnedEdgeRows, streams: Sequence[EdgeStream], before: TriangleSums | None = None
) -> TriangleSums:
    """Count the triangles of the streamed edges, and add them to those found `before`.

    Raises OutOfRoom as `check_supports` does.
    """
    sums = np.zeros_like(owned.origin, np.int32) if before is None else before.sums.copy()
    triangles = 0 if before is None else before.triangles
    if not kernels.on_host(sums):  # as one stream, since each call builds tables
        streams = [concatenated([move_arrays(stream, MemorySpace.DEVICE) for stream in streams])]
    partial = []
    for stream in streams:
        found, closed = kernels.count_by_third_vertex(owned.rows, stream.starts, stream.low, stream.high, sums)
        check_supports(sums)
        check_supports(found)
        partial.append(found)
        triangles += closed
    return TriangleSums(sums, partial[0] if len(partial) == 1 else np.concatenate(partial), triangles)


def add_partials(before: NDArray[np.int32] | None, partials: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """The sum of the partial counts of groups for the same streams. Raises OutOfRoom as `check_supports` does."""
    total = partials[0].copy() if before is None else before.copy()
    for partial in partials[1:] if before is None else partials:
        if len(partial) != len(total):
            raise InternalError(f"groups counted triangles of {len(total)} edges and of {len(partial)}")
        total += partial
        check_supports(total)
    return total


def send_sums(owned: OwnedEdgeRows, counted: TriangleSums) -> Bundle[NDArray[np.int32]]:
    """Group → buckets: send the sums of its edges to the buckets that sent the edges, in the same order."""
    sums = np.empty_like(counted.sums)
    sums[owned.origin] = counted.sums
    cuts = owned.runs.tolist()
    return bundle(
        owned.group,
        {b: sums[cuts[i] : cuts[i + 1]] for i, b in enumerate(owned.senders.tolist())},
    )


def collect_supports(
    edges: SortedEdges,
    assignment: ShardAssignment,
    partial: NDArray[np.int32],
    start: int,
    parts: Mapping[int, NDArray[np.int32]],
) -> BucketSupports:
    """The triangles of a bucket's edges: the sum of the partial counts and the sums of owners.

    The `partial` counts of the bucket's stream begin at `start`. `parts` has the sums by group. The result is on the
    device of the edges. Raises InternalError unless each edge has both counts, OutOfRoom as `check_supports` does.
    """
    total = place_like(edges.row, partial[start : start + len(edges)]).copy()
    if len(total) != len(edges):
        raise InternalError(f"bucket {edges.stream.bucket} has {len(edges)} edges, but {len(total)} were counted")
    for group, own in enumerate(by_owner(edges, assignment)):
        sums = place_like(total, parts.get(group, total[:0]))
        if len(sums) != len(own):
            raise InternalError(
                f"bucket {edges.stream.bucket} sent {len(own)} edges to group {group} and received {len(sums)} sums"
            )
        total[own] += sums
        check_supports(total[own])
    support = np.empty_like(total)
    support[edges.row] = total
    return BucketSupports(edges.stream.bucket, support)


def check_triangles(supports: Sequence[int], triangles: Sequence[int]) -> int:
    """The number of triangles of the graph. `supports` are the sums by bucket, `triangles` those found by each group.

    Raises InternalError unless the supports add up to three times the triangles.
    """
    if sum(supports) != 3 * sum(triangles):
        raise InternalError(f"groups found {sum(triangles)} triangles; the supports add up to {sum(supports)}")
    return sum(triangles)
