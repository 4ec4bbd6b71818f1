"""λ equals the oracle's for every method, number of workers and form of the input; so do bounds on the way."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import bounding
import known_graphs
import oracles
import strategies
from edgemill.kernels.cpu.peeling import filtering
from edgemill.tasks.bound.bisection import Halves, bisection_intervals, highest_lambda
from edgemill.tasks.bound.fixpoint import Bounds, fixpoint_intervals
from edgemill.tasks.errors import InternalError
from examples import examples
from held_graphs import HeldGraph, held_graph

VERTICES = 14
CHAIN = [*combinations(range(60, 68), 2), *((v, v + step) for step in (1, 2, 3) for v in range(61 - step))]
"""Tetrahedra in a row, and a clique at one end."""


def check(graph: HeldGraph, expected: dict[tuple[int, int], int]) -> None:
    for name, method in bounding.METHODS.items():
        low, high = graph.bounds(method)
        assert low == high == expected, name


@given(
    graph=strategies.simple_graphs(VERTICES),
    buckets=st.integers(1, 4),
    order=st.permutations(range(VERTICES)),
    drawn=st.data(),
)
@settings(max_examples=examples(300))
def test_drawn_graphs(graph: strategies.EdgeList, buckets: int, order: list[int], drawn: st.DataObject) -> None:
    """Relabelled, permuted and reversed rows with duplicates and self-loops have the λ of the plain graph."""
    expected = oracles.brute_force_lambda(graph)
    assert expected == oracles.networkx_lambda(graph)
    rows = [(3 * order[u] - 20, 3 * order[v] - 20) for u, v in drawn.draw(strategies.messy_rows(graph, VERTICES))]
    relabelled = {
        (3 * min(order[u], order[v]) - 20, 3 * max(order[u], order[v]) - 20): lam for (u, v), lam in expected.items()
    }
    check(held_graph(rows, buckets), relabelled)


@given(rows=strategies.edge_lists(VERTICES), after=st.integers(0, 4), workers=st.integers(1, 3))
@settings(max_examples=examples(200))
def test_intervals_contain_lambda_at_every_iteration(rows: strategies.EdgeList, after: int, workers: int) -> None:
    """And a search that stopped there ends at λ, on another number of workers."""
    expected = oracles.brute_force_lambda(rows)
    graph = held_graph(rows)
    for stop in (after, None):
        for low, high in (
            graph.bounds(lambda own, most=stop: bounding.band(own, most, workers)),  # type: ignore[misc]
            graph.bounds(lambda own, most=stop: bounding.fixpoint(own, "hindex", most, workers)),  # type: ignore[misc]
            graph.bounds(lambda own, most=stop: bounding.fixpoint(own, "tridn", most, workers)),  # type: ignore[misc]
        ):
            assert low.keys() == high.keys() == expected.keys()
            assert all(low[edge] <= lam <= high[edge] for edge, lam in expected.items())
            assert stop is not None or low == high
    own = graph.subgraph
    for bounds in bounding.lowered(own, "tridn", after, workers):
        done = bounding.lowered(own, "tridn", None, 4 - workers, bounds)[0]
        assert graph.values(fixpoint_intervals(own, done).low) == expected
        assert (done.left, bounds.levels) == (0, min(after, done.levels))
    for halves in bounding.halved(own, after, workers):
        ended = bounding.halved(own, None, 4 - workers, halves)[0]
        assert graph.values(bisection_intervals(own, ended).low) == expected
        assert (ended.left, halves.levels) == (0, min(after, ended.levels))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_larger_graphs(seed: int) -> None:
    """Dense parts of several sizes in a sparse graph: filters cascade, and rows are compacted."""
    rng = np.random.default_rng(seed)
    rows = [(int(u), int(v)) for u, v in rng.integers(0, 300, (900, 2))]
    for size in range(4, 22):
        members = rng.choice(300, size, replace=False).tolist()
        rows += [pair for pair in combinations(members, 2) if rng.random() < 0.9]
    check(held_graph(rows), oracles.networkx_lambda(rows))


def test_a_chain_that_is_removed_from_its_ends() -> None:
    """Filters remove edges from both ends, and each removal must reach the next worker."""
    check(held_graph(CHAIN), oracles.networkx_lambda(CHAIN))


@pytest.mark.skipif(known_graphs.SKIP_REASON is not None, reason=str(known_graphs.SKIP_REASON))
@pytest.mark.parametrize("name", [pytest.param("email-Eu-core", marks=pytest.mark.slow), "ca-GrQc"])
def test_methods_agree_on_real_graphs(name: str) -> None:
    source, target, lam = known_graphs.known_graph(name).lambda_table()
    edges = list(zip(source.tolist(), target.tolist(), strict=True))
    check(held_graph(edges), dict(zip(edges, lam.tolist(), strict=True)))


@given(st.lists(st.integers(0, 9), max_size=60))
def test_the_highest_lambda(support: list[int]) -> None:
    """By its definition: enough edges have at least as many triangles."""
    fits = [k for k in range(10) if sum(count >= k for count in support) >= (k + 1) * (k + 2) // 2]
    assert highest_lambda(np.array(support, np.int32)) == max(fits, default=0)


@pytest.mark.parametrize("workers", [2, 3])
def test_all_workers_end_with_the_same_and_tell_what_they_did(workers: int) -> None:
    own = held_graph(CHAIN).subgraph
    for states in (bounding.lowered(own, "hindex", None, workers), bounding.halved(own, None, workers)):
        alike = {field: len({array.tobytes() for array in arrays}) for field, arrays in columns_of(states).items()}
        assert set(alike.values()) == {1}
        done = states[0].iterations
        assert done[0, 0] > 0 and done[-1, 4] == 0 and done[:, 1].sum() > 0
        assert all(state.iterations[:, 2].sum() > 0 for state in states)


def columns_of(states: Sequence[Bounds | Halves]) -> dict[str, list[NDArray[np.int32]]]:
    """The arrays that are the same on all workers."""
    names = [name for name in vars(states[0]) if name != "iterations"]
    return {name: [getattr(state, name) for state in states] for name in names}


def test_a_change_that_does_not_arrive_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    own = held_graph(CHAIN).subgraph
    pack = filtering.pack_range

    def loses(delta: NDArray[np.int32], first: int, stop: int) -> tuple[NDArray[np.uint32], int]:
        words, total = pack(delta, first, stop)
        return words, total + bool(total)

    monkeypatch.setattr(filtering, "pack_range", loses)
    with pytest.raises(InternalError, match="weighted sum"):
        bounding.lowered(own, "tridn", None, 2)
