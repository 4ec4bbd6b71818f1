"""The order that a peeling from nothing gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from edgemill.kernels.graph import Topology
from edgemill.tasks.update.order import find_violation, order_of
from edgemill.tasks.update.whole import order_from_nothing
from examples import examples
from strategies import EdgeList, simple_graphs


@settings(max_examples=examples(60))
@given(simple_graphs())
def test_the_order_of_a_peeling_is_valid(edges: EdgeList) -> None:
    rows = sorted({(min(edge), max(edge)) for edge in edges})
    low, high = (np.array([row[end] for row in rows], np.int32) for end in (0, 1))
    graph = Topology(low, high, 12)
    support, order = order_from_nothing(graph)
    assert find_violation(graph, order) is None
    sets = [{v for edge in rows if u in edge for v in edge} - {u} for u in range(12)]
    assert support.tolist() == [len(sets[u] & sets[v]) for u, v in rows]
    assert np.array_equal(order_of(graph, order.lam).count, order.count)
