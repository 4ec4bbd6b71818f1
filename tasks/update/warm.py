"""Compiles the kernels of updates, or loads them from the cache, before a stage is timed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.cpu.nest import containing, nest_few
from ...kernels.cpu.regroup import highest_at, limits, mark_over, mark_within
from ...kernels.cpu.update import among, keep_later, least_of_triangles, level_sums, mark_ends, values_since
from ...kernels.graph import Topology
from ...kernels.runtime.side_by_side import Parts, WarmUp
from ...kernels.runtime.warm import PARTS, SECONDS
from .order import Order, order_of
from .updating import update_order

CLIQUE = 6
"""Vertices of the clique whose order is computed."""


def warm_updates(processes: int = 1) -> WarmUp:
    """Call the kernels of an update, and the kernels that find groups from earlier groups. Up to `processes` processes
    compile them; see `Parts.load`.
    """
    return _UPDATES.load(list(_UPDATES.calls), processes)


def _update(removed: NDArray[np.bool_], added: int) -> None:
    """A triangle with a tail loses the edges `removed`; with `added` 1 another edge closes a second triangle."""
    low, high = np.array([[0, 0, 1, 1], [1, 2, 2, 3]], np.int32)
    lam, time, count, remainder = np.array([[1, 1, 1, 0], [0, 1, 2, 0], [1, 1, 1, 0], [1, 0, 0, 0]], np.int32)
    new = Topology(np.array([2], np.int32)[:added], np.array([3], np.int32)[:added], 4)
    edges, order = Topology(low, high, 4), Order(lam, time, count, remainder)
    for in_one_thread in (True, False):
        update_order(edges, order, removed, new, in_one_thread=in_one_thread)


def _warm_deletions() -> None:
    _update(np.arange(4) == 0, 0)
    one = np.zeros(1, np.int32)
    mark_ends(Topology(one, one, 1), one > 0, one > 0)
    least_of_triangles(np.zeros((1, 3), np.int32), np.zeros(1, np.uint8))


def _insert_between_triangles() -> None:
    """Insert an edge that closes two triangles, and is removed after their other edges.

    The edge is a chord of the cycle 0, 2, 1, 3. Each edge of the cycle is in a triangle of its own.
    """
    low = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3], np.int32)
    high = np.array([2, 3, 4, 6, 2, 3, 5, 7, 4, 5, 6, 7], np.int32)
    time = np.array([8, 9, 0, 1, 10, 11, 2, 3, 4, 5, 6, 7], np.int32)
    ones = np.ones(len(low), np.int32)
    order = Order(ones, time, ones, (time < 4).astype(np.int32))
    chord = Topology(np.array([0], np.int32), np.array([1], np.int32), 8)
    for in_one_thread in (True, False):
        update_order(Topology(low, high, 8), order, ones == 0, chord, in_one_thread=in_one_thread)


def _warm_insertions() -> None:
    _update(np.zeros(4, np.bool_), 1)
    _insert_between_triangles()
    level_sums(np.zeros(1, np.int32), np.zeros(1, np.int32))
    edge = Topology(np.zeros(1, np.int32), np.ones(1, np.int32), 2)
    keep_later(kernels.adjacency(edge), np.zeros(1, np.int64), 0)


def _warm_groups() -> None:
    """Call the kernels that find groups, and values of edges, from those of an earlier result, on an edge."""
    zero, one, vertex = np.zeros(1, np.int32), np.ones(1, np.int32), np.zeros(2, np.int32)
    for is_writable in (True, False):  # a column of a table may be read-only, which is another type to the compiler
        one.flags.writeable = is_writable
        values_since(one, zero, one > 0, zero)
    one.flags.writeable = True
    edge = Topology(zero, one, 2)
    nested, _ = nest_few(zero, one, one, 2)
    containing(zero, one, one, nested.vertex, nested.level, nested.parent)
    mark_over(edge, one, limits(zero, one, zero, 2), np.zeros(1, np.bool_))
    mark_within(edge, one, vertex, one)
    highest_at(edge, one, zero)


_UPDATES = Parts(
    __spec__.name,
    {
        "insertions": _warm_insertions,
        "deletions": _warm_deletions,
        "regrouping": _warm_groups,
        "recording": PARTS["recording"],
    },
    {"insertions": 13.0, "deletions": 9.0, "regrouping": 3.8, "recording": SECONDS["recording"]},
)


def warm_orders() -> None:
    """Call the kernels of orders and of comparisons: those of a clique."""
    low, high = (end.astype(np.int32) for end in np.triu_indices(CLIQUE, 1))
    order_of(Topology(low, high, CLIQUE), np.full(len(low), CLIQUE - 2, np.int32))
    edges = Topology(low, high, CLIQUE)
    among(edges, edges)
    kernels.compact(kernels.adjacency(edges), np.ones(len(low), np.bool_))


if __name__ == "__main__":
    _UPDATES.compile_named()
