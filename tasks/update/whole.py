"""Supports and the order of peeling of all edges, from nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...kernels.cpu.peeling.peel import RecordedPeeling
from ...kernels.graph import Topology
from ..bound.in_memory import find_triangles
from .order import Order, places


def order_from_nothing(edges: Topology) -> tuple[NDArray[np.int32], Order]:
    """The support of each edge, int32 [edges], and λ with the order of peeling, which has the counts of the peeling.

    Raises OutOfRoom as `find_triangles` does.
    """
    owned, subgraph = find_triangles(edges.low, edges.high, edges.vertices)
    support, lam, count, remainder = np.zeros((4, edges.edges), np.int32)
    support[owned.row] = subgraph.support
    row = owned.row[subgraph.number]  # edges without triangles are not peeled
    peeling = RecordedPeeling(subgraph.topology, support[row])
    fallen = [np.flatnonzero(support == 0).astype(np.int32)]
    while peeling.left:
        peeling.advance()
        fallen.append(row[peeling.removed])
    lam[row], count[row], remainder[row] = peeling.low, peeling.level_counts, peeling.remainders
    return support, Order(lam, places(np.concatenate(fallen), lam), count, remainder)
