"""Estimates of λ from min-wise samples: against plain loops, and their error against definitions."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgemill.kernels.cpu import minwise
from edgemill.tasks.bound.intervals import Intervals
from edgemill.tasks.bound.peel import find_lambda, find_triangles
from edgemill.tasks.bound.streamdn import StreamError, StreamEstimate, error_of, estimate_stream
from examples import examples
from vertex_programs import Drawn, graphs

FEW = settings(max_examples=examples(40))


def ends_of(graph: Drawn) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Distinct edges without loops, ascending."""
    edges = sorted({(min(e), max(e)) for e in graph.edges if e[0] != e[1]})
    both = np.array(edges, np.int32).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()


def hashed(vertex: int, permutation: int) -> int:
    word = (vertex + (permutation + 1) * 0x9E3779B97F4A7C15) % 2**64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word = (word ^ word >> shift) * factor % 2**64
    return word ^ word >> 31


@given(graphs(), st.integers(1, 5), st.data())
@FEW
def test_kernels(graph: Drawn, permutations: int, data: st.DataObject) -> None:
    low, high = ends_of(graph)
    edges = list(zip(low.tolist(), high.tolist(), strict=True))
    near: list[dict[int, int]] = [{} for _ in range(graph.vertices)]
    for e, (u, v) in enumerate(edges):
        near[u][v] = near[v][u] = e
    vertex, edge = minwise.minwise_samples(low, high, graph.vertices, permutations)
    for v, neighbours in enumerate(near):
        for i in range(permutations):
            sample = min(neighbours, key=lambda w, i=i: hashed(w, i), default=-1)  # type: ignore[misc]
            assert (vertex[v, i], edge[v, i]) == (sample, neighbours.get(sample, -1))
    common = [[i for i in range(permutations) if vertex[u, i] == vertex[v, i]] for u, v in edges]
    assert minwise.minwise_matches(low, high, vertex).tolist() == [len(found) for found in common]
    bound = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(edges), max_size=len(edges))), np.int32)
    scale = np.array(data.draw(st.lists(st.sampled_from([0.3, 1.0, 2.5]), min_size=len(low), max_size=len(low))))
    lowered = minwise.lower_by_samples(low, high, vertex, edge, scale, bound)
    for e, (u, v) in enumerate(edges):
        values = [min(bound[edge[u, i]], bound[edge[v, i]]) for i in common[e]]
        best = [t for t in range(10) if int(scale[e] * sum(value >= t for value in values) + 0.5) >= t]
        assert lowered[e] == min(bound[e], max(best))


def test_kernels_refuse_other_arrays() -> None:
    with pytest.raises(TypeError, match="min-wise samples"):
        minwise.minwise_samples([0], [1], 2, 1)  # type: ignore[arg-type]


def estimated(graph: nx.Graph, permutations: int) -> tuple[StreamEstimate, NDArray[np.int32]]:
    ends = np.array(sorted((min(e), max(e)) for e in graph.edges)).reshape(-1, 2)
    _, subgraph = find_triangles(ends[:, 0], ends[:, 1], len(graph))
    known = find_lambda(subgraph)
    return estimate_stream(subgraph, Intervals(known, known), permutations), known


def test_estimates_of_known_graphs() -> None:
    clique, exact = estimated(nx.complete_graph(30), 1024)
    assert set(exact.tolist()) == {28} and clique.error is not None
    assert np.abs(clique.estimate - 28).max() <= 2 and clique.error.top_tenth <= 2 / 28
    tree, exact = estimated(nx.balanced_tree(2, 4), 8)
    assert not tree.estimate.any() and tree.error == StreamError(0, 0, 0, 1, 1, 0, 0)
    graph = nx.powerlaw_cluster_graph(400, 8, 0.8, seed=2)
    errors = [estimated(graph, permutations)[0].error for permutations in (16, 128, 1024)]
    means = [error.mean for error in errors if error is not None]
    assert means[0] > means[1] > means[2] and means[2] < 0.25


def test_an_unknown_lambda_gives_no_error() -> None:
    ends = np.array(list(nx.complete_graph(5).edges))
    _, subgraph = find_triangles(ends[:, 0], ends[:, 1], 5)
    low, high = np.zeros(10, np.int32), np.full(10, 3, np.int32)
    assert estimate_stream(subgraph, Intervals(low, high), 8).error is None


def test_errors_by_definition() -> None:
    found = error_of(
        np.array([10, 9, 0, 2], np.int32), np.array([10, 10, 1, 1], np.int32), np.full(4, 8.0), np.full(4, 10, np.int32)
    )
    assert found == StreamError(0.55, (0.1 + 1 + 1) / 4, 0.0, 0.25, 0.5, 0.5, 0.2)
