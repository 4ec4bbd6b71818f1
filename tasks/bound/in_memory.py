"""Triangles and λ of a graph that is in the memory of this process, by the steps of a run with one partition.

Uses no files, no ids and no Dask, whose overhead dominates for small graphs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ..device import MemorySpace
from ..graph.subgraph import Subgraph, build_subgraph
from ..graph.triangulate import count_triangles
from ..ids.order import Ints
from ..ingest import EdgeParts, OwnedEdges, collect_owned
from .peel import peel, peel_intervals


def find_triangles(
    low: Ints, high: Ints, vertices: int, support: NDArray[np.int32] | None = None
) -> tuple[OwnedEdges, Subgraph]:
    """Count the triangles of a simple graph whose edges join `low` and `high` [edges], both < `vertices`.

    `Subgraph.support[i]` belongs to the input edge `OwnedEdges.row[i]`. If the `support` [edges] is known nothing is
    counted. Raises OutOfRoom for more than 2^31 - 2 edges, or more triangles of one edge than a run can count.
    """
    degree = np.bincount(low, minlength=vertices) + np.bincount(high, minlength=vertices)
    rank = np.empty(vertices, np.int32)
    rank[np.argsort(degree, kind="stable")] = np.arange(vertices, dtype=np.int32)
    ends = kernels.take(rank, low), kernels.take(rank, high)
    row = np.arange(len(low), dtype=np.int32)
    edges = EdgeParts(np.minimum(*ends), np.maximum(*ends), row)
    owned = collect_owned(MemorySpace.HOST, {0: edges} if len(edges) else {})
    known = count_triangles(owned) if support is None else kernels.take(support, owned.row)
    return owned, build_subgraph(owned, known)


def find_lambda(subgraph: Subgraph) -> NDArray[np.int32]:
    """λ [edges], in the order of `Subgraph.support`."""
    return peel_intervals(subgraph, peel(subgraph)).low
