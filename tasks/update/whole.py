"""Supports and the order of peeling of all edges, from nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...kernels.graph import Topology
from ..bound.in_memory import find_lambda, find_triangles
from .order import Order, order_of


def order_from_nothing(edges: Topology) -> tuple[NDArray[np.int32], Order]:
    """The support of each edge, int32 [edges], and λ with the order of peeling.

    Raises OutOfRoom as `find_triangles` does.
    """
    owned, subgraph = find_triangles(edges.low, edges.high, edges.vertices)
    support, lam = np.empty(edges.edges, np.int32), np.empty(edges.edges, np.int32)
    support[owned.row], lam[owned.row] = subgraph.support, find_lambda(subgraph)
    return support, order_of(edges, lam)
