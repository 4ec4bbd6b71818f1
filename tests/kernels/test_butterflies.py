"""Butterflies, and λ by butterflies, against brute force, NetworkX, and complete graphs of two sides."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.graphs.bitruss import bitruss_numbers, butterflies_of
from tests.support.graphs.examples import examples

from edgemill.kernels import cpu
from edgemill.kernels.cpu.butterflies import count_butterflies
from edgemill.kernels.cpu.peeling.blooms import ButterflyPeeling
from edgemill.kernels.graph import Topology
from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.tasks.graph import wedges_to_walk
from edgemill.tasks.ingest import OwnedEdges

Pair = tuple[int, int]


def topology(edges: Iterable[Pair]) -> tuple[Topology, list[Pair]]:
    """The graph whose sides are the first and the second numbers, and its edges in the order of the topology."""
    given = sorted(set(edges))
    names = sorted({(0, left) for left, _ in given} | {(1, right) for _, right in given})
    degree = {name: sum(edge[name[0]] == name[1] for edge in given) for name in names}
    rank = {name: at for at, name in enumerate(sorted(names, key=lambda name: (degree[name], name)))}
    ranked = sorted((sorted((rank[0, left], rank[1, right])), (left, right)) for left, right in given)
    low, high = (np.array([ends[end] for ends, _ in ranked], np.int32) for end in range(2))
    return Topology(low, high, len(names)), [edge for _, edge in ranked]


def found(edges: Iterable[Pair], most_bytes: int = 2**40) -> tuple[dict[Pair, int], dict[Pair, int], int]:
    """The butterflies of each edge, λ, and the number of indexes that were built."""
    whole, names = topology(edges)
    support = count_butterflies(cpu.adjacency(whole), whole.edges).support
    some = np.flatnonzero(support)
    low = np.zeros(whole.edges, np.int32)
    peeling = ButterflyPeeling(Topology(whole.low[some], whole.high[some], whole.vertices), support[some], most_bytes)
    while peeling.left:
        peeling.advance()
        rest = peeling.count >= 0
        assert int(rest.sum()) == peeling.left and bool((peeling.low[~rest] >= peeling.level).all())
    low[some] = peeling.low
    return dict(zip(names, support.tolist(), strict=True)), dict(zip(names, low.tolist(), strict=True)), peeling.bands


def complete(left: int, right: int, first: int = 0) -> list[Pair]:
    return [(first + a, first + b) for a in range(left) for b in range(right)]


PAIRS = st.sets(st.tuples(st.integers(0, 7), st.integers(0, 6)), min_size=1, max_size=40)


@settings(max_examples=examples(200))
@given(PAIRS, st.sampled_from([1, 2]), st.sampled_from([0, 200, 500, 2**40]))
def test_brute_force(edges: set[Pair], threads: int, most_bytes: int) -> None:
    """Also in several bands, and in bands of one level, which need no index."""
    with kernel_threads(threads):
        support, lam, _ = found(edges, most_bytes)
    assert (support, lam) == (butterflies_of(edges), bitruss_numbers(edges))


@settings(max_examples=examples(40))
@given(PAIRS)
def test_swapped_sides(edges: set[Pair]) -> None:
    swapped = [(right, left) for left, right in edges]
    assert found(swapped)[1] == {(right, left): lam for (left, right), lam in found(edges)[1].items()}


@pytest.mark.parametrize("left", [1, 2, 5, 12])
@pytest.mark.parametrize("right", [1, 2, 9])
def test_complete_graphs_of_two_sides(left: int, right: int) -> None:
    """Each edge lies in (left - 1)(right - 1) butterflies, and that is its λ; also beside other such graphs."""
    edges = complete(left, right) + complete(3, 3, 100) + [(0, 100)]
    support, lam, _ = found(edges)
    assert {lam[edge] for edge in complete(left, right)} == {(left - 1) * (right - 1)}
    assert {lam[edge] for edge in complete(3, 3, 100)} == {4} and lam[0, 100] == 0
    assert all(lam[edge] <= support[edge] for edge in edges)


def test_bands_of_many_levels() -> None:
    """Complete graphs in a chain have far apart levels, and their index does not fit."""
    edges = [pair for size in range(2, 14) for pair in complete(size, size, 100 * size)]
    edges += [(100 * size, 100 * (size + 1)) for size in range(2, 13)]
    _, lam, one = found(edges)
    for most_bytes in (20_000, 2_000, 0):
        _, again, bands = found(edges, most_bytes)
        assert again == lam and (bands > 1 or not most_bytes)
    assert one == 1 and set(lam.values()) == {0, *((size - 1) ** 2 for size in range(2, 14))}


def test_a_hub_on_either_side_and_graphs_without_butterflies() -> None:
    star = [(0, right) for right in range(50)]
    assert set(found(star)[0].values()) == {0}
    two = star + [(1, right) for right in range(0, 50, 2)]
    support, lam, _ = found(two)
    assert support[1, 0] == 24 and lam[1, 0] == lam[0, 0] == 24 and lam[0, 1] == 0


def test_wedges_follow_from_degrees() -> None:
    edges = [*complete(4, 6), (0, 9), (5, 9), (6, 9), (5, 1)]
    whole, _ = topology(edges)
    rows: list[list[int]] = [[] for _ in range(whole.vertices)]
    for low, high in zip(whole.low.tolist(), whole.high.tolist(), strict=True):
        rows[low].append(high)
        rows[high].append(low)
    walked = sum(max(a, b) > middle for middle, row in enumerate(rows) for a, b in combinations(row, 2))
    offsets = np.searchsorted(whole.low, np.arange(whole.vertices + 1))
    none = np.zeros(0, np.int32)
    owned = OwnedEdges(np.arange(whole.vertices), offsets, whole.high, none.astype(np.int16), none)
    assert wedges_to_walk(owned) == walked


def test_counts_of_networkx() -> None:
    """Sums over vertices: `networkx.bipartite` counts squares by its clustering alone, so squares are cycles here."""
    graph = networkx.bipartite.random_graph(12, 10, 0.5, seed=4)
    edges = [(left, right - 12) for left, right in graph.edges]
    support, _, _ = found(edges)
    cycles = sum(len(cycle) == 4 for cycle in networkx.simple_cycles(graph, length_bound=4))
    assert sum(support.values()) == 4 * cycles
