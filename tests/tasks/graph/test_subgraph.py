"""Supports and the edges with triangles against their definitions."""

from __future__ import annotations

from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import strategies
from edgemill.kernels.graph import GONE, MAX_TRIANGLES, MAX_TRIANGLES_ON_GPU, UNCOUNTED
from edgemill.tasks import graph as subgraphs
from edgemill.tasks.errors import OutOfRoom
from edgemill.tasks.graph import build_subgraph, check_supports
from examples import examples
from held_graphs import held_graph

VERTICES = 12


def check(rows: strategies.EdgeList, buckets: int) -> None:
    graph = held_graph(rows, buckets)
    support, own = oracles.brute_force_support(rows), graph.subgraph
    assert graph.values(own.support) == support
    names = [graph.edges[i] for i in own.number.tolist()]
    assert sorted(names) == sorted(edge for edge, triangles in support.items() if triangles)
    assert own.first_counts().tolist() == [support[name] for name in names]
    low, high = own.topology.low.tolist(), own.topology.high.tolist()
    pairs = list(zip(low, high, strict=True))
    assert pairs == sorted(pairs)
    assert all(u < v < own.topology.vertices for u, v in pairs)
    candidates: dict[int, set[int]] = {}  # each local vertex represents one vertex
    for pair, name in zip(pairs, names, strict=True):
        for local in pair:
            candidates[local] = candidates.get(local, set(name)) & set(name)
    assert all(candidates.values())
    counts = own.counts
    assert (counts.partition, counts.owned, counts.inner, counts.cut) == (0, len(support), len(support), 0)
    assert counts.vertices == len({end for edge in support for end in edge})


@given(rows=strategies.edge_lists(VERTICES), buckets=st.integers(1, 5))
@settings(max_examples=examples(300))
def test_drawn_graphs(rows: strategies.EdgeList, buckets: int) -> None:
    check(rows, buckets)


@pytest.mark.parametrize("vertices", [40, 90])
def test_larger_graphs(vertices: int) -> None:
    """Longer lists and hubs."""
    rng = np.random.default_rng(vertices)
    rows = [(int(u), int(v)) for u, v in np.minimum(*rng.integers(0, vertices, (2, 6 * vertices, 2))).tolist()]
    check(rows, 2)


@pytest.mark.parametrize("here", [MAX_TRIANGLES + 1, 2**31 - 1, -(2**31)])
def test_too_many_triangles_of_one_edge_are_refused(here: int) -> None:
    """A sum of int32 that overflowed is negative."""
    owned = held_graph([(0, 1), (1, 2)]).owned
    assert build_subgraph(owned, np.array([3, MAX_TRIANGLES], np.int32)).support.tolist() == [3, MAX_TRIANGLES]
    with pytest.raises(OutOfRoom, match=rf"{here % 2**32:,}.*268,435,455"):
        build_subgraph(owned, np.array([3, here], np.int32))


def test_too_many_edges_with_triangles_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    owned = held_graph([(0, 1), (1, 2), (0, 2), (2, 3)]).owned
    support = np.array([1, 1, 1, 0], np.int32)
    monkeypatch.setattr(subgraphs, "MAX_LOCAL_EDGES", 3)
    assert len(build_subgraph(owned, support).number) == 3
    monkeypatch.setattr(subgraphs, "MAX_LOCAL_EDGES", 2)
    with pytest.raises(OutOfRoom, match=r"3.*2.*partitioning\.count"):
        build_subgraph(owned, support)


def test_counts_and_marks_cannot_be_confused() -> None:
    """The count of an edge that must stay is above any other's, even after the most possible decrements."""
    assert UNCOUNTED - MAX_TRIANGLES > MAX_TRIANGLES + 1
    assert GONE + MAX_TRIANGLES < 0
    cascade = resources.files("edgemill.kernels.cuda").joinpath("cascade.cuh").read_text()
    assert "constexpr int WIDTH = 1 << 27;" in cascade
    assert MAX_TRIANGLES_ON_GPU < 2**27 and GONE + 2**27 < -3 * 2**27


def test_the_limit_of_triangles_is_lower_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    check_supports(np.array([MAX_TRIANGLES_ON_GPU + 1], np.int32))
    monkeypatch.setattr("edgemill.kernels.on_host", lambda array: False)
    check_supports(np.array([MAX_TRIANGLES_ON_GPU], np.int32))
    with pytest.raises(OutOfRoom, match=r"134,217,728 triangles, over the 134,217,727 .*use cluster\.device=cpu"):
        check_supports(np.array([MAX_TRIANGLES_ON_GPU + 1], np.int32))
