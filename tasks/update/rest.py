"""The edges that are left at a level of an update are peeled anew, where following the changes would be more work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.cpu.update import Union
from ...kernels.graph import KEY_BITS, Topology
from ..errors import InternalError
from .order import Order
from .whole import order_from_nothing


def work_of_rest(order: Order) -> NDArray[np.int64]:
    """Work of peeling all edges of at least a level, for each level up to the highest: int64 [levels].

    It is their triangles, counted once for each edge that has the least level in it.
    """
    by_level = np.bincount(order.lam, order.count, minlength=1)
    return np.cumsum(by_level[::-1])[::-1].astype(np.int64)


def peel_rest(union: Union, level: int) -> int:
    """Peel the edges of the union that have at least this level or stand, and give their number.

    All edges that fall below the level have their place in the order, and no other edge is removed. So these edges are
    those of λ ≥ `level`, and each of them has the same λ among them as in the graph. Raises InternalError if one has
    not.
    """
    rows = np.flatnonzero(union.key >= level << KEY_BITS).astype(np.int32)
    low, high = (kernels.take(end, rows) for end in (union.edges.low, union.edges.high))
    _, order = order_from_nothing(Topology(low, high, union.edges.vertices))
    if order.lam.min(initial=level) < level:
        raise InternalError(f"an edge is left at level {level} of an update, and its λ is {order.lam.min()}")
    for target, values in ((union.key, order.keys()), (union.count, order.count), (union.remainder, order.remainder)):
        kernels.store(target, rows, values)
    return len(rows)
