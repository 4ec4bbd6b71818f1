"""The hierarchy of an earlier result, as a forest of components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...kernels.runtime.sizes import SizedArrays
from ..errors import InputError

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class EarlierGroups(SizedArrays):
    """The components of an earlier graph. Each comes before the components that contain it, as in `Nested`."""

    level: NDArray[np.int32]
    """[components] k."""
    parent: NDArray[np.int32]
    """[components] the component that contains it next, -1 if none does."""
    edges: NDArray[np.int64]
    """[components] edges that are in no smaller component."""
    triangles: NDArray[np.int64]
    """[components] triangles inside a DN-graph, -1 for any other component."""
    vertex: NDArray[np.int32]
    """[vertices] the innermost component that contains the vertex; -1 for a vertex without edges."""


@dataclass(frozen=True)
class GroupTables:
    """What the tables of a result tell of its components. Ids are int64; null is -1."""

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
    """The components that the tables tell of. Raises InputError if the tables contradict each other."""
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
