"""Supports and the order of peeling of all edges, from nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...kernels.cpu.peel import Peeling
from ...kernels.graph import Topology
from ..bound.in_memory import find_triangles
from .order import Order, order_of_peeling


def order_from_nothing(edges: Topology) -> tuple[NDArray[np.int32], Order]:
    """The support of each edge, int32 [edges], and λ with the order of peeling.

    Raises OutOfRoom as `find_triangles` does.
    """
    owned, subgraph = find_triangles(edges.low, edges.high, edges.vertices)
    support, lam = np.zeros(edges.edges, np.int32), np.zeros(edges.edges, np.int32)
    support[owned.row] = subgraph.support
    row = owned.row[subgraph.number]  # edges without triangles are not peeled
    peeling, fallen = Peeling(subgraph.topology, support[row]), [np.flatnonzero(support == 0).astype(np.int32)]
    while peeling.left:
        peeling.advance()
        fallen.append(row[peeling.removed])
    lam[row] = peeling.low
    return support, order_of_peeling(lam, np.concatenate(fallen), subgraph.topology, row)
