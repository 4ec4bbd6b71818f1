"""Buckets → the only partition of a graph that one worker holds: all edges, sorted in degree order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import MAX_LOCAL_EDGES
from ...kernels.runtime.device import copy_to_host
from ...kernels.runtime.sizes import SizedArrays
from ..device import MemorySpace, move_arrays
from ..errors import OutOfRoom
from ..ids import order
from ..ids.order import Ints
from ..messages import Bundle, Payload, bundle
from .degrees import OrientedEdges

SORTED_AT_ONCE = 2**28
"""About the number of edges that a GPU sorts at a time."""


@dataclass(frozen=True)
class EdgeParts(Payload):
    """The edges of a bucket. `len()` is the number of edges."""

    low: Ints
    """[edges] rank of the low end."""

    high: Ints
    """[edges] rank of the high end."""

    row: NDArray[np.int32] | None = None
    """[edges] row in the bucket's BucketEdges, ascending; None if these are all of its rows."""

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class OwnedEdges(SizedArrays):
    """All edges of a graph, as an oriented CSR over their vertices. `len()` is the number of edges."""

    rank: NDArray[np.int64]
    """[vertices] degree-order rank of each local vertex: consecutive, ascending."""

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
    """The row in which each edge of the only partition, or of a group of shards, is published. `len()` counts edges."""

    partition: int

    bucket: NDArray[np.int16]
    """[edges] bucket that publishes the edge."""

    row: NDArray[np.int32]
    """[edges] its row in that bucket's BucketEdges."""

    def __len__(self) -> int:
        return len(self.row)


def send_all(oriented: OrientedEdges) -> Bundle[EdgeParts]:
    """Bucket → the only partition: all edges."""
    return bundle(oriented.bucket, {0: EdgeParts(oriented.low, oriented.high)})


def rows_to_publish(owned: OwnedEdges) -> OwnedRows:
    """The bucket and row of each edge of a partition: all that publishing needs of them."""
    return OwnedRows(0, owned.bucket, owned.row)


def owned_to_device(owned: OwnedEdges) -> OwnedEdges:
    """The edges of a partition in GPU memory, without `bucket` and `row`, which only publishing reads."""
    unused = np.zeros(0, np.int16)
    return move_arrays(replace(owned, bucket=unused, row=unused.astype(np.int32)), MemorySpace.DEVICE)


def collect_owned(space: MemorySpace, parts: Mapping[int, EdgeParts], rows_on_host: bool = False) -> OwnedEdges:
    """All edges of a graph, from those that each bucket sent. An empty result is placed in `space`.

    With `rows_on_host`, `bucket` and `row` are in host memory, and all else is on the GPU. Raises OutOfRoom in host
    memory for more than 2^31 - 2 edges, whose numbers would overflow int32.
    """
    senders = sorted(parts)
    if senders and not kernels.on_host(parts[senders[0]].low):
        return collect_in_ranges(parts, rows_on_host)
    edges = sum(map(len, parts.values()))
    if edges > MAX_LOCAL_EDGES:
        raise OutOfRoom(
            f"the graph has {edges:,} edges, over the {MAX_LOCAL_EDGES:,} that one worker can hold; "
            "raise partitioning.count"
        )
    if not senders:
        none = space.place(np.zeros(0, np.int32))
        offsets = space.place(np.zeros(1, np.int64))
        return OwnedEdges(none.astype(np.int64), offsets, none, none.astype(np.int16), none)
    low, high = (_joined([getattr(parts[b], name) for b in senders]) for name in ("low", "high"))
    row = _joined([_rows_of(parts[b]) for b in senders])
    ends = order.offsets(np.array([len(parts[b]) for b in senders])).tolist()
    bucket = np.empty_like(low, np.int16)
    for b, start, stop in zip(senders, ends, ends[1:], strict=False):
        bucket[start:stop] = b
    first = int(low.min())
    vertices = _vertices_from(first, order.largest(high))
    low, high = ((ends - first if first else ends).astype(np.int32, copy=False) for ends in (low, high))
    by_pair = order.order_pairs(low, high, vertices, vertices)
    return OwnedEdges(
        np.arange(first, first + vertices, dtype=np.int64),
        order.offsets(kernels.bincount(low, vertices)),
        kernels.take(high, by_pair),
        kernels.take(bucket, by_pair) if len(senders) > 1 else bucket,
        kernels.take(row, by_pair),
    )


