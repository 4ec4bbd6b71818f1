"""Searches by several threads, in graphs large enough that threads share lists of vertices and single rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, dijkstra

from edgemill.kernels.cpu.programs import frontiers
from edgemill.kernels.cpu.programs.breadth_first import search
from edgemill.kernels.cpu.programs.components import components
from edgemill.kernels.cpu.programs.shortest_paths import distances, predecessors
from edgemill.kernels.graph import InRows
from edgemill.kernels.runtime.threads import kernel_threads

LONG = 2 * frontiers.LONG_ROW


def hubs(count: int) -> tuple[int, NDArray[np.int64]]:
    """Hubs with long rows, two for each of whose leaves it shares with the next, and a path to a few other vertices."""
    leaf = np.arange(count * LONG // 2) + count
    of = np.arange(len(leaf)) // (LONG // 2)
    last = count + len(leaf)
    path = np.stack([np.arange(last - 1, last + 3), np.arange(last, last + 4)])
    pairs = np.concatenate([np.stack([of, leaf]), np.stack([(of + 1) % count, leaf]), path], axis=1)
    return last + 6, pairs


def drawn(vertices: int, degree: int) -> tuple[int, NDArray[np.int64]]:
    """A graph at random, with more vertices than a thread takes at a time, some of them alone."""
    return vertices, np.random.default_rng(7).integers(0, vertices, (2, vertices * degree // 2))


@pytest.fixture(scope="module", params=["3 hubs", "40 hubs", "random"])
def rows(request: pytest.FixtureRequest) -> InRows:
    """An undirected graph with weights 1 to 9."""
    name: str = request.param
    vertices, (low, high) = drawn(30_000, 3) if name == "random" else hubs(int(name.split()[0]))
    keys = np.unique(np.minimum(low, high) * vertices + np.maximum(low, high))
    low, high = np.divmod(keys[keys // vertices != keys % vertices], vertices)
    weight = np.random.default_rng(1).integers(1, 10, len(low)).astype(np.float64)
    target, source = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.lexsort((source, target))
    offsets = np.searchsorted(target[order], np.arange(vertices + 1))
    return InRows(offsets, source[order].astype(np.int32), np.concatenate([weight, weight])[order])


def matrix(rows: InRows) -> csr_matrix:
    return csr_matrix((rows.weights, rows.source, rows.offsets), shape=(rows.rows, rows.rows))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_searches(rows: InRows, threads: int) -> None:
    """Levels as SciPy's; each parent is the smallest neighbour a level above."""
    start = int(rows.source[0])
    known = dijkstra(matrix(rows), indices=start, unweighted=True)
    with kernel_threads(threads):
        level, parent, steps, _ = search(rows, rows, start)
    assert np.array_equal(np.where(level < 0, np.inf, level), known)
    assert steps == level.max() + 1
    target = np.repeat(np.arange(rows.rows), np.diff(rows.offsets))
    above = (level[rows.source] == level[target] - 1) & (level[target] > 0)
    least = np.full(rows.rows, rows.rows)
    np.minimum.at(least, target[above], rows.source[above])
    least[start] = start
    assert np.array_equal(parent, np.where(level < 0, -1, least))


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("width", [2.0, None])
def test_distances(rows: InRows, threads: int, width: float | None) -> None:
    """Distances as SciPy's; each predecessor is the smallest one on a shortest path."""
    start = int(rows.source[0])
    with kernel_threads(threads):
        distance, _, _ = distances(rows, start, width)
        before, missing, _ = predecessors(rows, distance, start)
    assert np.array_equal(distance, dijkstra(matrix(rows), indices=start))
    target = np.repeat(np.arange(rows.rows), np.diff(rows.offsets))
    tight = (distance[rows.source] + rows.weights == distance[target]) & np.isfinite(distance[target])
    least = np.full(rows.rows, rows.rows)
    np.minimum.at(least, target[tight], rows.source[tight])
    least[start] = start
    assert missing == 0
    assert np.array_equal(before, np.where(np.isinf(distance), -1, least))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_components(rows: InRows, threads: int) -> None:
    """Each component has the name of its smallest vertex."""
    number = np.arange(rows.rows, dtype=np.int64) + 7
    with kernel_threads(threads):
        found, lowered = components(rows, number, True)
    _, label = connected_components(matrix(rows), directed=False)
    _, first = np.unique(label, return_index=True)
    assert np.array_equal(found, number[first[label]])
    assert lowered == (found != number).sum()
