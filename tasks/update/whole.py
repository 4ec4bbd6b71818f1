"""Supports and the order of peeling of all edges, from nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import Topology
from ..bound.in_memory import find_triangles
from ..bound.peel import Peeled, peel
from ..graph.subgraph import Subgraph
from .order import Order, places


def order_from_nothing(edges: Topology) -> tuple[NDArray[np.int32], Order]:
    """The support of each edge, int32 [edges], and λ with the order of peeling, which has the counts of the peeling.

    Raises OutOfRoom as `find_triangles` does.
    """
    owned, subgraph = find_triangles(edges.low, edges.high, edges.vertices)
    support = np.zeros(edges.edges, np.int32)
    kernels.store(support, owned.row, subgraph.support)
    order = recorded_order(owned.row, subgraph, peel(subgraph, record=True))
    assert order is not None
    return support, order


def recorded_order(rows: NDArray[np.int32], subgraph: Subgraph, peeled: Peeled) -> Order | None:
    """The order of a peeling with a record, of all edges of a graph; None without one.

    `rows` [owned edges] are the places of the edges in the order's arrays: each of 0 … edges - 1 once.
    """
    record = peeled.record
    if record is None:
        return None
    own = kernels.take(rows, subgraph.number)  # edges without triangles are not peeled
    lam, count, remainder = np.zeros((3, len(rows)), np.int32)
    for target, values in ((lam, peeled.low), (count, record.count), (remainder, record.remainder)):
        kernels.store(target, own, values)
    alone = np.ones(len(rows), np.bool_)
    alone[own] = False
    none = np.flatnonzero(alone).astype(np.int32)
    removed = np.concatenate([none, kernels.take(own, record.removed)])
    return Order(lam, places(removed, lam), count, remainder)
