"""The dense groups that one bucket publishes, and the component of each of its vertices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.runtime.sizes import SizedArrays
from ..ids import order
from ..ingest.numbering import BucketEdges
from .merge import Answer, Components, component_ids
from .subtrees import subtree_sums
from .tree import ROOT, BucketTree


@dataclass(frozen=True)
class BucketGroups(SizedArrays):
    """The dense groups of one bucket."""

    bucket: int
    components: Components
    """Components whose least vertex is in the bucket."""
    innermost: NDArray[np.int64]
    """[vertices] id of the innermost component of each vertex, -1 if there is none."""
    is_member: NDArray[np.bool_]
    """[vertices] whether that component is a DN-graph."""
    id: NDArray[np.int64]
    """[components of the bucket's own edges] id of the component of the graph that each is part of."""
    is_dn_graph: NDArray[np.bool_]
    """[components of the bucket's own edges] whether that component of the graph is a DN-graph."""

    @property
    def dn_graphs(self) -> Components:
        """The rows of `components` that are DN-graphs."""
        return self.components[np.flatnonzero(self.components.is_dn_graph)]


def collect_groups(tree: BucketTree, highest: int, parts: Mapping[int, Answer]) -> BucketGroups:
    """The groups of a bucket, from the components of its own edges and the answer of the one task."""
    is_open = np.flatnonzero(tree.representative >= 0)
    closed = np.flatnonzero(tree.representative < 0)
    ids = component_ids(tree.least, tree.level, highest)
    is_leaf = np.ones(len(ids), np.bool_)
    is_leaf[tree.parent[tree.parent >= 0]] = False
    answer = parts.get(ROOT)
    if answer is not None:
        ids[is_open], is_leaf[is_open] = answer.line_id, answer.line_is_leaf
    parent = np.where(tree.parent >= 0, ids[tree.parent], -1) if len(ids) else ids
    vertices, edges = subtree_sums(tree.parent, tree.vertices), subtree_sums(tree.parent, tree.edges)
    found = Components(ids, tree.level, parent, vertices, edges, is_leaf)[closed]
    is_dn_graph = is_leaf & (tree.level > 0)

    local = kernels.to_host(tree.nested.vertex[: tree.own])
    innermost = np.append(ids, -1)[local]
    is_member = np.append(is_dn_graph, False)[local]
    if answer is not None:
        shared = kernels.to_host(answer.vertex) - tree.first
        innermost[shared] = answer.innermost
        is_member[shared] = answer.is_member
        found = _merged(found, answer.components)
    return BucketGroups(tree.bucket, found[np.argsort(found.id)], innermost, is_member, ids, is_dn_graph)


@dataclass(frozen=True)
class DnEdges(SizedArrays):
    """The edges of one bucket that are in DN-graphs. `len()` counts them."""

    edges: BucketEdges
    ids: NDArray[np.int64]
    """[DN-graphs with edges in the bucket] ids, ascending, on the host."""
    place: NDArray[np.int32]
    """[edges] the position in `ids` of the DN-graph of each edge; it lies where the edges do."""

    def __len__(self) -> int:
        return len(self.edges)


def dn_edges(edges: BucketEdges, tree: BucketTree, groups: BucketGroups) -> DnEdges:
    """The edges of a bucket that are in DN-graphs."""
    component = tree.nested.edge
    rows = np.flatnonzero(np.asarray(groups.is_dn_graph, like=component)[component])
    highs, (high,) = order.encode(edges.highs[edges.high[rows]])
    known = np.flatnonzero(groups.is_dn_graph)
    ids, positions = np.unique(groups.id[known], return_inverse=True)  # several of a bucket may be one in the graph
    table = np.zeros(len(groups.id), np.int32)
    table[known] = positions
    own = BucketEdges(edges.bucket, edges.starts, edges.low[rows], high, highs, 0)
    return DnEdges(own, ids, np.asarray(table, like=component)[component[rows]])


def _merged(first: Components, second: Components) -> Components:
    return Components(
        np.concatenate([first.id, second.id]),
        np.concatenate([first.level, second.level]),
        np.concatenate([first.parent, second.parent]),
        np.concatenate([first.vertices, second.vertices]),
        np.concatenate([first.edges, second.edges]),
        np.concatenate([first.is_leaf, second.is_leaf]),
    )
