"""The components of a graph from those of an earlier result, if few edges differ between the two graphs.

A maximum spanning forest of the edges, with λ as weight, has the same components at each level as the graph. The result
keeps the forest of the earlier graph. Forest edges that were removed, or whose λ fell, cut it into pieces. The *limit*
of a vertex is the least new λ of the changed forest edges on the path from the vertex to the largest piece of its tree.
An edge that both graphs have with the same λ joins no components if its λ is at most the limits of its ends: all forest
edges between its ends had at least its λ before, and have at least its λ now. So the search for components reads the
forest edges, the edges that were added or whose λ differs, and the edges whose λ is above the limit of an end.

All other edges are not read. The unread edges of one earlier component whose λ is its level are in one component of the
new graph. In the search, a loop at a vertex of the earlier component represents these edges, with their number.

That a spanning forest may stand for a graph when edges are added is due to Eppstein, Galil, Italiano and Nissenzweig,
"Sparsification: a technique for speeding up dynamic graph algorithms", JACM 44(5), 1997.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.cpu.nest import containing, nest_few, subtree_minima
from ...kernels.cpu.regroup import NO_LIMIT, limits, mark_over
from ...kernels.graph import Nested, Topology
from ...kernels.runtime.sizes import SizedArrays
from ..errors import InputError

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class EarlierGroups(SizedArrays):
    """The components of an earlier graph. Each comes before the components that contain it, as in `Nested`."""

    level: NDArray[np.int32]
    """[components] k."""
    parent: NDArray[np.int32]
    """[components] the next larger component that contains it; -1 if there is none."""
    edges: NDArray[np.int64]
    """[components] edges that are in no smaller component."""
    triangles: NDArray[np.int64]
    """[components] triangles inside a DN-graph, -1 for any other component."""
    vertex: NDArray[np.int32]
    """[vertices] the innermost component that contains the vertex; -1 for a vertex without edges."""


@dataclass(frozen=True)
class GroupTables:
    """The components of a result, as its tables list them. Ids are int64; null is -1."""

    component: Ids
    """[components] distinct ids, in any order."""
    level: NDArray[np.int32]
    """[components] k."""
    parent: Ids
    """[components] the id of the next larger component, or -1."""
    edges: NDArray[np.int64]
    """[components] edges, with those of smaller components inside."""
    innermost: Ids
    """[vertices] the id of the innermost component of each vertex, or -1."""
    dn_graph: Ids
    """[DN-graphs] ids."""
    triangles: NDArray[np.int64]
    """[DN-graphs] triangles inside."""


def earlier_groups(tables: GroupTables) -> EarlierGroups:
    """The components that the tables list. Raises InputError if the tables contradict each other."""
    downwards = np.argsort(-tables.level, kind="stable")
    ids, level = tables.component[downwards], tables.level[downwards]
    by_id = np.argsort(ids)
    known = ids[by_id]

    def places(wanted: Ids) -> NDArray[np.int32]:
        at = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
        found = by_id[at] if len(known) else np.full(len(wanted), -1)
        if (known[at] != wanted if len(known) else wanted >= 0)[wanted >= 0].any():
            raise InputError("the result is damaged: its table hierarchy lacks a component that another table names")
        return np.where(wanted < 0, -1, found).astype(np.int32)

    parent = places(tables.parent[downwards])
    within = np.flatnonzero(parent >= 0)
    own = tables.edges[downwards].astype(np.int64)
    np.subtract.at(own, parent[within], tables.edges[downwards][within])
    if (own <= 0).any() or (level[within] <= level[parent[within]]).any():
        raise InputError("the result is damaged: a component of its table hierarchy is not within its parent")
    triangles = np.full(len(ids), -1, np.int64)
    triangles[places(tables.dn_graph)] = tables.triangles
    return EarlierGroups(level, parent, own, triangles, places(tables.innermost))


Rows = NDArray[np.int32]


@dataclass(frozen=True)
class ChangedEdges(SizedArrays):
    """The edges of two graphs in one numbering of vertices, both sorted by (low, high)."""

    before: Topology
    level_before: NDArray[np.int32]
    """[edges of `before`] λ."""
    forest: NDArray[np.int32]
    """[forest] rows of `before` that are a maximum spanning forest, ascending."""
    removed: NDArray[np.bool_]
    """[edges of `before`] whether the second graph lacks the edge."""
    after: Topology
    level: NDArray[np.int32]
    """[edges of `after`] λ."""
    origin: NDArray[np.int32]
    """[edges of `after`] the row in `before`, -1 for an added edge."""
    changed: NDArray[np.bool_]
    """[edges of `after`] true for added edges, and where λ differs."""


@dataclass(frozen=True)
class Regrouped(SizedArrays):
    """The components of the second graph. The edges of `nested` are those that were searched."""

    nested: Nested
    edges: NDArray[np.int64]
    """[components] edges that are in no smaller component."""
    triangles: NDArray[np.int64]
    """[components] triangles inside a DN-graph that has the same edges as an earlier one; -1 for any other component.
    """
    forest: NDArray[np.int32]
    """[forest] rows of the edges of the second graph that are a maximum spanning forest, ascending."""
    searched: int
    """Edges that were searched beside the forest."""


def regroup(change: ChangedEdges, earlier: EarlierGroups, most: int) -> Regrouped | None:
    """The components of the second graph; None if more than `most` edges would be searched beside the forest.

    `earlier.vertex` has the numbering of `change`. Raises InputError if `earlier` is not the hierarchy of the first
    graph.
    """
    new, lost = kernels.nonzero(change.changed), kernels.nonzero(change.removed)
    was = change.origin[new]
    added, moved, was = new[was < 0], new[was >= 0], was[was >= 0]
    limit = _limits(change, lost, moved, was)
    single = change.changed.copy()
    if (limit < NO_LIMIT).any():
        mark_over(change.after, change.level, limit, single)
    searched = int(np.count_nonzero(single))
    if searched > most:
        return None
    chosen = single.copy()
    kept = change.forest[~change.removed[change.forest]]
    chosen[_moved(kept, lost, added)] = True
    rows, near = kernels.nonzero(chosen), kernels.nonzero(single & ~change.changed)
    own = _staying(change, earlier, np.concatenate([lost, was]), near)
    left = np.flatnonzero(own > 0)
    at = _vertices_of(earlier, limit)[left]
    if (limit[at] < earlier.level[left]).any():
        raise _contradiction()
    nested, unites = nest_few(
        np.concatenate([change.after.low[rows], at]),
        np.concatenate([change.after.high[rows], at]),
        np.concatenate([change.level[rows], earlier.level[left]]),
        change.after.vertices,
    )
    here, there = nested.edge[: len(rows)], nested.edge[len(rows) :]
    edges = np.bincount(here[single[rows]], minlength=len(nested)).astype(np.int64)
    np.add.at(edges, there, own[left])
    triangles = np.full(len(nested), -1, np.int64)
    same = (own[left] == earlier.edges[left]) & (edges[there] == own[left])
    triangles[there[same]] = earlier.triangles[left[same]]
    return Regrouped(nested, edges, triangles, rows[unites[: len(rows)]].astype(np.int32), searched)


def _staying(change: ChangedEdges, earlier: EarlierGroups, gone: Rows, near: Rows) -> NDArray[np.int64]:
    """[earlier components] edges that are in no smaller component and not searched one by one.

    `gone` are the rows of `before` that were removed or whose λ differs, `near` the rows of `after` that are searched
    and have not changed.
    """
    low = np.concatenate([change.before.low[gone], change.after.low[near]])
    high = np.concatenate([change.before.high[gone], change.after.high[near]])
    level = np.concatenate([change.level_before[gone], change.level[near]])
    if (np.minimum(earlier.vertex[low], earlier.vertex[high]) < 0).any():
        raise _contradiction()
    within = containing(low, high, level, earlier.vertex, earlier.level, earlier.parent)
    own = earlier.edges - np.bincount(within, minlength=len(earlier.edges))
    if (earlier.level[within] != level).any() or (own < 0).any():
        raise _contradiction()
    return own


def _limits(change: ChangedEdges, lost: Rows, moved: Rows, was: Rows) -> NDArray[np.int32]:
    """[vertices] the level up to which the forest still connects the vertex as before.

    `lost` are the rows of `before` that were removed, `moved` the rows of `after` whose λ differs, and `was` are these
    edges as rows of `before`.
    """
    forest = change.forest
    now = np.full(len(forest), NO_LIMIT, np.int32)
    fell = change.level[moved] < change.level_before[was]
    gone = np.full(len(lost), -1, np.int32)
    for rows, level in ((lost, gone), (was[fell], change.level[moved[fell]])):
        at = np.minimum(np.searchsorted(forest, rows), len(forest) - 1)
        inside = forest[at] == rows
        now[at[inside]] = level[inside]
    return limits(change.before.low[forest], change.before.high[forest], now, change.after.vertices)


def _vertices_of(earlier: EarlierGroups, limit: NDArray[np.int32]) -> NDArray[np.int32]:
    """[earlier components] a vertex of the highest limit. Raises InputError for a component without vertices."""
    vertices = np.flatnonzero(earlier.vertex >= 0)
    key = ((NO_LIMIT - limit[vertices]).astype(np.int64) << 32) | vertices
    found = np.full(len(earlier.level), np.iinfo(np.int64).max)
    np.minimum.at(found, earlier.vertex[vertices], key)
    return (subtree_minima(earlier.parent, found) & (2**32 - 1)).astype(np.int32)


def _moved(rows: Rows, removed: Rows, added: Rows) -> NDArray[np.int64]:
    """The rows in the second graph of the edges that were `rows` of the first graph.

    `removed` are the rows of the first graph that the second one lacks, `added` the rows of the second one that are
    new.
    """
    kept = rows - _up_to(rows, removed)
    return kept + _up_to(kept, added - np.arange(len(added), dtype=np.int32))


def _up_to(rows: NDArray[Any], others: NDArray[Any]) -> NDArray[np.int64]:
    """[rows] how many of `others` are less than or equal to each row. Both ascend. Searches for the others, which are
    fewer.
    """
    first = np.searchsorted(rows, others, side="left")
    return np.cumsum(np.bincount(first, minlength=len(rows))[: len(rows)])


def _contradiction() -> InputError:
    return InputError("the result is damaged: its table hierarchy is not that of its edges")
