"""λ equals the oracle's for every schedule, partitioning and form of the input."""

from __future__ import annotations

from itertools import combinations
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bounding
import known_graphs
import oracles
import strategies
from cut_graphs import CutGraph, cut_graph
from examples import examples

VERTICES = 14


def check(graph: CutGraph, expected: dict[tuple[int, int], int]) -> None:
    for schedule in bounding.schedules(len(graph.owned)):
        low, high = graph.bounds(schedule)
        assert low == high == expected, schedule


@given(
    graph=strategies.simple_graphs(VERTICES),
    partitioning=strategies.partitionings(VERTICES, 6),
    order=st.permutations(range(VERTICES)),
    drawn=st.data(),
)
@settings(max_examples=examples(500))
def test_drawn_graphs(
    graph: strategies.EdgeList, partitioning: strategies.Partitioning, order: list[int], drawn: st.DataObject
) -> None:
    """Relabelled, permuted and reversed rows with duplicates and self-loops, in any assignment, have the λ of the plain
    graph.
    """
    expected = oracles.brute_force_lambda(graph)
    assert expected == oracles.networkx_lambda(graph)
    rows = [(3 * order[u] - 20, 3 * order[v] - 20) for u, v in drawn.draw(strategies.messy_rows(graph, VERTICES))]
    relabelled = {
        (3 * min(order[u], order[v]) - 20, 3 * max(order[u], order[v]) - 20): lam for (u, v), lam in expected.items()
    }
    check(cut_graph(rows, partitioning.count, partitioning.part), relabelled)


@pytest.mark.slow
@given(
    rows=strategies.edge_lists(VERTICES),
    partitions=st.sampled_from([1, 2, 3, 7, 16, 129]),
    method=st.sampled_from(["range", "hash"]),
)
@settings(max_examples=examples(200))
def test_both_partitioners(rows: strategies.EdgeList, partitions: int, method: Literal["range", "hash"]) -> None:
    check(cut_graph(rows, partitions, method), oracles.brute_force_lambda(rows))


@given(
    rows=strategies.edge_lists(VERTICES), partitioning=strategies.partitionings(VERTICES, 4), after=st.integers(0, 4)
)
@settings(max_examples=examples(200))
def test_intervals_contain_lambda_at_every_step(
    rows: strategies.EdgeList, partitioning: strategies.Partitioning, after: int
) -> None:
    expected = oracles.brute_force_lambda(rows)
    graph = cut_graph(rows, partitioning.count, partitioning.part)
    for found in (
        graph.bounds(lambda subgraphs: bounding.band(subgraphs, after)),
        graph.bounds(lambda subgraphs: bounding.fixpoint(subgraphs, "hindex", after)),
        graph.bounds(lambda subgraphs: bounding.fixpoint(subgraphs, "tridn", after)),
    ):
        low, high = found
        assert low.keys() == high.keys() == expected.keys()
        assert all(low[edge] <= lam <= high[edge] for edge, lam in expected.items())


def test_a_triangle_over_three_partitions() -> None:
    """No partition has the whole triangle: merging partial counts by their maximum would give 0."""
    graph = cut_graph([(0, 1), (1, 2), (0, 2)], 3, np.array([0, 1, 2], np.int16))
    check(graph, dict.fromkeys([(0, 1), (1, 2), (0, 2)], 1))


def test_four_vertices_over_two_partitions() -> None:
    """Each partition sees one triangle of (u, v): merging partial counts by their maximum would give 1."""
    rows = list(combinations(range(4), 2))  # u, v, w1, w2
    graph = cut_graph(rows, 2, np.array([0, 1, 0, 1], np.int16))
    assert graph.values([subgraph.support for subgraph in graph.subgraphs])[0, 1] == 2
    check(graph, dict.fromkeys(rows, 2))


@pytest.mark.parametrize("partitions", [1, 2, 5])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_larger_graphs(seed: int, partitions: int) -> None:
    """Dense parts of several sizes in a sparse graph: filters cascade over partitions, and rows are compacted."""
    rng = np.random.default_rng(seed)
    rows = [(int(u), int(v)) for u, v in rng.integers(0, 300, (900, 2))]
    for size in range(4, 22):
        members = rng.choice(300, size, replace=False).tolist()
        rows += [pair for pair in combinations(members, 2) if rng.random() < 0.9]
    check(cut_graph(rows, partitions, "hash"), oracles.networkx_lambda(rows))


def test_a_chain_that_is_removed_from_its_ends() -> None:
    """Tetrahedra in a row: filters remove edges from both ends, and each removal must reach the next partition."""
    length = 60
    rows = [(v, v + step) for step in (1, 2, 3) for v in range(length + 1 - step)]
    expected = oracles.networkx_lambda(rows)
    for part in (np.arange(length + 1) % 3, np.arange(length + 1) // 7 % 2):
        check(cut_graph(rows, 3, part.astype(np.int16)), expected)


@pytest.mark.skipif(known_graphs.SKIP_REASON is not None, reason=str(known_graphs.SKIP_REASON))
@pytest.mark.parametrize("name", [pytest.param("email-Eu-core", marks=pytest.mark.slow), "ca-GrQc"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_schedules_agree_on_real_graphs(name: str, partitions: int) -> None:
    source, target, lam = known_graphs.known_graph(name).lambda_table()
    edges = list(zip(source.tolist(), target.tolist(), strict=True))
    check(cut_graph(edges, partitions, "hash"), dict(zip(edges, lam.tolist(), strict=True)))
