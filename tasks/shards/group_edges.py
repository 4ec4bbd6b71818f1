"""The edges that a group of shards peels, on their way from the buckets, and their λ on the way back.

exchange 1   send_supported_edges   buckets → groups: build_group_edges
exchange 2   send_intervals         groups → buckets: collect_intervals

A group gets each edge that has triangles and an endpoint in the group. Edges without triangles have λ 0; they are sent
in neither direction. On a GPU the edges of all buckets are merged range by range, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.cpu.shards import Cut
from ...kernels.runtime.sizes import SizedArrays
from ..device import MemorySpace, move_arrays, place_like
from ..errors import InternalError
from ..graph import check_supports
from ..ids import order
from ..ingest import OwnedRows
from ..messages import Bundle, Payload, bundle
from ..publish.lambda_columns import BucketResults
from .assignment import ShardAssignment
from .supports import BucketSupports, SortedEdges, check_limits


@dataclass(frozen=True)
class SupportedEdges(Payload):
    """Edges with triangles, sent by a bucket to the group of an endpoint. `len()` is their number."""

    low: NDArray[np.uint32]
    """[edges] rank of the low endpoint; sorted by (low, high)."""

    high: NDArray[np.uint32]
    """[edges] rank of the high endpoint."""

    support: NDArray[np.int32]
    """[edges] triangles of the edge."""

    row: NDArray[np.int32]
    """[owned edges] row in the bucket's BucketEdges of each edge that the group owns."""

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class ShardEdges(SizedArrays):
    """The edges with triangles that have an endpoint in a class of one group, sorted by (low, high), each once."""

    group: int
    groups: int
    cut: Cut

    low: NDArray[np.uint32]
    """[edges] rank of the low endpoint."""

    high: NDArray[np.uint32]
    """[edges] rank of the high endpoint."""

    support: NDArray[np.int32]
    """[edges] triangles of the edge in the whole graph."""

    edges: int
    """Number of edges with triangles in the whole graph."""


AT_ONCE = 2**26
"""About the number of edges that are merged at once."""


class MergedGroupEdges(NamedTuple):
    """Edges sorted by (low, high), of which some are owned."""

    low: NDArray[np.uint32]
    """[edges]"""
    high: NDArray[np.uint32]
    """[edges]"""
    support: NDArray[np.int32]
    """[edges]"""
    bucket: NDArray[np.int16]
    """[owned edges]"""
    row: NDArray[np.int32]
    """[owned edges] as in SupportedEdges."""
    entries: int
    """Number of endpoints in the group."""


def merge_edges(
    parts: Sequence[SupportedEdges], senders: Sequence[int], is_own: Callable[[NDArray[np.uint32]], NDArray[np.bool_]]
) -> MergedGroupEdges:
    """Merge at least one part; `senders` [parts] are their buckets. `is_own` tells which vertices are the group's.

    Takes about 100 bytes for each edge that is merged at once, beside the arguments and the result.
    """
    from ...kernels.gpu.shards.triangles import low_ranges, order_of  # imports CuPy

    edges, owned = sum(map(len, parts)), sum(len(part.row) for part in parts)
    first = parts[0]
    low, high = (np.empty_like(end, shape=(edges,)) for end in (first.low, first.high))
    support = np.empty_like(first.support, shape=(edges,))
    row = np.empty_like(first.row, shape=(owned,))
    bucket = np.empty_like(row, np.int16)
    at = own_at = entries = 0
    taken = [0] * len(parts)  # owned edges of each part so far
    for cuts in low_ranges([part.low for part in parts], AT_ONCE):
        lows, highs, supports = (
            np.concatenate([getattr(part, name)[cut] for part, cut in zip(parts, cuts, strict=True)])
            for name in ("low", "high", "support")
        )
        mine = is_own(highs)
        entries += kernels.total(mine) + kernels.total(is_own(lows))
        rows, of_part, start = [], [], 0
        for p, (part, cut) in enumerate(zip(parts, cuts, strict=True)):
            length = cut.stop - cut.start
            count = kernels.total(mine[start : start + length])
            rows.append(part.row[taken[p] : taken[p] + count])
            of_part.append(np.full_like(bucket, senders[p], shape=(count,)))
            taken[p] += count
            start += length
        by = order_of(lows, highs)
        stop = at + len(by)
        low[at:stop], high[at:stop], support[at:stop] = lows[by], highs[by], supports[by]
        number = np.cumsum(mine, dtype=np.int32) - np.int32(1)  # of each owned edge among those of the range
        kept = number[by][mine[by]]
        row[own_at : own_at + len(kept)] = np.concatenate(rows)[kept]
        bucket[own_at : own_at + len(kept)] = np.concatenate(of_part)[kept]
        at, own_at = stop, own_at + len(kept)
    return MergedGroupEdges(low, high, support, bucket, row, entries)


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
        is_owned = at_high == group
        here = np.flatnonzero(is_owned | (at_low == group))
        parts[group] = SupportedEdges(low[here], high[here], support[here], edges.row[is_owned])
    return bundle(edges.stream.bucket, parts)


