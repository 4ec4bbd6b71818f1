"""The dense groups that one bucket publishes, the component of each of its vertices, and the triangles of DN-graphs.

If two edges of a triangle belong to DN-graphs, they belong to the same DN-graph. So the triangles inside DN-graphs are
counted among the edges of DN-graphs alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import Nested, Topology
from ...kernels.runtime.sizes import SizedArrays
from ..errors import InternalError
from ..ids import order
from ..ids.order import Ints
from ..ingest.numbering import BucketEdges
from ..messages import Bundle, Payload, bundle
from .merge import Answer, HierarchyRows, component_ids
from .tree import ROOT, BucketTree, subtree_sums


@dataclass(frozen=True)
class BucketGroups(SizedArrays):
    """The dense groups of one bucket."""

    bucket: int
    components: HierarchyRows
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
    def dn_graphs(self) -> HierarchyRows:
        """The rows of `components` that are DN-graphs."""
        return self.components[np.flatnonzero(self.components.is_dn_graph)]

    @property
    def listed(self) -> HierarchyRows:
        """The groups that get tracks, as those of a program that are listed."""
        return self.dn_graphs


def collect_groups(tree: BucketTree, highest: int, parts: Mapping[int, Answer]) -> BucketGroups:
    """The groups of a bucket, from the components of its own edges and the answer of the task that merges outlines."""
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
    found = HierarchyRows(ids, tree.level, parent, vertices, edges, is_leaf)[closed]
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
    """[edges] the position in `ids` of the DN-graph of each edge; on the device of the edges."""

    def __len__(self) -> int:
        return len(self.edges)


def dn_edges(edges: BucketEdges, tree: BucketTree, groups: BucketGroups) -> DnEdges:
    """The edges of a bucket that are in DN-graphs."""
    component = tree.nested.edge
    rows = np.flatnonzero(np.asarray(groups.is_dn_graph, like=component)[component])
    highs, (high,) = order.encode(edges.highs[edges.high[rows]])
    known = np.flatnonzero(groups.is_dn_graph)
    ids, positions = np.unique(groups.id[known], return_inverse=True)  # several may be one in the graph
    table = np.zeros(len(groups.id), np.int32)
    table[known] = positions
    own = BucketEdges(edges.bucket, edges.starts, edges.low[rows], high, highs, 0)
    return DnEdges(own, ids, np.asarray(table, like=component)[component[rows]])


def _merged(first: HierarchyRows, second: HierarchyRows) -> HierarchyRows:
    return HierarchyRows(
        np.concatenate([first.id, second.id]),
        np.concatenate([first.level, second.level]),
        np.concatenate([first.parent, second.parent]),
        np.concatenate([first.vertices, second.vertices]),
        np.concatenate([first.edges, second.edges]),
        np.concatenate([first.is_leaf, second.is_leaf]),
    )


COUNTER = 0
"""Number of the task that counts triangles, if a single task counts them."""


@dataclass(frozen=True)
class DnEdgeEnds(Payload):
    """Edges of DN-graphs on their way to the task that counts their triangles. `len()` counts them."""

    low: Ints
    """[edges] dense number of the smaller end."""
    high: Ints
    """[edges] dense number of the larger end; sorted by (low, high)."""
    ids: NDArray[np.int64]
    """[DN-graphs] as in DnEdges."""
    place: NDArray[np.int32]
    """[edges] as in DnEdges."""

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class SupportSums(SizedArrays):
    """Sums of supports on their way to the bucket that publishes the DN-graph. `len()` counts DN-graphs."""

    id: NDArray[np.int64]
    """[DN-graphs] ascending."""
    support: NDArray[np.int64]
    """[DN-graphs] sum over edges."""
    left: NDArray[np.int64] | None = None
    """[DN-graphs] vertices of the first side; None unless the graph has two."""

    def __len__(self) -> int:
        return len(self.id)


def send_dn_edges(kept: DnEdges) -> Bundle[DnEdgeEnds]:
    """Bucket → one task: the edges of its DN-graphs."""
    edges = kept.edges
    low = order.shifted(edges.low, edges.first, edges.all_vertices)
    ends = DnEdgeEnds(low, edges.highs[edges.high], kept.ids, kept.place)
    return bundle(edges.bucket, {COUNTER: ends})


def merge_dn_edges(parts: Mapping[int, DnEdgeEnds]) -> tuple[NDArray[np.int64], NDArray[np.int32], BucketEdges]:
    """The edges of all DN-graphs as one bucket, whose vertices are the ends of these edges. There is at least one part.

    Returns the ids of the DN-graphs, ascending, for each edge the position of its DN-graph in the ids, and the edges.
    """
    own = [parts[sender] for sender in sorted(parts)]
    ids, positions = np.unique(np.concatenate([part.ids for part in own]), return_inverse=True)
    ends = np.cumsum([len(part.ids) for part in own])[:-1]
    tables = np.split(positions.astype(np.int32), ends)
    place = [np.asarray(table, like=part.place)[part.place] for table, part in zip(tables, own, strict=True)]
    low, high = (np.concatenate([getattr(part, name) for part in own]) for name in ("low", "high"))
    vertex, (low, high) = order.encode(low, high)
    highs, (high,) = order.encode(high)
    starts = np.array([0, len(vertex)], np.int64)
    return ids, np.concatenate(place), BucketEdges(0, starts, low, high, highs, 0)


def send_sums(
    sender: int,
    starts: NDArray[np.int64],
    highest: int,
    ids: NDArray[np.int64],
    place: NDArray[np.int32],
    support: NDArray[np.int32],
    left: NDArray[np.int64] | None = None,
) -> Bundle[SupportSums]:
    """Sender → buckets: the sum of `support` [edges] of each DN-graph, to the bucket that publishes it.

    `ids` [DN-graphs] ascend, `place` [edges] are positions in them, `starts` [buckets + 1] are the first dense numbers
    of the buckets, `highest` is the largest λ. `left` [DN-graphs] is as in SupportSums.
    """
    total = kernels.to_host(kernels.scatter_sum(place, support, len(ids)))
    cuts = np.searchsorted(ids, component_ids(starts, np.zeros(1, np.int32), highest))
    runs = (slice(cuts[b], cuts[b + 1]) for b in range(len(starts) - 1))
    parts = {b: SupportSums(ids[run], total[run], None if left is None else left[run]) for b, run in enumerate(runs)}
    return bundle(sender, parts)


def collect_triangles(groups: BucketGroups, parts: Mapping[int, SupportSums]) -> NDArray[np.int64]:
    """[DN-graphs of the bucket] triangles inside each.

    Raises InternalError if the supports of a DN-graph do not add up to a multiple of three.
    """
    total = _total(groups, parts)
    if (total % 3).any():
        raise InternalError(f"bucket {groups.bucket} has a DN-graph whose supports are no multiple of three")
    return total // 3


def collect_butterflies(groups: BucketGroups, parts: Mapping[int, SupportSums]) -> NDArray[np.int64]:
    """[2, DN-graphs of the bucket] butterflies inside each, and its vertices of the first side.

    Raises InternalError if the supports of a DN-graph do not add up to a multiple of four.
    """
    total, left = _total(groups, parts), np.zeros(len(groups.dn_graphs), np.int64)
    if (total % 4).any():
        raise InternalError(f"bucket {groups.bucket} has a DN-graph whose supports are no multiple of four")
    for part in parts.values():
        if part.left is not None:
            left[order.lookup(groups.dn_graphs.id, part.id)] = part.left
    return np.stack([total // 4, left])


def _total(groups: BucketGroups, parts: Mapping[int, SupportSums]) -> NDArray[np.int64]:
    """[DN-graphs of the bucket] the sum of the supports."""
    graphs = groups.dn_graphs
    total = np.zeros(len(graphs), np.int64)
    for part in parts.values():
        total[order.lookup(graphs.id, part.id)] += part.support
    return total


def vertices_of_first_side(place: NDArray[np.int32], edges: BucketEdges, graphs: int) -> NDArray[np.int64]:
    """[DN-graphs] the vertices of the first side in each, if all smaller ends are of that side.

    `place` [edges] are numbers of DN-graphs, and the edges are sorted by their smaller ends.
    """
    return np.bincount(place[order.heads(edges.low)], minlength=graphs)


def tree_of(nested: Nested, edges: NDArray[np.int64], starts: NDArray[np.int64]) -> BucketTree:
    """The tree of the only bucket, which shares no component. `edges` [components] is the field of BucketTree.

    `nested` may be made of a part of the bucket's edges, if the part has the same components. `starts` are those of the
    bucket.
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
    """The edges of the DN-graphs of the only bucket for which `wanted` [components] is true.

    `edges` are the edges of the bucket, `level` [edges] is their λ.
    """
    from ...kernels.cpu.regroup import mark_within  # loads Numba

    chosen = np.where(wanted & groups.is_dn_graph, tree.level, -1).astype(np.int32)
    rows = np.flatnonzero(mark_within(edges, level, tree.nested.vertex, chosen))
    low, (highs, (high,)) = edges.low[rows], order.encode(edges.high[rows])
    ids, place = np.unique(groups.id[tree.nested.vertex[low]], return_inverse=True)
    return DnEdges(BucketEdges(0, tree.starts, low, high, highs, 0), ids, place.astype(np.int32))


def triangles_by_id(groups: BucketGroups, triangles: NDArray[np.int64]) -> NDArray[np.int64]:
    """[DN-graphs] their entries of `triangles` [components], in the order of ids."""
    graphs = np.flatnonzero(groups.is_dn_graph)
    return triangles[graphs[np.argsort(groups.id[graphs])]]
