"""The order that a peeling from nothing gives."""

from __future__ import annotations

from dataclasses import fields
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.kernels.graph import Topology
from edgemill.tasks.update.order import find_violation, order_of
from edgemill.tasks.update.whole import order_from_nothing, supports_after
from examples import examples
from strategies import EdgeList, simple_graphs

Rows = list[tuple[int, int]]


def rows_of(edges: EdgeList) -> Rows:
    return sorted({(min(edge), max(edge)) for edge in edges})


def graph_of(rows: Rows) -> Topology:
    low, high = (np.array([row[end] for row in rows], np.int32) for end in (0, 1))
    return Topology(low, high, 12)


def supports(rows: Rows) -> list[int]:
    sets = [{v for edge in rows if u in edge for v in edge} - {u} for u in range(12)]
    return [len(sets[u] & sets[v]) for u, v in rows]


@settings(max_examples=examples(60))
@given(simple_graphs())
def test_the_order_of_a_peeling_is_valid(edges: EdgeList) -> None:
    rows = rows_of(edges)
    graph = graph_of(rows)
    support, order = order_from_nothing(graph)
    assert find_violation(graph, order) is None
    assert support.tolist() == supports(rows)
    assert np.array_equal(order_of(graph, order.lam).count, order.count)
    again, same = order_from_nothing(graph, support)
    assert again is support
    for field in fields(order):
        assert np.array_equal(getattr(same, field.name), getattr(order, field.name))


@settings(max_examples=examples(120))
@given(simple_graphs(), simple_graphs(), st.randoms(use_true_random=False))
def test_supports_after_a_batch(edges: EdgeList, others: EdgeList, random: Random) -> None:
    before = rows_of(edges)
    added = [row for row in rows_of(others) if row not in before]
    removed = [random.random() < 0.3 for _ in before]
    graph = graph_of(before)
    support, order = order_from_nothing(graph)
    batch = np.array(removed, np.bool_), graph_of(added)
    after, origin, found = supports_after(graph, order, support, *batch)
    rows = sorted([*(row for row, gone in zip(before, removed, strict=True) if not gone), *added])
    assert list(zip(after.low.tolist(), after.high.tolist(), strict=True)) == rows
    assert origin.tolist() == [before.index(row) if row in before else -1 for row in rows]
    assert found.tolist() == supports(rows)
