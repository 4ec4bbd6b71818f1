"""The values of vertices, and totals, after a change of few edges, from the values before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.cpu.regroup import highest_at
from ...kernels.graph import Topology
from ...kernels.runtime.sizes import SizedArrays
from ..errors import InternalError
from .lambda_columns import BucketSummary, BucketVertices, vertex_histograms


@dataclass(frozen=True)
class EdgePart(SizedArrays):
    """Some edges of a graph, with their values."""

    edges: Topology
    support: NDArray[np.int32]
    """[edges]"""
    lam: NDArray[np.int32]
    """[edges] λ."""

    def at_ends(self, values: NDArray[np.int32] | None, vertices: int) -> NDArray[np.int64]:
        """The sum of `values` [edges] over the edges of each vertex, int64 [vertices]; the number of its edges without
        values.
        """
        low, high = (
            kernels.bincount(end, vertices) if values is None else kernels.scatter_sum(end, values, vertices)
            for end in (self.edges.low, self.edges.high)
        )
        low += high
        return low

    def most_at_ends(self, vertices: int) -> NDArray[np.int32]:
        """The largest λ of the edges of each vertex, int32 [vertices]; 0 without edges."""
        low, high = (kernels.scatter_max(end, self.lam, vertices) for end in (self.edges.low, self.edges.high))
        return np.maximum(low, high)


def changed_vertices(
    before: BucketVertices, gone: EdgePart, come: EdgePart, after: Topology, lam: NDArray[np.int32]
) -> BucketVertices:
    """The values of vertices after the edges `gone` are replaced by `come`. An edge whose values differ is in both.

    `after` are all edges after the change, and `lam` [edges] their λ. All arguments have one numbering of vertices; a
    new vertex has zeros in `before`. Raises InternalError if the supports of a vertex change by an odd number.
    """
    count = len(before)
    degree = before.degree + come.at_ends(None, count) - gone.at_ends(None, count)
    supports = come.at_ends(come.support, count) - gone.at_ends(gone.support, count)
    if (supports & 1).any():
        raise InternalError("an update has a vertex whose supports change by an odd number")
    of_come = come.most_at_ends(count)
    may_fall = np.zeros(count, np.bool_)
    for end in (gone.edges.low, gone.edges.high):
        may_fall[end[gone.lam == before.low[end]]] = True
    may_fall &= of_come < before.low  # otherwise `come` has an edge of at least this λ
    most = np.maximum(np.where(may_fall, 0, before.low), of_come)
    these = np.flatnonzero(may_fall).astype(np.int32)
    if len(these):
        most[these] = np.maximum(most[these], highest_at(after, lam, these))
    return BucketVertices(before.bucket, degree, before.triangles + supports // 2, most, most)


def changed_summary(
    support: int, low: NDArray[np.int64], gone: EdgePart, come: EdgePart, edges: int, vertices: BucketVertices
) -> BucketSummary:
    """The summary of a bucket after a change, which has `edges` edges and these `vertices`, from the summary before it.

    `support` and `low` are fields of the summary before; `gone` and `come` are as in `changed_vertices`.
    """
    support += int(come.support.sum(dtype=np.int64)) - int(gone.support.sum(dtype=np.int64))
    highest = max(int(part.max(initial=0)) for part in (low[:, 0], come.lam))
    counts = np.bincount(come.lam, minlength=highest + 1) - np.bincount(gone.lam, minlength=highest + 1)
    counts[low[:, 0]] += low[:, 1]
    values = np.flatnonzero(counts)
    histogram = np.stack([values, counts[values]], axis=1).astype(np.int64)
    return BucketSummary(edges, len(vertices), support, histogram, histogram, *vertex_histograms(vertices))
