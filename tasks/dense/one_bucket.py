"""The dense groups of a graph in one bucket, whose components were found before."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...kernels.cpu.regroup import mark_within
from ...kernels.graph import Nested, Topology
from ..ids import order
from ..ingest.numbering import BucketEdges
from .groups import BucketGroups, DnEdges
from .tree import BucketTree


def tree_of(nested: Nested, edges: NDArray[np.int64], starts: NDArray[np.int64]) -> BucketTree:
    """The tree of the only bucket: no component is shared. `edges` [components] are in no smaller component.

    `nested` may be of few of the bucket's edges, if these have all components. `starts` are those of the bucket.
    """
    vertices = nested.vertex[nested.vertex >= 0]
    return BucketTree(
        bucket=0,
        starts=starts,
        nested=nested,
        dense=np.arange(int(starts[-1])),
        shared=np.zeros(0, np.int32),
        level=nested.level,
        parent=nested.parent,
        least=nested.least.astype(np.int64),
        edges=edges,
        vertices=np.bincount(vertices, minlength=len(nested)).astype(np.int64),
        representative=np.full(len(nested), -1, np.int32),
    )


def dn_edges_among(
    edges: Topology, level: NDArray[np.int32], tree: BucketTree, groups: BucketGroups, wanted: NDArray[np.bool_]
) -> DnEdges:
    """The edges of those DN-graphs of the only bucket for which `wanted` [components] is true.

    `edges` are those of the bucket, `level` [edges] is their λ.
    """
    chosen = np.where(wanted & groups.is_dn_graph, tree.level, -1).astype(np.int32)
    rows = np.flatnonzero(mark_within(edges, level, tree.nested.vertex, chosen))
    low, (highs, (high,)) = edges.low[rows], order.encode(edges.high[rows])
    ids, place = np.unique(groups.id[tree.nested.vertex[low]], return_inverse=True)
    return DnEdges(BucketEdges(0, tree.starts, low, high, highs, 0), ids, place.astype(np.int32))


def triangles_by_id(groups: BucketGroups, triangles: NDArray[np.int64]) -> NDArray[np.int64]:
    """[DN-graphs by id] their entries of `triangles` [components]."""
    graphs = np.flatnonzero(groups.is_dn_graph)
    return triangles[graphs[np.argsort(groups.id[graphs])]]
