"""Triangles and λ of a graph that is in the memory of one process already, by the steps of a run of one partition.

There are no files, no ids and no Dask: for graphs so small that what surrounds these steps would take longer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .bound.peel import peel, peel_intervals
from .ingest import EdgeParts, OwnedEdges, collect_owned
from .order import Ints
from .subgraph import Subgraph, build_subgraph
from .triangulate import count_triangles

__all__ = ["find_lambda", "find_triangles"]


def find_triangles(low: Ints, high: Ints, vertices: int) -> tuple[OwnedEdges, Subgraph]:
    """The subgraph of all edges.

    Edges join `low` and `high` [edges], both < `vertices`. None is a loop, and none is there twice. In `Subgraph` the
    `support` [edges] of each edge is at the place where `OwnedEdges.row` has its number. Raises OutOfRoom for more than
    2^31 - 2 edges, or more triangles of one edge than a run takes.
    """
    degree = np.bincount(np.concatenate([low, high]), minlength=vertices)
    rank = np.empty(vertices, np.int64)
    rank[np.argsort(degree, kind="stable")] = np.arange(vertices)
    ends = rank[low], rank[high]
    row = np.arange(len(low), dtype=np.int32)
    edges = EdgeParts(np.minimum(*ends), np.maximum(*ends), np.zeros(len(low), np.int16), row)
    owned = collect_owned(0, np.asarray, {0: edges} if len(edges) else {})
    return owned, build_subgraph(owned, count_triangles(owned, {}), 1, {})


def find_lambda(subgraph: Subgraph) -> NDArray[np.int32]:
    """λ [edges], at the places where `Subgraph.support` has the supports."""
    return peel_intervals(subgraph, peel(subgraph)).low
