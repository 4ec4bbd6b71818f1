"""Degree order: rank the vertices of the graph by (degree, id), and write each edge low → high by rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.runtime.sizes import SizedArrays
from ..ids import order
from ..ids.order import Ints
from ..messages import Bundle, Payload, bundle
from .numbering import BucketEdges, join_answers, split_by_bucket


@dataclass(frozen=True)
class DegreeCounts(Payload):
    """Counts for vertices of another bucket. `len()` is the number of vertices."""

    vertices: Ints
    """[vertices] dense numbers, ascending."""

    counts: NDArray[np.int64]
    """[vertices]"""

    def __len__(self) -> int:
        return len(self.vertices)


@dataclass(frozen=True)
class BucketDegrees(SizedArrays):
    """The degrees of one bucket's vertices, and the buckets that need their ranks."""

    bucket: int

    degree: NDArray[np.int64]
    """[vertices] in id order."""

    asked: Mapping[int, NDArray[np.int32]]
    """Bucket → positions, ascending, of this bucket's vertices that are larger ends of that bucket's edges."""


@dataclass(frozen=True)
class Histogram:
    """The degree histogram of one bucket: all that the driver needs to rank vertices."""

    degree: NDArray[np.int64]
    """[distinct degrees] ascending."""

    vertices: NDArray[np.int64]
    """[distinct degrees] number of vertices with that degree."""


@dataclass(frozen=True)
class OrientedEdges(SizedArrays):
    """The edges of one bucket in degree order, one row for each row of its `BucketEdges`."""

    bucket: int

    low: Ints
    """[edges] rank of the end of lower rank."""

    high: Ints
    """[edges] rank of the other end."""

    swapped: NDArray[np.bool_]
    """[edges] true where the end of larger id has the lower rank."""

    def __len__(self) -> int:
        return len(self.low)


def send_degrees(edges: BucketEdges) -> Bundle[DegreeCounts]:
    """Bucket → buckets: the number of this bucket's edges at each larger end, to the bucket of that end."""
    return send_counts(edges, kernels.bincount(edges.high, len(edges.highs)))


def send_counts(edges: BucketEdges, counts: NDArray[np.int64]) -> Bundle[DegreeCounts]:
    """Bucket → buckets: the `counts` [edges.highs], each to the bucket of its vertex."""
    cuts = split_by_bucket(edges.highs, edges.starts)
    return bundle(
        edges.bucket,
        {
            b: DegreeCounts(edges.highs[cuts[b] : cuts[b + 1]], counts[cuts[b] : cuts[b + 1]])
            for b in range(len(edges.starts) - 1)
        },
    )


def collect_degrees(edges: BucketEdges, parts: Mapping[int, DegreeCounts]) -> BucketDegrees:
    """The degree of each vertex of a bucket: edges to larger ids, plus the received counts of edges to smaller ids."""
    degree = kernels.bincount(edges.low, edges.vertices)
    asked = {}
    for sender, part in parts.items():
        asked[sender] = (part.vertices - edges.first).astype(np.int32)
        degree[asked[sender]] += part.counts
    return BucketDegrees(edges.bucket, degree, asked)


def degree_histogram(degrees: BucketDegrees) -> Histogram:
    """The degree histogram of one bucket, for the driver."""
    return Histogram(*map(kernels.to_host, order.tally(degrees.degree)))


def order_starts(histograms: Sequence[Histogram]) -> list[NDArray[np.int64]]:
    """For each bucket and each of its degrees, the rank of the first vertex; from the histograms in bucket order."""
    degree = np.concatenate([histogram.degree for histogram in histograms])
    vertices = np.concatenate([histogram.vertices for histogram in histograms])
    ascending = np.argsort(degree, kind="stable")  # stable: equal degrees stay in bucket order, which is id order
    starts = np.empty(len(degree), np.int64)
    starts[ascending] = order.offsets(vertices[ascending])[:-1]
    return np.split(starts, np.cumsum([len(histogram.degree) for histogram in histograms])[:-1])


def rank_vertices(degrees: BucketDegrees, starts: NDArray[np.int64], vertices: int) -> Ints:
    """The degree-order rank of each vertex of one bucket, in id order.

    `starts` is this bucket's entry of `order_starts`. `vertices`, the number of vertices of the graph, selects int32 or
    int64.
    """
    degree = degrees.degree
    ascending = order.order_by(degree, order.largest(degree) + 1)
    _, counts = order.tally(degree)
    first = order.offsets(counts)
    ranks = np.arange(len(degree), like=degree)
    ranks += (np.asarray(starts, like=first) - first[:-1])[kernels.row_numbers(first)]
    rank = order.shifted(np.empty_like(ranks), 0, vertices)
    rank[ascending] = ranks
    return rank


def answer_ranks(degrees: BucketDegrees, rank: Ints) -> Bundle[Ints]:
    """Bucket → buckets: the ranks of the vertices that are larger ends of each bucket's edges."""
    return bundle(degrees.bucket, {asker: rank[asked] for asker, asked in degrees.asked.items()})


def orient(edges: BucketEdges, rank: Ints, answers: Mapping[int, Ints]) -> OrientedEdges:
    """Write each edge of a bucket low → high in degree order. The answers have the ranks of its larger ends."""
    low = kernels.take(rank, edges.low)
    high = kernels.take(join_answers(answers, len(edges.highs), rank[:0]), edges.high)
    return OrientedEdges(edges.bucket, np.minimum(low, high), np.maximum(low, high), low > high)
