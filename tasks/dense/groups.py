"""What one bucket publishes: the components and DN-graphs whose least vertex is its own, and where its vertices are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.held import Held
from .. import order
from ..numbering import BucketEdges
from .merge import Answer, Components, component_ids
from .tree import ROOT, BucketTree


@dataclass(frozen=True)
class BucketGroups(Held):
    """The dense groups of one bucket."""

    bucket: int
    components: Components
    home: NDArray[np.int64]
    """[vertices] id of each vertex's innermost component, -1 for none."""
    is_member: NDArray[np.bool_]
    """[vertices] whether that is a DN-graph."""
    id: NDArray[np.int64]
    """[components of the bucket's edges alone] id of the component of the graph that each is part of."""
    is_dn_graph: NDArray[np.bool_]
    """[components of the bucket's edges alone] whether that is a DN-graph."""

    @property
    def dn_graphs(self) -> Components:
        """Those of the components that are DN-graphs."""
        return self.components[np.flatnonzero(self.components.is_dn_graph)]


def collect_groups(tree: BucketTree, highest: int, parts: Mapping[int, Answer]) -> BucketGroups:
    """The groups of a bucket, from its own components and what the one task answered."""
    opened = np.flatnonzero(tree.speaker >= 0)
    known = np.flatnonzero(tree.speaker < 0)
    ids = component_ids(tree.least, tree.level, highest)
    is_leaf = np.ones(len(ids), np.bool_)
    is_leaf[tree.parent[tree.parent >= 0]] = False
    answer = parts.get(ROOT)
    if answer is not None:
        ids[opened], is_leaf[opened] = answer.line_id, answer.line_is_leaf
    parent = np.where(tree.parent >= 0, ids[tree.parent], -1) if len(ids) else ids
    vertices, edges = kernels.add_up(tree.parent, tree.vertices), kernels.add_up(tree.parent, tree.edges)
    found = Components(ids, tree.level, parent, vertices, edges, is_leaf)[known]
    is_dn_graph = is_leaf & (tree.level > 0)

    local = kernels.to_host(tree.nested.vertex[: tree.own])
    home = np.append(ids, -1)[local]
    is_member = np.append(is_dn_graph, False)[local]
    if answer is not None:
        shared = kernels.to_host(answer.vertex) - tree.first
        home[shared] = answer.home
        is_member[shared] = answer.is_member
        found = _merged(found, answer.components)
    return BucketGroups(tree.bucket, found[np.argsort(found.id)], home, is_member, ids, is_dn_graph)


def dn_edges(edges: BucketEdges, tree: BucketTree, groups: BucketGroups) -> tuple[BucketEdges, NDArray[np.int32]]:
    """The bucket's edges that are in DN-graphs, and for each the position in `groups.id` of its DN-graph."""
    of_edge = tree.nested.edge
    rows = np.flatnonzero(np.asarray(groups.is_dn_graph, like=of_edge)[of_edge])
    highs, (high,) = order.encode(edges.highs[edges.high[rows]])
    return BucketEdges(edges.bucket, edges.starts, edges.low[rows], high, highs, 0), of_edge[rows]


def _merged(first: Components, second: Components) -> Components:
    return Components(
        np.concatenate([first.id, second.id]),
        np.concatenate([first.level, second.level]),
        np.concatenate([first.parent, second.parent]),
        np.concatenate([first.vertices, second.vertices]),
        np.concatenate([first.edges, second.edges]),
        np.concatenate([first.is_leaf, second.is_leaf]),
    )
