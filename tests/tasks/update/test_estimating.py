"""Estimates of an update's work by samples, against the work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgemill.kernels.graph import Topology
from edgemill.tasks.update.order import Order
from edgemill.tasks.update.updating import FEWEST, estimate_work, update_order
from edgemill.tasks.update.whole import order_from_nothing

NONE = Topology(np.zeros(0, np.int32), np.zeros(0, np.int32), 0)
MOST = 10**9


def cliques(count: int, size: int) -> tuple[Topology, Order]:
    """Cliques that share no vertex."""
    low, high = np.triu_indices(size, 1)
    first = size * np.arange(count)[:, None]
    edges = Topology((first + low).ravel().astype(np.int32), (first + high).ravel().astype(np.int32), count * size)
    return edges, order_from_nothing(edges)[1]


def work(edges: Topology, order: Order, gone: NDArray[np.bool_]) -> int:
    return update_order(edges, order, gone, NONE).work


def test_edges_far_from_each_other() -> None:
    """Each clique loses an edge, so the work is in proportion to the sample."""
    edges, order = cliques(400, 7)
    gone = np.arange(edges.edges) % 21 == 3
    found = estimate_work(edges, order, gone, NONE, MOST)
    assert 20 < found.sampled < 100 and not found.is_over
    assert abs(found.work - work(edges, order, gone)) <= 1


def test_edges_that_disturb_the_same() -> None:
    """A few edges of a clique disturb all of it, so the work does not grow with the sample."""
    edges, order = cliques(1, 40)
    gone = edges.low == 0
    found, actual = estimate_work(edges, order, gone, NONE, MOST), work(edges, order, gone)
    assert 0 < found.sampled < 20
    assert actual / 3 < found.work < 2 * actual


def test_few_edges_are_all_replayed() -> None:
    edges, order = cliques(3, 6)
    gone = np.arange(edges.edges) < FEWEST // 2
    found = estimate_work(edges, order, gone, NONE, MOST)
    assert (found.sampled, found.work) == (FEWEST // 2, work(edges, order, gone))
    assert estimate_work(edges, order, np.zeros(edges.edges, np.bool_), NONE, MOST).work == 0


def test_too_much_work_stops() -> None:
    edges, order = cliques(400, 7)
    gone = np.arange(edges.edges) % 3 == 0
    found = estimate_work(edges, order, gone, NONE, 500)
    assert found.is_over and 250 < found.work < work(edges, order, gone) and found.sampled < gone.sum() / 8
    assert estimate_work(edges, order, gone, NONE, 500) == found
