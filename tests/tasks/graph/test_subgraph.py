"""Supports, ghosts, subscribers and edge counts against their definitions, for any assignment of vertices."""

from __future__ import annotations

from collections import defaultdict
from importlib import resources
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import strategies
from cut_graphs import CutGraph, cut_graph
from edgemill.kernels.graph import GONE, MAX_TRIANGLES, MAX_TRIANGLES_ON_GPU, UNCOUNTED
from edgemill.tasks.errors import OutOfRoom
from edgemill.tasks.graph.triangulate import Counted, GhostEdges, Reply, check_supports, supports
from edgemill.tasks.messages import bundle
from examples import examples

VERTICES = 12


def triangles_as_edges(rows: strategies.EdgeList) -> list[set[tuple[int, int]]]:
    return [set(combinations(triangle, 2)) for triangle in sorted(oracles.brute_force_triangles(rows))]


def check(graph: CutGraph, rows: strategies.EdgeList) -> None:
    support = oracles.brute_force_support(rows)
    triangles = triangles_as_edges(rows)
    check_owners(graph, rows)
    assert graph.values([subgraph.support for subgraph in graph.subgraphs]) == support
    ghosts_of = {}
    for p, subgraph in enumerate(graph.subgraphs):
        names = graph.local_names(p)
        own = {edge for edge in graph.edges[p] if support[edge]}
        ghosts = {e for t in triangles if t & own for e in t if graph.owner[e] != p}
        assert len(names) == len(set(names))
        assert {names[e] for e in subgraph.owned.tolist()} == own
        assert {names[e] for e in subgraph.ghost.tolist()} == ghosts
        ghosts_of[p] = ghosts
        check_topology(graph, p)
        check_counts(graph, p, triangles, len(own), len(ghosts))
    for p, subgraph in enumerate(graph.subgraphs):
        names = graph.local_names(p)
        for place, local in enumerate(subgraph.owned.tolist()):
            found = subgraph.subscriber[subgraph.subscriber_offsets[place] : subgraph.subscriber_offsets[place + 1]]
            assert found.tolist() == [q for q in sorted(ghosts_of) if names[local] in ghosts_of[q]]
        assert subgraph.subscriber_offsets[-1] == len(subgraph.subscriber)


def check_owners(graph: CutGraph, rows: strategies.EdgeList) -> None:
    """Every edge has one owner: the partition of its low end in degree order."""
    edges = oracles.simple_edges(rows)
    degree: dict[int, int] = defaultdict(int)
    for edge in edges:
        for end in edge:
            degree[end] += 1
    assert sum(map(len, graph.edges)) == len(edges)
    assert graph.owner == {edge: graph.part[min(edge, key=lambda end: (degree[end], end))] for edge in edges}


def check_topology(graph: CutGraph, p: int) -> None:
    """Each local vertex represents one vertex, and local edges are sorted by local vertices."""
    topology, names = graph.subgraphs[p].topology, graph.local_names(p)
    low, high = topology.low.tolist(), topology.high.tolist()
    pairs = list(zip(low, high, strict=True))
    assert pairs == sorted(pairs)
    assert all(u < v < topology.vertices for u, v in pairs)
    candidates: dict[int, set[int]] = {}
    for (u, v), name in zip(pairs, names, strict=True):
        for local in (u, v):
            candidates[local] = candidates.get(local, set(name)) & set(name)
    assert all(candidates.values())


def check_counts(graph: CutGraph, p: int, triangles: list[set[tuple[int, int]]], local: int, ghosts: int) -> None:
    counts = graph.subgraphs[p].counts
    inner = peripheral = cut = 0
    for edge in graph.edges[p]:
        third = {graph.part[end] for t in triangles if edge in t for e in t for end in e if end not in edge}
        if {graph.part[end] for end in edge} != {p}:
            cut += 1
        elif third <= {p}:
            inner += 1
        else:
            peripheral += 1
    assert (counts.inner, counts.peripheral, counts.cut) == (inner, peripheral, cut)
    assert (counts.partition, counts.owned, counts.ghost, counts.local) == (p, len(graph.edges[p]), ghosts, local)
    assert counts.vertices == len({end for edge in graph.edges[p] for end in edge})