def build_group_edges(
    group: int,
    assignment: ShardAssignment,
    edges: int,
    space: MemorySpace,
    row_space: MemorySpace,
    parts: Mapping[int, SupportedEdges],
) -> GroupInput:
    """Build the edges of a group from the edges that each bucket sent.

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
    shard_edges = ShardEdges(group, assignment.groups, assignment.cut, low, high, support, edges)
    rows = move_arrays(OwnedRows(group, bucket, row), row_space)
    size = shard_edges.low.nbytes + shard_edges.high.nbytes + shard_edges.support.nbytes
    sizes = len(shard_edges.low), len(rows), entries, assignment.vertices(group)
    counts = ShardCounts(group, assignment.shards(group), *sizes, size)
    return GroupInput(shard_edges, rows, counts)


@dataclass(frozen=True)
class EdgeIntervals(Payload):
    """λ of edges, sent by their owner to the bucket that publishes them. `len()` is the number of edges."""

    row: NDArray[np.int32]
    """[edges] row of the edge in the bucket's BucketEdges."""

    low: NDArray[np.int32]
    """[edges] lower bound of λ."""

    high: NDArray[np.int32]
    """[edges] upper bound of λ; the same array as `low` if all λ are known, so that it is sent once."""

    def __len__(self) -> int:
        return len(self.row)


def send_intervals(owned: OwnedRows, low: NDArray[np.int32], high: NDArray[np.int32]) -> Bundle[EdgeIntervals]:
    """Group → buckets: send the bounds of λ [owned edges] of the group's edges to the buckets that publish them.

    They are moved to the device of `owned`. If all λ are known, one array is sent. Raises InternalError unless there is
    an interval for each edge.
    """
    if not len(low) == len(high) == len(owned):
        raise InternalError(f"group {owned.partition} owns {len(owned)} edges and has λ of {len(low)}")
    if not len(owned):
        return bundle(owned.partition, {})
    if low is not high and np.array_equal(low, high):
        high = low
    known, low = high is low, place_like(owned.row, low)
    high = low if known else place_like(owned.row, high)
    by_bucket, cuts = order.group(owned.bucket, int(owned.bucket.max()) + 1)
    parts = {}
    for b in np.flatnonzero(np.diff(cuts)).tolist():
        rows = by_bucket[cuts[b] : cuts[b + 1]]
        part_low = low[rows]
        parts[b] = EdgeIntervals(owned.row[rows], part_low, part_low if high is low else high[rows])
    return bundle(owned.partition, parts)


def collect_intervals(supports: BucketSupports, parts: Mapping[int, EdgeIntervals]) -> BucketResults:
    """The results of a bucket's edges, in row order.

    Raises InternalError unless exactly one interval arrived for every edge with triangles, and none for other edges.
    """
    low = np.zeros_like(supports.support)
    high = low if all(part.low is part.high for part in parts.values()) else np.zeros_like(low)
    arrived = np.zeros_like(low, np.bool_)
    for part in parts.values():
        arrived[part.row] = True
        low[part.row] = part.low
        if high is not low:
            high[part.row] = part.high
    came = sum(map(len, parts.values()))
    if came != kernels.total(arrived) or kernels.total(arrived != (supports.support > 0)):
        raise InternalError(
            f"bucket {supports.bucket} has {supports.closed} edges with triangles, but {came} λ arrived, "
            "not one for each"
        )
    return BucketResults(supports.bucket, supports.support, low, high)
