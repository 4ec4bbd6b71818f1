"""From what partitions found about owned edges to rows in original ids, bucket by bucket. In order:

    exchange 1   send_results   partitions → buckets: collect_results
    exchange 2   send_sums      buckets → buckets: collect_vertices
    exchange 3   answer_names   buckets → buckets: join_names     (needs no results; may go together with exchange 2)
    every bucket                writing.write_edges, writing.write_vertices, summarise

λ of an edge is an interval here: low = high where the run has converged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..kernels.held import Held
from . import identity, order
from .degrees import BucketDegrees
from .errors import InternalError
from .identity import Ids
from .ingest import OwnedRows
from .messages import Bundle, bundle
from .numbering import BucketEdges, BucketIds, split_by_bucket
from .order import Ints


@dataclass(frozen=True)
class EdgeResults(Held):
    """Results on their way from a partition to the bucket that publishes the edges. `len()` counts them."""

    row: NDArray[np.int32]
    """[edges] row in the bucket's BucketEdges."""

    support: NDArray[np.int32]
    """[edges] triangles of the edge."""

    low: NDArray[np.int32]
    """[edges] λ is at least this."""

    high: NDArray[np.int32]
    """[edges] λ is at most this; the same array as `low` where all λ are known, which saves its transport."""

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class BucketResults(Held):
    """The results of one bucket's edges, row by row as in its BucketEdges."""

    bucket: int

    support: NDArray[np.int32]
    low: NDArray[np.int32]
    high: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.support)


@dataclass(frozen=True)
class VertexSums(Held):
    """What one bucket's edges add to vertices of another. `len()` counts the vertices."""

    vertices: Ints
    """[vertices] dense numbers, ascending."""

    support: NDArray[np.int64]
    """[vertices] sum over the edges."""

    low: NDArray[np.int32]
    """[vertices] maximum over the edges."""

    high: NDArray[np.int32]
    """[vertices] maximum over the edges."""

    def __len__(self) -> int:
        return len(self.vertices)


@dataclass(frozen=True)
class BucketVertices(Held):
    """The results of one bucket's vertices, in id order."""

    bucket: int

    degree: NDArray[np.int64]

    triangles: NDArray[np.int64]
    """[vertices] triangles the vertex is in: half the sum of its edges' supports."""

    low: NDArray[np.int32]
    """[vertices] maximum over the vertex's edges, 0 for none."""

    high: NDArray[np.int32]
    """[vertices] maximum over the vertex's edges, 0 for none."""

    def __len__(self) -> int:
        return len(self.degree)


@dataclass(frozen=True)
class BucketSummary:
    """What one bucket adds to the manifest."""

    edges: int
    vertices: int

    support: int
    """Sum over the edges; over all buckets three times the triangles."""

    low: NDArray[np.int64]
    """[distinct values, 2] ascending (lower end of λ, edges that have it)."""

    high: NDArray[np.int64]
    """[distinct values, 2] ascending (upper end of λ, edges that have it); equal to `low` if the run has converged."""


def send_results(
    owned: OwnedRows, support: NDArray[np.int32], low: NDArray[np.int32], high: NDArray[np.int32]
) -> Bundle[EdgeResults]:
    """Partition → buckets: the results of owned edges (each [owned edges]) to the bucket that publishes them.

    Pass one array as `low` and `high` where all λ are known: less is sent and less is done.
    """
    if not len(owned):
        return bundle(owned.partition, {})
    last = int(owned.bucket.max())
    if owned.bucket.min() == last:
        return bundle(owned.partition, {last: EdgeResults(owned.row, support, low, high)})
    by_bucket, cuts = order.group(owned.bucket, last + 1)
    parts = {}
    for b in np.flatnonzero(np.diff(cuts)).tolist():
        rows = by_bucket[cuts[b] : cuts[b + 1]]
        part_low = low[rows]
        parts[b] = EdgeResults(owned.row[rows], support[rows], part_low, part_low if high is low else high[rows])
    return bundle(owned.partition, parts)


