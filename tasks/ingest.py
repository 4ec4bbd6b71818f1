"""From Parquet to the edges each partition owns, in plain functions that a driver chains.

Blocks (runs of row groups) are read apart; buckets (ranges of the id space) number vertices and drop repetitions;
partitions own edges. No place ever holds all edges, and the driver holds counts only. In order, with B buckets:

    every block   read_block
                  sample_ids                 → driver: choose_splitters
    exchange 1    send_ids        blocks  → buckets: number_ids
    every block   without_ids
                  len()                      → driver: bucket_starts
    exchange 2    answer_numbers  buckets → blocks
    exchange 3    send_pairs      blocks  → buckets: merge_pairs
    exchange 4    send_degrees    buckets → buckets: collect_degrees
                  degree_histogram           → driver: order_starts
                  rank_vertices
    exchange 5    answer_ranks    buckets → buckets: orient
    partitioner   HashPartitioner(partitions), or RangePartitioner() for one partition, or:
    exchange 6    partition.range.send_out_degrees   buckets → buckets: collect_out_degrees
                  sum()                      → driver: cut_targets
                  cuts_within                → driver: range_partitioner
    exchange 7    send_owned      buckets → partitions: collect_owned

Each `send_…` and `answer_…` returns one Bundle; each receiver takes its mail as a mapping of sender → payload. What is
kept for publishing: each bucket's BucketIds, BucketEdges and BucketDegrees, and each partition's OwnedRows.
`tests/drive.py` is this list as code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels.graph import MAX_LOCAL_EDGES
from ..kernels.held import Held
from . import order
from .blocks import (
    BlockEdges,
    LocalEdges,
    choose_splitters,
    clean,
    read_block,
    sample_ids,
    sample_interval,
    without_ids,
)
from .degrees import (
    BucketDegrees,
    Counts,
    Histogram,
    OrientedEdges,
    answer_ranks,
    collect_degrees,
    degree_histogram,
    order_starts,
    orient,
    rank_vertices,
    send_degrees,
)
from .errors import OutOfRoom
from .identity import Put
from .messages import Bundle, bundle
from .numbering import (
    BucketEdges,
    BucketIds,
    Pairs,
    answer_numbers,
    bucket_starts,
    merge_pairs,
    number_ids,
    send_ids,
    send_pairs,
    without_questions,
)
from .order import Ints
from .partition import Partitioner

__all__ = [
    "BlockEdges",
    "BucketDegrees",
    "BucketEdges",
    "BucketIds",
    "Counts",
    "EdgeParts",
    "Histogram",
    "LocalEdges",
    "OrientedEdges",
    "OwnedEdges",
    "OwnedRows",
    "Pairs",
    "Put",
    "answer_numbers",
    "answer_ranks",
    "bucket_starts",
    "choose_splitters",
    "clean",
    "collect_degrees",
    "collect_owned",
    "degree_histogram",
    "merge_pairs",
    "number_ids",
    "order_starts",
    "orient",
    "rank_vertices",
    "read_block",
    "rows_to_publish",
    "sample_ids",
    "sample_interval",
    "send_degrees",
    "send_ids",
    "send_owned",
    "send_pairs",
    "without_ids",
    "without_questions",
]


@dataclass(frozen=True)
class EdgeParts(Held):
    """Edges on their way from a bucket to the partition that owns them. `len()` counts them."""

    low: Ints
    """[edges] rank of the low end."""

    high: Ints
    """[edges] rank of the high end."""

    part_high: NDArray[np.int16]
    """[edges] partition of the high end."""

    row: NDArray[np.int32]
    """[edges] row in the bucket's BucketEdges, ascending."""

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class OwnedEdges(Held):
    """The edges one partition owns, as an oriented CSR over the vertices they touch. `len()` counts them."""

    partition: int

    rank: NDArray[np.int64]
    """[vertices] degree-order rank of each local vertex, ascending; the local vertices are all ends of owned edges."""

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
class OwnedRows(Held):
    """Where the edges that one partition owns are published. `len()` counts them."""

    partition: int

    bucket: NDArray[np.int16]
    """[edges] bucket that publishes the edge."""

    row: NDArray[np.int32]
    """[edges] its row in that bucket's BucketEdges."""

    def __len__(self) -> int:
        return len(self.row)


def send_owned(edges: BucketEdges, oriented: OrientedEdges, partitioner: Partitioner) -> Bundle[EdgeParts]:
    """Bucket → partitions: every edge to the partition of its low end in degree order."""
    if partitioner.partitions == 1:
        row = np.arange(len(edges), dtype=np.int32, like=edges.low)
        parts = {0: EdgeParts(oriented.low, oriented.high, np.zeros_like(row, np.int16), row)}
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
    """What of a partition's edges is needed when all λ are known."""
    return OwnedRows(owned.partition, owned.bucket, owned.row)


def collect_owned(partition: int, put: Put, parts: Mapping[int, EdgeParts]) -> OwnedEdges:
    """The owned edges of one partition, from those each bucket sent; `put` as for `read_block`.

    Raises OutOfRoom if it owns more than 2^31 - 2: numbers of more would wrap.
    """
    senders = sorted(parts)
    edges = sum(map(len, parts.values()))
    if edges > MAX_LOCAL_EDGES:
        raise OutOfRoom(
            f"partition {partition} owns {edges:,} edges, over the {MAX_LOCAL_EDGES:,} allowed; "
            "raise partitioning.count"
        )
    if not senders:
        none = put(np.zeros(0, np.int32))
        return OwnedEdges(
            partition,
            none.astype(np.int64),
            none.astype(np.int16),
            put(np.zeros(1, np.int64)),
            none,
            none.astype(np.int16),
            none,
        )
    low, high, part_high, row = (
        np.concatenate([getattr(parts[b], name) for b in senders])
        if len(senders) > 1
        else getattr(parts[senders[0]], name)
        for name in ("low", "high", "part_high", "row")
    )
    ends = order.offsets(np.array([len(parts[b]) for b in senders])).tolist()
    bucket = np.empty_like(low, np.int16)
    for b, start, stop in zip(senders, ends, ends[1:], strict=False):
        bucket[start:stop] = b
    rank, (low, high) = order.encode(low, high)
    part = np.full_like(rank, partition, np.int16)  # right for every low end: that is why the edge came here
    part[high] = part_high
    by_pair = order.order_pairs(low, high, len(rank), len(rank))
    return OwnedEdges(
        partition,
        rank.astype(np.int64),
        part,
        order.offsets(np.bincount(low, minlength=len(rank))),
        high[by_pair],
        bucket[by_pair] if len(senders) > 1 else bucket,
        row[by_pair],
    )
