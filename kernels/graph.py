"""Value types that kernels take and give, their dtypes and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .held import Held

vertex_t = np.int32
"""A vertex of one partition's subgraph."""
edge_t = np.int32
"""An edge of one partition's subgraph."""
offset_t = np.int64
"""A position in an adjacency array, which is twice as long as there are edges."""
bound_t = np.int32
"""Support, bounds and λ."""

MAX_LOCAL_EDGES = 2**31 - 2
"""Edges that one subgraph may hold; more need more partitions."""

CURRENT = -(2**29)
"""Value of `count` for an edge that falls in the running round."""
GONE = -(2**30)
"""Value of `count` for an edge that fell in an earlier round."""
UNCOUNTED = 2**29
"""First count of a ghost: its owner counts its triangles, so here it never falls by itself."""
MOST_TRIANGLES = 2**28 - 1
"""Triangles of one edge, at most: a ghost that loses as many still has a larger count than any edge that is counted."""
MOST_TRIANGLES_ON_GPU = 2**26 - 1
"""The same on a GPU, where a count that loses as many stays in its range below zero (FALLS in cascade.cuh)."""

IntArray = NDArray[np.int32]
LongArray = NDArray[np.int64]
AnyArray = NDArray[Any]


@dataclass(frozen=True)
class Adjacency(Held):
    """Both directions of a subgraph's edges, by vertex; rows ascend by neighbour.

    Rows lie apart so that a compacted copy keeps the vertex numbers: vertex v's row is
    `begin[v] … begin[v] + length[v]`.
    """

    begin: LongArray
    """[vertices] where each row starts."""
    length: IntArray
    """[vertices] entries in each row."""
    neighbour: IntArray
    """[2 x edges] the vertex at the other end."""
    edge: IntArray
    """[2 x edges] the edge that leads there."""

    @property
    def widest(self) -> int:
        """Entries of the longest row."""
        return int(self.length.max(initial=0))


@dataclass(frozen=True)
class Topology(Held):
    """A subgraph: local vertices in degree order, edges sorted by (low, high), low < high."""

    low: IntArray
    """[edges] the endpoint of lower degree order."""
    high: IntArray
    """[edges] the other endpoint."""
    vertices: int
    """Number of local vertices."""

    @property
    def edges(self) -> int:
        """Number of edges."""
        return len(self.low)


@dataclass(frozen=True)
class Nested(Held):
    """The connected components of {edges of level ≥ k} for all k, each set of edges once, and how they nest.

    A component is of the highest k for which its edges are one. Numbered by level downwards, then by least vertex, so
    that every component comes before the one that holds it.
    """

    vertex: IntArray
    """[vertices] the innermost component that holds the vertex; -1 if it has no edge."""
    edge: IntArray
    """[edges] the innermost component that holds the edge, which is of the edge's level."""
    level: IntArray
    """[components] k."""
    least: IntArray
    """[components] the least vertex."""
    parent: IntArray
    """[components] the next larger component that holds it, -1 for none."""

    def __len__(self) -> int:
        return len(self.level)
