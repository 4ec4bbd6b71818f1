"""Triangles and lookups, against Python's sets and products of matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from backends import BACKENDS, Backend
from edgemill import kernels
from edgemill.kernels.cpu.arrays.sort import MANY
from edgemill.kernels.cpu.triangles import count_whole
from edgemill.kernels.runtime.threads import kernel_threads

VERTICES = 12
everywhere = pytest.mark.parametrize("backend", BACKENDS)
threads = pytest.mark.parametrize("threads", [1, 2])
SHARES = (1, 2, 3, 5)


def oriented(graph: strategies.EdgeList) -> tuple[list[tuple[int, int]], list[int]]:
    """Sorted edges low → high, and where each vertex's row starts."""
    edges = sorted({(min(edge), max(edge)) for edge in graph})
    lows = [low for low, _ in edges]
    return edges, [sum(low < vertex for low in lows) for vertex in range(VERTICES + 1)]


@everywhere
@threads
@given(graph=strategies.simple_graphs(VERTICES))
def test_a_whole_graph(backend: Backend, threads: int, graph: strategies.EdgeList) -> None:
    edges, starts = oriented(graph)
    with kernel_threads(threads):
        support = kernels.supports(backend.put(starts, np.int64), backend.put([high for _, high in edges]))
    check(edges, backend.get(support))


@everywhere
@threads
def test_a_whole_graph_with_hubs(backend: Backend, threads: int) -> None:
    """Lists of all lengths, so that either of two lists is the shorter one."""
    random = np.random.default_rng(5)
    ends = np.sort((2000 * random.random((2, 700_000)) ** 2).astype(np.int64), axis=0)
    low, high = np.unique(ends[:, ends[0] != ends[1]], axis=1)
    adjacent = np.zeros((2000, 2000), np.float32)
    adjacent[low, high] = adjacent[high, low] = 1
    with kernel_threads(threads):
        found = kernels.supports(backend.put(np.searchsorted(low, np.arange(2001)), np.int64), backend.put(high))
    assert len(high) >= MANY
    assert (backend.get(found) == (adjacent @ adjacent)[low, high]).all()


@threads
@given(graph=strategies.simple_graphs(VERTICES))
def test_shares_of_a_drawn_graph(threads: int, graph: strategies.EdgeList) -> None:
    """Disjoint shares of the triangles add up to all of them. Some have none, as few vertices make one chunk."""
    edges, starts = oriented(graph)
    offsets, high = np.array(starts, np.int64), np.array([high for _, high in edges], np.int32)
    for shares in SHARES:
        with kernel_threads(threads):
            parts = [count_whole(offsets, high, share, shares) for share in range(shares)]
        support, gain = (sum((part[i] for part in parts), np.zeros(len(edges), np.int32)) for i in (0, 1))
        check(edges, support + gain)


@threads
def test_shares_of_a_graph_with_hubs(threads: int) -> None:
    """Many chunks of lists, of which either of two may be the shorter one. Each of the shares has triangles."""
    random = np.random.default_rng(6)
    ends = np.sort((501 * random.random((2, 30_000)) ** 2).astype(np.int64), axis=0)
    low, high = np.unique(ends[:, ends[0] != ends[1]], axis=1)
    offsets, members = np.searchsorted(low, np.arange(502)), high.astype(np.int32)
    adjacent = np.zeros((501, 501), np.int64)
    adjacent[low, high] = adjacent[high, low] = 1
    expected = (adjacent @ adjacent)[low, high]
    for shares in SHARES:
        with kernel_threads(threads):
            parts = [np.add(*count_whole(offsets, members, share, shares)) for share in range(shares)]
        assert all(part.sum() > 1000 for part in parts)
        assert (sum(parts) == expected).all()


def check(edges: list[tuple[int, int]], support: np.ndarray) -> None:
    near: dict[int, set[int]] = {vertex: set() for vertex in range(VERTICES)}
    for low, high in edges:
        near[low].add(high)
        near[high].add(low)
    assert support.tolist() == [len(near[low] & near[high]) for low, high in edges]


@everywhere
@threads
@given(
    keys=st.sets(st.integers(-(2**40), 2**40) | st.integers(0, 40)),
    others=st.lists(st.integers(-(2**62), 2**62) | st.integers(0, 40)),
)
def test_lookup(backend: Backend, threads: int, keys: set[int], others: list[int]) -> None:
    ascending = sorted(keys)
    wanted = [*others, *ascending, *(key + 1 for key in ascending)]
    with kernel_threads(threads):
        found = kernels.lookup(backend.put(ascending, np.int64), backend.put(wanted, np.int64))
    expected = {key: i for i, key in enumerate(ascending)}
    assert backend.get(found).tolist() == [expected.get(value, -1) for value in wanted]