@given(rows=strategies.edge_lists(VERTICES), partitioning=strategies.partitionings(VERTICES))
@settings(max_examples=examples(300))
def test_any_assignment(rows: strategies.EdgeList, partitioning: strategies.Partitioning) -> None:
    check(cut_graph(rows, partitioning.count, partitioning.part), rows)


@given(rows=strategies.edge_lists(VERTICES), partitions=st.integers(1, 9), method=st.sampled_from(["range", "hash"]))
def test_both_partitioners(rows: strategies.EdgeList, partitions: int, method: str) -> None:
    check(cut_graph(rows, partitions, "hash" if method == "hash" else "range"), rows)


def test_a_triangle_over_three_partitions() -> None:
    graph = cut_graph([(0, 1), (1, 2), (0, 2)], 3, np.array([0, 1, 2], np.int16))
    check(graph, [(0, 1), (1, 2), (0, 2)])
    assert [subgraph.counts.ghost for subgraph in graph.subgraphs] == [1, 2, 0]


@pytest.mark.parametrize("vertices", [40, 90])
def test_larger_graphs(vertices: int) -> None:
    """Longer lists, hubs, and lists that are sent to several partitions."""
    rng = np.random.default_rng(vertices)
    rows = [(int(u), int(v)) for u, v in np.minimum(*rng.integers(0, vertices, (2, 6 * vertices, 2))).tolist()]
    for partitions in (2, 5):
        check(cut_graph(rows, partitions, rng.integers(0, partitions, vertices).astype(np.int16)), rows)


def counted(here: int, elsewhere: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """The supports of two edges. The second has triangles in this and in another partition."""
    none = np.zeros(0, np.int64)
    edge, triangles = np.array([1], np.int32), np.array([elsewhere], np.int32)
    reply = Reply(edge, triangles, GhostEdges(none.astype(np.int32), none, none))
    found = Counted(np.array([3, here], np.int32), np.zeros(2, np.bool_), {}, {}, bundle(0, {}))
    return supports(found, {1: reply})


@pytest.mark.parametrize("here", [MAX_TRIANGLES - 9, 2**31 - 1])
def test_too_many_triangles_of_one_edge_are_refused(here: int) -> None:
    assert counted(MAX_TRIANGLES - 10, 10).tolist() == [3, MAX_TRIANGLES]
    with pytest.raises(OutOfRoom, match=f"an edge is in {here + 10:,} triangles, over the 268,435,455 that can be"):
        counted(here, 10)


def test_counts_and_marks_cannot_be_confused() -> None:
    """The count of a ghost stays above any edge's count, even after the most possible decrements."""
    assert UNCOUNTED - MAX_TRIANGLES > MAX_TRIANGLES + 1
    assert GONE + MAX_TRIANGLES < 0
    cascade = resources.files("edgemill.kernels.cuda").joinpath("cascade.cuh").read_text()
    assert "constexpr int WIDTH = 1 << 27;" in cascade
    assert MAX_TRIANGLES_ON_GPU < 2**27 and GONE + 2**27 < -3 * 2**27


def test_the_limit_of_triangles_is_lower_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    check_supports(np.array([MAX_TRIANGLES_ON_GPU + 1], np.int32))
    monkeypatch.setattr("edgemill.kernels.on_host", lambda array: False)
    check_supports(np.array([MAX_TRIANGLES_ON_GPU], np.int32))
    with pytest.raises(
        OutOfRoom, match=r"in 134,217,728 triangles, over the 134,217,727 .*use cluster\.device=cpu, or"
    ):
        check_supports(np.array([MAX_TRIANGLES_ON_GPU + 1], np.int32))
