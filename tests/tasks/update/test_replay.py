"""Insertions that are replayed in parts of levels, and over rows without the edges that have fallen."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from edgemill.kernels.cpu.adjacency import adjacency
from edgemill.kernels.cpu.update import keep_later, replay
from edgemill.kernels.graph import KEY_BITS, Topology
from edgemill.tasks.update.order import find_violation
from edgemill.tasks.update.updating import update_order
from edgemill.tasks.update.whole import order_from_nothing
from examples import examples

Pairs = NDArray[np.bool_]
"""[vertices, vertices] true at (low, high) for each edge."""


def topology(pairs: Pairs) -> Topology:
    low, high = np.nonzero(pairs)
    return Topology(low.astype(np.int32), high.astype(np.int32), len(pairs))


def lam_of(pairs: Pairs) -> NDArray[np.int32]:
    return order_from_nothing(topology(pairs))[1].lam


def dense_graph(random: np.random.Generator) -> Pairs:
    """Random edges, and cliques that overlap."""
    vertices = int(random.integers(8, 60))
    pairs = random.random((vertices, vertices)) < random.uniform(0.1, 0.9)
    for _ in range(int(random.integers(3))):
        members = random.permutation(vertices)[: vertices // 3]
        pairs[np.ix_(members, members)] = True
    return np.triu(pairs, 1)


def batch(random: np.random.Generator, pairs: Pairs) -> tuple[Pairs, Pairs]:
    """Edges that go, and edges that come: at random, or all of a vertex."""
    come, vertices = np.zeros_like(pairs), len(pairs)
    if random.random() < 0.3:
        vertex = int(random.integers(vertices))
        come[vertex, vertex + 1 :] = come[:vertex, vertex] = True
    else:
        one, other = random.integers(0, vertices, (2, int(random.choice([1, 3, 10, 60]))))
        come[np.minimum(one, other), np.maximum(one, other)] = one != other
    return pairs & (random.random(pairs.shape) < random.choice([0, 0, 0.02])), come & ~pairs


@pytest.mark.parametrize("at_once", [0, 5, 50])
@pytest.mark.parametrize("seed", range(3))
def test_levels_in_parts(seed: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Edges of a level fall before parts of it, and others stand meanwhile that fall at the level, too, or later."""
    monkeypatch.setattr(sys.modules[replay.__module__], "AT_ONCE", at_once)
    monkeypatch.setattr(sys.modules[replay.__module__], "SHORTEST", 1 + seed)
    random = np.random.default_rng([seed, at_once])
    nights = 0
    while nights < examples(60, 18):
        pairs = dense_graph(random)
        edges, (_, order) = topology(pairs), order_from_nothing(topology(pairs))
        for _ in range(6):
            go, come = batch(random, pairs)
            arguments = edges, order, go[edges.low, edges.high], topology(come)
            found, by_all = (update_order(*arguments, in_one_thread=in_one) for in_one in (True, False))
            pairs = (pairs & ~go) | come
            assert np.array_equal(found.order.lam, lam_of(pairs))
            assert find_violation(found.edges, found.order) is None
            assert np.array_equal(found.order.keys(), by_all.order.keys())
            edges, order = found.edges, found.order
            nights += 1


def test_parts_of_levels_look_at_fewer_triangles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many edges of a level fall a little later than before, and soon again."""
    random = np.random.default_rng(1)
    pairs = np.triu(random.random((300, 300)) < 0.3, 1)
    pairs[:, -1] = False
    come = np.zeros_like(pairs)
    come[random.permutation(299)[:135], -1] = True
    edges, (_, order) = topology(pairs), order_from_nothing(topology(pairs))
    expected, looked = lam_of(pairs | come), []
    for at_once in (10**9, 1000):
        monkeypatch.setattr(sys.modules[replay.__module__], "AT_ONCE", at_once)
        monkeypatch.setattr(sys.modules[replay.__module__], "SHORTEST", 1)
        found = update_order(edges, order, np.zeros(edges.edges, np.bool_), topology(come))
        assert np.array_equal(found.order.lam, expected)
        assert find_violation(found.edges, found.order) is None
        looked.append(found.triangles)
    assert looked[1] < looked[0] / 4


def test_rows_lose_the_edges_that_have_fallen() -> None:
    pairs = np.triu(np.random.default_rng(1).random((30, 30)) < 0.4, 1)
    edges = topology(pairs)
    level = np.random.default_rng(2).integers(0, 9, edges.edges)
    rows = adjacency(edges)
    assert keep_later(rows, level.astype(np.int64) << KEY_BITS, 4 << KEY_BITS) == np.count_nonzero(level >= 4)
    left = np.zeros_like(pairs)
    left[edges.low, edges.high] = level >= 4
    for vertex, (begin, length) in enumerate(zip(rows.begin, rows.length, strict=True)):
        own = slice(begin, begin + length)
        assert rows.neighbour[own].tolist() == np.flatnonzero(left[vertex] | left[:, vertex]).tolist()
        assert (level[rows.edge[own]] >= 4).all()