def collect_in_ranges(
    parts: Mapping[int, EdgeParts], rows_on_host: bool = False, at_once: int = SORTED_AT_ONCE
) -> OwnedEdges:
    """As `collect_owned`, for a graph that has edges. Sorts about `at_once` edges at a time.

    These are the edges of a range of low ends. A sort on a GPU takes about 50 bytes an edge; besides it, only the
    result and what the buckets sent are in memory.
    """
    first = min(int(part.low.min()) for part in parts.values())
    vertices = _vertices_from(first, max(order.largest(part.high) for part in parts.values()))
    edges, like = sum(map(len, parts.values())), next(iter(parts.values())).low
    counts = np.zeros(vertices, np.int64, like=like)
    for part in parts.values():
        counts += kernels.bincount(part.low - first if first else part.low, vertices)
    offsets = order.offsets(counts)
    if rows_on_host and not kernels.on_host(like):
        kernels.trim()  # else the array of all edges could get a part of a larger piece of memory, and keep all of it
    high, place = np.empty(edges, np.int32, like=like), None if rows_on_host else like
    row, bucket = np.empty(edges, np.int32, like=place), np.empty(edges, np.int16, like=place)
    shares = np.asarray(np.arange(at_once, edges, at_once), like=offsets)
    cuts = np.concatenate([[0], kernels.to_host(np.searchsorted(offsets, shares)), [vertices]])
    ends = kernels.to_host(offsets[np.asarray(cuts, like=offsets)])
    for (start, stop), (begin, end) in zip(pairwise((cuts + first).tolist()), pairwise(ends.tolist()), strict=True):
        if begin < end:
            own = slice(begin, end)
            high[own], rows, buckets = _sorted_range(parts, first, start, stop, end - begin == edges)
            if rows_on_host:
                copy_to_host(rows, row[own])
                copy_to_host(buckets, bucket[own])
            else:
                row[own], bucket[own] = rows, buckets
    rank = np.arange(first, first + vertices, dtype=np.int64, like=like)
    return OwnedEdges(rank, offsets, high, bucket, row)


def _sorted_range(
    parts: Mapping[int, EdgeParts], first: int, start: int, stop: int, is_whole: bool
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int16]]:
    """The higher ends, rows and buckets of the edges whose low ends have ranks from `start` to `stop`, sorted.

    `first` is the lowest rank of all edges. The ranks of low ends are counted from `start`, those of higher ends from
    `first`. `is_whole` tells whether these are all edges.
    """
    lows, highs, rows, buckets = [], [], [], []
    for b in sorted(parts):
        part = parts[b]
        low, high = part.low, part.high
        if is_whole:
            row = _rows_of(part)
        else:
            here = np.flatnonzero((low >= start) & (low < stop))
            low, high = low[here], high[here]
            row = here.astype(np.int32) if part.row is None else part.row[here]
        lows.append(low - start if start else low)
        highs.append(high - first if first else high)
        rows.append(row)
        buckets.append(np.full_like(row, b, np.int16))
    low, high = (_joined(ends).astype(np.int32, copy=False) for ends in (lows, highs))
    by = order.order_pairs(low, high, stop - start, order.largest(high) + 1)
    bucket = kernels.take(_joined(buckets), by) if len(parts) > 1 else buckets[0]
    return kernels.take(high, by), kernels.take(_joined(rows), by), bucket


def _vertices_from(first: int, last: int) -> int:
    """The number of vertices with edges, whose ranks are `first` to `last`.

    All edges of the graph are given, and vertices without edges have the lowest ranks, so every rank between occurs.
    Raises OutOfRoom if int32 cannot number them.
    """
    order.check_codes(last - first + 1)
    return last - first + 1


def _rows_of(part: EdgeParts) -> NDArray[np.int32]:
    return np.arange(len(part), dtype=np.int32, like=part.low) if part.row is None else part.row


def _joined(columns: Sequence[NDArray[Any]]) -> Any:
    return kernels.join(columns) if len(columns) > 1 else columns[0]
