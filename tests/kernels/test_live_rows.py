"""Rows that are cleaned while edges are removed, and frontiers that all threads sort and mark."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgemill.kernels.cpu import Peeling, adjacency, supports
from edgemill.kernels.cpu.peeling import cascade
from edgemill.kernels.cpu.peeling.cascade import REMOVED
from edgemill.kernels.cpu.peeling.live_edges import STALE, LiveRows
from edgemill.kernels.graph import Topology


def _graph(vertices: int, edges: int, seed: int) -> Topology:
    ends = np.sort(np.random.default_rng(seed).integers(0, vertices, (edges, 2)), axis=1)
    low, high = np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0).T.astype(np.int32)
    return Topology(np.ascontiguousarray(low), np.ascontiguousarray(high), vertices)


@given(st.integers(2, 30), st.integers(1, 200), st.lists(st.integers(1, 20), max_size=30), st.integers(0, 99))
def test_rows_keep_all_remaining_edges(vertices: int, edges: int, sizes: list[int], seed: int) -> None:
    graph = _graph(vertices, edges, seed)
    state = np.zeros(graph.edges, np.int8)
    rows = LiveRows(graph, adjacency(graph), state, graph.edges)
    order = np.random.default_rng(seed).permutation(graph.edges).astype(np.int32)
    for removed in np.split(order, np.minimum(np.cumsum(sizes), len(order)))[:-1]:
        state[removed] = REMOVED
        found = rows.remove(removed, int((state == 0).sum()))
        for v in range(vertices):
            own = slice(found.begin[v], found.begin[v] + found.length[v])
            numbers = found.edge[own]
            other = graph.low[numbers] + graph.high[numbers] - v
            assert (found.neighbour[own] == other).all() and (np.diff(other) > 0).all()
            expected = np.flatnonzero(((graph.low == v) | (graph.high == v)) & (state == 0))
            assert set(numbers[state[numbers] == 0]) == set(expected)


def test_stale_rows_are_cleaned() -> None:
    graph = _graph(200, 4000, 1)
    state = np.zeros(graph.edges, np.int8)
    rows = LiveRows(graph, adjacency(graph), state, graph.edges)
    removed = np.arange(0, graph.edges, 4, dtype=np.int32)
    state[removed] = REMOVED
    found = rows.remove(removed, graph.edges - len(removed))
    for v in range(graph.vertices):
        numbers = found.edge[found.begin[v] : found.begin[v] + found.length[v]]
        assert (state[numbers] != 0).sum() * STALE <= len(numbers)


def _peel(graph: Topology) -> Peeling:
    offsets = np.searchsorted(graph.low, np.arange(graph.vertices + 1))
    peeling = Peeling(graph, supports(offsets, graph.high))
    while peeling.left:
        peeling.advance()
    return peeling


def test_large_frontiers(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = _graph(300, 9000, 2)
    expected = _peel(graph)
    monkeypatch.setattr(cascade, "LARGE", 1)
    monkeypatch.setattr(cascade, "MANY", 1)
    found = _peel(graph)
    assert (found.low == expected.low).all() and found.levels == expected.levels > 5
