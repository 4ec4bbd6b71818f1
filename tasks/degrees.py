"""Degree order: vertices ranked by (degree, id) over the whole graph, and every edge written low → high by rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..kernels.held import Held
from . import order
from .messages import Bundle, bundle
from .numbering import BucketEdges, join_answers, split_by_bucket
from .order import Ints


@dataclass(frozen=True)
class Counts(Held):
    """Counts for vertices of another bucket. `len()` counts the vertices."""

    vertices: Ints
    """[vertices] dense numbers, ascending."""

    counts: NDArray[np.int64]
    """[vertices]"""

    def __len__(self) -> int:
        return len(self.vertices)


@dataclass(frozen=True)
class BucketDegrees(Held):
    """The degrees of one bucket's vertices, and who has edges to which of them."""

    bucket: int

    degree: NDArray[np.int64]
    """[vertices] in id order."""

    asked: Mapping[int, NDArray[np.int32]]
    """Bucket → positions, ascending, of those of this bucket's vertices that are larger ends of its edges."""


@dataclass(frozen=True)
class Histogram:
    """How many vertices of one bucket have which degree: all the driver needs to know to rank them."""

    degree: NDArray[np.int64]
    """[distinct degrees] ascending."""

    vertices: NDArray[np.int64]
    """[distinct degrees]"""


@dataclass(frozen=True)
class OrientedEdges(Held):
    """The edges of one bucket in degree order, row by row as in its `BucketEdges`."""

    bucket: int

    low: Ints
    """[edges] rank of the end that comes first in degree order."""

    high: Ints
    """[edges] rank of the other end."""

    swapped: NDArray[np.bool_]
    """[edges] True where the larger id comes first in degree order."""

    def __len__(self) -> int:
        return len(self.low)


def send_degrees(edges: BucketEdges) -> Bundle[Counts]:
    """Bucket → buckets: how many edges of this bucket have each larger end, to the bucket of that end."""
    return send_counts(edges, np.bincount(edges.high, minlength=len(edges.highs)))


def send_counts(edges: BucketEdges, counts: NDArray[np.int64]) -> Bundle[Counts]:
    """Bucket → buckets: a count for each of `edges.highs`, to the bucket of that vertex."""
    cuts = split_by_bucket(edges.highs, edges.starts)
    return bundle(
        edges.bucket,
        {
            b: Counts(edges.highs[cuts[b] : cuts[b + 1]], counts[cuts[b] : cuts[b + 1]])
            for b in range(len(edges.starts) - 1)
        },
    )


def collect_degrees(edges: BucketEdges, parts: Mapping[int, Counts]) -> BucketDegrees:
    """The degree of each vertex of a bucket: its edges to larger ids, and those to smaller ids that came as counts."""
    degree = np.bincount(edges.low, minlength=edges.vertices)
    asked = {}
    for sender, part in parts.items():
        asked[sender] = (part.vertices - edges.first).astype(np.int32)
        degree[asked[sender]] += part.counts
    return BucketDegrees(edges.bucket, degree, asked)


def degree_histogram(degrees: BucketDegrees) -> Histogram:
    """The degree histogram of one bucket, for the driver."""
    return Histogram(*map(kernels.to_host, order.tally(degrees.degree)))


def order_starts(histograms: Sequence[Histogram]) -> list[NDArray[np.int64]]:
    """For each bucket, the rank of its first vertex of each of its degrees, from the histograms in bucket order."""
    degree = np.concatenate([histogram.degree for histogram in histograms])
    vertices = np.concatenate([histogram.vertices for histogram in histograms])
    ascending = np.argsort(degree, kind="stable")  # stable: equal degrees stay in bucket order, which is id order
    starts = np.empty(len(degree), np.int64)
    starts[ascending] = order.offsets(vertices[ascending])[:-1]
    return np.split(starts, np.cumsum([len(histogram.degree) for histogram in histograms])[:-1])


def rank_vertices(degrees: BucketDegrees, starts: NDArray[np.int64], vertices: int) -> Ints:
    """The degree-order rank of each vertex of one bucket, in id order.

    `starts` is this bucket's entry of `order_starts`; `vertices` counts the whole graph, and picks int32 or int64.
    """
    degree = degrees.degree
    ascending = order.order_by(degree, order.largest(degree) + 1)
    _, counts = order.tally(degree)
    first = order.offsets(counts)
    place = np.arange(len(degree), like=degree)
    place += (np.asarray(starts, like=first) - first[:-1])[kernels.row_numbers(first)]
    rank = order.shifted(np.empty_like(place), 0, vertices)
    rank[ascending] = place
    return rank


def answer_ranks(degrees: BucketDegrees, rank: Ints) -> Bundle[Ints]:
    """Bucket → buckets: the ranks of the vertices each bucket has as larger ends."""
    return bundle(degrees.bucket, {asker: rank[asked] for asker, asked in degrees.asked.items()})


def orient(edges: BucketEdges, rank: Ints, answers: Mapping[int, Ints]) -> OrientedEdges:
    """Write every edge of a bucket low → high in degree order; the answers give the ranks of its larger ends."""
    low = rank[edges.low]
    high = join_answers(answers, len(edges.highs), rank[:0])[edges.high]
    return OrientedEdges(edges.bucket, np.minimum(low, high), np.maximum(low, high), low > high)
