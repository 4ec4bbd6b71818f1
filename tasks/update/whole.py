"""Supports and the order of peeling of all edges, from nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
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
    kernels.store(support, owned.row, subgraph.support)
    row = kernels.take(owned.row, subgraph.number)  # edges without triangles are not peeled
    peeling = RecordedPeeling(subgraph.topology, kernels.take(support, row))
    fallen = [np.zeros(0, np.int32)]
    while peeling.left:
        peeling.advance()
        fallen.append(peeling.removed)
    for target, values in ((lam, peeling.low), (count, peeling.level_counts), (remainder, peeling.remainders)):
        kernels.store(target, row, values)
    peeled = kernels.take(row, np.concatenate(fallen))
    none = np.flatnonzero(support == 0).astype(np.int32)
    return support, Order(lam, places(np.concatenate([none, peeled]), lam), count, remainder)
