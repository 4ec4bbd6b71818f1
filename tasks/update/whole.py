"""Supports and the order of peeling, without an earlier order, of all edges or of those that an update has left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.graph import KEY_BITS, Topology
from ..bound.peel import Peeled, find_triangles, peel
from ..errors import InternalError
from ..graph import Subgraph
from .order import Order, places

if TYPE_CHECKING:
    from ...kernels.cpu.update import Union


def order_from_nothing(edges: Topology, support: NDArray[np.int32] | None = None) -> tuple[NDArray[np.int32], Order]:
    """The support of each edge, int32 [edges], and λ with the order of peeling, with the counts of that peeling.

    Triangles are not counted if the `support` is given. Raises OutOfRoom as `find_triangles` does.
    """
    owned, subgraph = find_triangles(edges.low, edges.high, edges.vertices, support)
    if support is None:
        support = np.zeros(edges.edges, np.int32)
        kernels.store(support, owned.row, subgraph.support)
    order = recorded_order(owned.row, subgraph, peel(subgraph, record=True))
    assert order is not None
    return support, order


def supports_after(
    edges: Topology, order: Order, support: NDArray[np.int32], removed: NDArray[np.bool_], added: Topology
) -> tuple[Topology, NDArray[np.int32], NDArray[np.int32]]:
    """The edges after a batch, the row of each before it (-1 for an added one), and their supports.

    Arguments as of `update_order`; `support` int32 [edges] are the triangles of each edge before. Looks at the
    triangles of changed edges, and lists them in 12 bytes each.
    """
    from ...kernels.cpu.update import ADDED, REMOVED, leave_out, merge, removed_triangles, values_since

    union = merge(edges, (order.lam, order.time, order.count, order.remainder), removed, added)
    rows, mark = kernels.adjacency(union.edges), union.mark.copy()
    mark[union.removed], mark[union.added] = ADDED, REMOVED
    for step, own, marks in ((-1, union.removed, union.mark), (1, union.added, mark)):
        triangles, _ = removed_triangles(union.edges, rows, marks, own)
        np.add.at(union.change, triangles.ravel(), np.int32(step))
    del rows  # what follows needs its memory
    after, _, origin, changed, change = leave_out(union, order.lam)
    return after, origin, values_since(support, origin, changed, change)[0]


def recorded_order(rows: NDArray[np.int32], subgraph: Subgraph, peeled: Peeled) -> Order | None:
    """The order of all edges of a graph from a peeling that was recorded; None if it was not.

    `rows` [owned edges] are the places of the edges in the order's arrays: each of 0 … edges - 1 once.
    """
    record = peeled.record
    if record is None:
        return None
    own = kernels.take(rows, subgraph.number)  # edges without triangles, whose λ is 0, are not peeled
    lam, count, remainder = np.zeros((3, len(rows)), np.int32)
    for target, values in ((lam, peeled.low), (count, record.count), (remainder, record.remainder)):
        kernels.store(target, own, values)
    none = kernels.nonzero(lam == 0)
    removed = kernels.join([none, kernels.take(own, record.removed)])
    return Order(lam, places(removed, lam), count, remainder)


def work_of_rest(order: Order) -> NDArray[np.int64]:
    """Work of peeling all edges of at least a level, for each level up to the highest: int64 [levels].

    The work is the number of their triangles; a triangle counts once for each of its edges that has its least level.
    """
    from ...kernels.cpu.update import level_sums  # runs without an earlier result import this module, too

    by_level = level_sums(order.lam, order.count)
    return np.cumsum(by_level[::-1])[::-1]


def peel_rest(union: Union, level: int) -> int:
    """Peel the edges of the union that have at least this level or stand. Returns their number.

    All edges of lower λ have their places in the order already. So the peeled edges are those of λ ≥ `level`, and each
    has the same λ among them as in the whole graph. Raises InternalError if one of them has a lower λ.
    """
    rows = kernels.nonzero(union.key >= level << KEY_BITS)
    low, high = (kernels.take(end, rows) for end in (union.edges.low, union.edges.high))
    _, order = order_from_nothing(Topology(low, high, union.edges.vertices))
    if order.lam.min(initial=level) < level:
        raise InternalError(f"an edge is left at level {level} of an update, and its λ is {order.lam.min()}")
    for target, values in ((union.key, order.keys()), (union.count, order.count), (union.remainder, order.remainder)):
        kernels.store(target, rows, values)
    return len(rows)
