"""The columns of λ: the support of each edge, and the interval that contains its λ.

Both ends of the interval are the same array where all λ are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.runtime.device import synchronize
from ...kernels.runtime.sizes import SizedArrays
from ..errors import InternalError
from ..ids import identity
from ..ids.identity import Ids
from ..ingest import OwnedRows
from ..ingest.degrees import BucketDegrees
from ..ingest.numbering import BucketEdges, BucketIds
from ..inputs.sources import Measure
from ..messages import Bundle
from .columns import (
    Columns,
    EdgeColumn,
    EdgeValues,
    VertexValues,
    collect_columns,
    collect_reduced,
    histogram,
    send_columns,
    send_reduced,
)
from .result_columns import BUTTERFLIES, VERTICES, edge_columns
from .tables import EdgeEnds, TableColumn, value_column

COLUMNS = (EdgeColumn("support", "sum"), EdgeColumn("low", "max"), EdgeColumn("high", "max"))


@dataclass(frozen=True)
class BucketResults(SizedArrays):
    """Support and λ of one bucket's edges, in the order of its BucketEdges. `len()` counts edges."""

    bucket: int
    support: NDArray[np.int32]
    """[edges] triangles of the edge."""
    low: NDArray[np.int32]
    """[edges] λ is at least this."""
    high: NDArray[np.int32]
    """[edges] λ is at most this; the same array as `low` if all λ are known."""

    def __len__(self) -> int:
        return len(self.support)

    @property
    def columns(self) -> Columns:
        """The arrays by name."""
        return {"support": self.support, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class BucketVertices(SizedArrays):
    """The results of one bucket's vertices, in id order. `len()` counts vertices."""

    bucket: int
    degree: NDArray[np.int64]
    triangles: NDArray[np.int64]
    """[vertices] triangles that the vertex is in: half the sum of its edges' supports."""
    low: NDArray[np.int32]
    """[vertices] maximum over the vertex's edges, 0 without edges."""
    high: NDArray[np.int32]
    """[vertices] maximum over the vertex's edges, 0 without edges."""

    def __len__(self) -> int:
        return len(self.degree)


@dataclass(frozen=True)
class BucketSummary:
    """What one bucket adds to the manifest."""

    edges: int
    vertices: int
    support: int
    """Sum over the edges; over all buckets it is three times the number of triangles."""
    low: NDArray[np.int64]
    """[distinct values, 2] ascending (lower end of λ, edges that have it)."""
    high: NDArray[np.int64]
    """[distinct values, 2] ascending (upper end of λ, edges that have it); equal to `low` if the run has converged."""
    vertex_low: NDArray[np.int64]
    """[distinct values, 2] ascending (highest lower end of λ of a vertex's edges, vertices that have it)."""
    vertex_high: NDArray[np.int64]
    """The same for upper ends."""


def send_results(
    owned: OwnedRows, support: NDArray[np.int32], low: NDArray[np.int32], high: NDArray[np.int32]
) -> Bundle[EdgeValues]:
    """Partition → buckets: the results of owned edges (each [owned edges]).

    Pass one array as `low` and `high` if all λ are known: it is sent once.
    """
    return send_columns(owned, {"support": support, "low": low, "high": high})


def collect_results(edges: BucketEdges, parts: Mapping[int, EdgeValues]) -> BucketResults:
    """The results of a bucket's edges in row order. Raises InternalError unless each row arrives exactly once.

    The kernels that write them have ended, as `finish_edges` requires.
    """
    return BucketResults(edges.bucket, **collect_columns(edges, COLUMNS, parts))


def send_sums(edges: BucketEdges, results: BucketResults) -> Bundle[VertexValues]:
    """Bucket → buckets: the values of the bucket's edges, reduced at their larger ends."""
    return send_reduced(edges, COLUMNS, results.columns)


def collect_vertices(
    edges: BucketEdges, degrees: BucketDegrees, results: BucketResults, parts: Mapping[int, VertexValues]
) -> BucketVertices:
    """The results of a bucket's vertices. Raises InternalError if the supports of a vertex add up to an odd number."""
    reduced = collect_reduced(edges, COLUMNS, results.columns, parts)
    support = reduced["support"]
    if kernels.total((support & 1) > 0):
        raise InternalError(f"bucket {edges.bucket} has a vertex whose supports add up to an odd number")
    return BucketVertices(edges.bucket, degrees.degree, support >> 1, reduced["low"], reduced["high"])


def summarise(results: BucketResults, vertices: BucketVertices) -> BucketSummary:
    """What one bucket adds to the manifest."""
    support, low = kernels.total(results.support), histogram(results.low)
    high = low if results.high is results.low else histogram(results.high)
    return BucketSummary(len(results), len(vertices), support, low, high, *vertex_histograms(vertices))


def vertex_histograms(vertices: BucketVertices) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """`BucketSummary.vertex_low` and `vertex_high` of the vertices with edges."""
    there = vertices.degree > 0
    low = histogram(vertices.low[there])
    return low, low if vertices.high is vertices.low else histogram(vertices.high[there])


def edge_values(results: BucketResults, converged: bool) -> list[TableColumn]:
    """The value columns of the table of edges."""
    columns = edge_columns(converged)
    return [value_column(columns, own.name, own.value(results)) for own in columns]


def vertex_columns(
    vertices: BucketVertices, component: NDArray[np.int64] | None, converged: bool, measure: Measure = "triangles"
) -> list[TableColumn]:
    """The value columns of the table of vertices: degree, triangles, λ, and the innermost component if it is known.
    `measure` is what λ counts, and the name of the column of triangles or butterflies.

    `component` [vertices] is its id, -1 if there is none.
    """
    exact, interval = [("lambda", vertices.low)], [("lambda_low", vertices.low), ("lambda_high", vertices.high)]
    bounds = exact if converged else interval
    columns = [
        value_column(VERTICES, "degree", vertices.degree),
        value_column((*VERTICES, BUTTERFLIES), measure, vertices.triangles),
        *(value_column(VERTICES, name, ends) for name, ends in bounds),
    ]
    if component is not None:
        columns.append(value_column(VERTICES, "component", component, missing=-1))
    return columns


def known_ends(edges: BucketEdges, ids: BucketIds, names: Ids) -> EdgeEnds:
    """The ends of a bucket's edges, with ids in host memory. `names` are the ids of larger ends."""
    ends = EdgeEnds(edges.low, edges.high, identity.to_host(ids.ids), identity.to_host(names))
    if not kernels.on_host(edges.low):
        synchronize()
    return ends