def collect_results(edges: BucketEdges, parts: Mapping[int, EdgeResults]) -> BucketResults:
    """Put the results of a bucket's edges in row order. Raises InternalError unless every row came exactly once."""
    support, low = np.empty_like(edges.low), np.empty_like(edges.low)
    arrived = np.zeros_like(low, np.bool_)
    settled = all(part.low is part.high for part in parts.values())
    high = low if settled else np.empty_like(low)
    for part in parts.values():
        row = kernels.positions(part.row)
        arrived[row] = True
        support[row], low[row] = part.support, part.low
        if not settled:
            high[row] = part.high
    came = sum(map(len, parts.values()))
    if came != len(edges) or not arrived.all():
        raise InternalError(
            f"bucket {edges.bucket} has {len(edges)} edges, and results of {came} came, not one for each"
        )
    return BucketResults(edges.bucket, support, low, high)


def send_sums(edges: BucketEdges, results: BucketResults) -> Bundle[VertexSums]:
    """Bucket → buckets: what this bucket's edges add to their larger ends, to the bucket of that end."""
    support, low, high = _sums(edges.high, len(edges.highs), results)
    cuts = split_by_bucket(edges.highs, edges.starts)
    parts = {}
    for b in range(len(edges.starts) - 1):
        own = slice(cuts[b], cuts[b + 1])
        part_low = low[own]
        parts[b] = VertexSums(edges.highs[own], support[own], part_low, part_low if high is low else high[own])
    return bundle(edges.bucket, parts)


def collect_vertices(
    edges: BucketEdges, degrees: BucketDegrees, results: BucketResults, parts: Mapping[int, VertexSums]
) -> BucketVertices:
    """The results of a bucket's vertices: from their edges to larger ids, and the sums over those to smaller ids."""
    support, low, high = _sums(edges.low, edges.vertices, results)
    if high is low and any(part.high is not part.low for part in parts.values()):
        high = low.copy()
    for part in parts.values():
        own = part.vertices - edges.first
        support[own] += part.support
        low[own] = np.maximum(low[own], part.low)
        if high is not low:
            high[own] = np.maximum(high[own], part.high)
    if (support & 1).any():
        raise InternalError(f"bucket {edges.bucket} has a vertex whose supports add up to an odd number")
    return BucketVertices(edges.bucket, degrees.degree, support >> 1, low, high)


def answer_names(ids: BucketIds, degrees: BucketDegrees) -> Bundle[Ids]:
    """Bucket → buckets: the original ids of the vertices each bucket has as larger ends."""
    return bundle(ids.bucket, {asker: identity.take(ids.ids, asked) for asker, asked in degrees.asked.items()})


def join_names(edges: BucketEdges, kind: identity.Kind, answers: Mapping[int, Ids]) -> Ids:
    """The original ids of `edges.highs`, from the answers of all buckets."""
    none = edges.highs[:0].astype(np.int64) if kind == "integer" else identity.no_ids(kind)
    names = identity.concatenate([answers[b] for b in sorted(answers)] or [none])
    if len(names) != len(edges.highs):
        raise InternalError(f"bucket {edges.bucket} asked for {len(edges.highs)} ids and got {len(names)}")
    return names


def summarise(results: BucketResults, vertices: BucketVertices) -> BucketSummary:
    """What one bucket adds to the manifest."""
    return BucketSummary(
        len(results),
        len(vertices),
        int(results.support.sum(dtype=np.int64)),
        _histogram(results.low),
        _histogram(results.high),
    )


def merge_histograms(histograms: list[NDArray[np.int64]]) -> list[tuple[int, int]]:
    """One histogram (value, edges), ascending, out of those of all buckets."""
    total: dict[int, int] = {}
    for value, edges in np.concatenate([np.zeros((0, 2), np.int64), *histograms]).tolist():
        total[value] = total.get(value, 0) + edges
    return sorted(total.items())


def _histogram(values: NDArray[np.int32]) -> NDArray[np.int64]:
    return np.stack([kernels.to_host(part) for part in order.tally(values)], axis=1).astype(np.int64)


def _sums(
    end: NDArray[np.int32], ends: int, results: BucketResults
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Support summed and λ's maximum over the edges at each of `ends` vertices."""
    end = kernels.positions(end)
    support, low = kernels.sums_at(end, results.support, ends), kernels.maxima_at(end, results.low, ends)
    return support, low, low if results.high is results.low else kernels.maxima_at(end, results.high, ends)
