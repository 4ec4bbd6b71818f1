"""Packed lists, triangles and lookups, against Python's sets."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from backends import BACKENDS, Backend
from edgemill import kernels
from edgemill.kernels.cpu.arrays.sort import MANY
from edgemill.kernels.cpu.whole_triangles import count_whole
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
@given(graph=strategies.simple_graphs(VERTICES), part=st.lists(st.integers(0, 2), min_size=VERTICES, max_size=VERTICES))
def test_own_lists(backend: Backend, threads: int, graph: strategies.EdgeList, part: list[int]) -> None:
    """The lists of partition 0 of three, in which only vertices of the partition have rows."""
    edges, offsets = oriented([edge for edge in graph if part[min(edge)] == 0])
    put = backend.put
    arguments = (
        put(offsets, np.int64),
        put([high for _, high in edges]),
        put(offsets, np.int64),
        put([high for _, high in edges]),
        put([p == 0 for p in part], np.bool_),
    )
    with kernel_threads(threads):
        support, gain, outer = map(backend.get, kernels.intersect(*arguments))
    check(edges, edges, part, support, gain, outer)


@everywhere
@threads
@given(graph=strategies.simple_graphs(VERTICES))
def test_a_whole_graph(backend: Backend, threads: int, graph: strategies.EdgeList) -> None:
    """The lists are the rows themselves, which each backend may make use of."""
    edges, starts = oriented(graph)
    offsets, high = backend.put(starts, np.int64), backend.put([high for _, high in edges])
    home = backend.put([True] * VERTICES, np.bool_)
    with kernel_threads(threads):
        support, gain, outer = map(backend.get, kernels.intersect(offsets, high, offsets, high, home))
    check(edges, edges, [0] * VERTICES, support, gain, outer)


@everywhere
@threads
def test_a_whole_graph_with_hubs(backend: Backend, threads: int) -> None:
    """Lists of all lengths, so that either of two lists is the shorter one. Equal to what copies of the lists give."""
    random = np.random.default_rng(5)
    ends = np.sort((2000 * random.random((2, 700_000)) ** 2).astype(np.int64), axis=0)
    low, high = np.unique(ends[:, ends[0] != ends[1]], axis=1)
    put = backend.put
    offsets = put(np.searchsorted(low, np.arange(2001)), np.int64)
    members, home = put(high), put(np.ones(2000), np.bool_)
    with kernel_threads(threads):
        found = kernels.intersect(offsets, members, offsets, members, home)
        expected = kernels.intersect(offsets, put(high), offsets, members, home)
    assert len(high) >= MANY and backend.get(found[0]).sum() > 100_000
    for values, others in zip(found, expected, strict=True):
        assert (backend.get(values) == backend.get(others)).all()


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
        check(edges, edges, [0] * VERTICES, support, gain, np.zeros(len(edges), np.bool_))


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


@everywhere
@threads
@given(graph=strategies.simple_graphs(VERTICES), part=st.lists(st.integers(0, 2), min_size=VERTICES, max_size=VERTICES))
def test_lists_of_others(backend: Backend, threads: int, graph: strategies.EdgeList, part: list[int]) -> None:
    """The lists that partition 1 packs for partition 0 are complete, and each triangle is found once."""
    put = backend.put
    sent, sent_offsets = oriented([edge for edge in graph if part[min(edge)] == 1])
    here, offsets = oriented([edge for edge in graph if part[min(edge)] == 0])
    packed = kernels.pack_lists(put(sent_offsets, np.int64), put([high for _, high in sent]), put(part, np.int16), 1, 3)
    assert 1 not in packed
    check_lists({q: tuple(map(backend.get, lists)) for q, lists in packed.items()}, sent, part)
    if 0 not in packed:
        return
    starts, entry = packed[0]
    members = [sent[e] for e in backend.get(entry).tolist()]
    local = {vertex for edge in here for vertex in edge}
    known = [high if high in local else -1 for _, high in members]  # a vertex without an edge here has no number here
    with kernel_threads(threads):
        found = kernels.intersect(
            starts,
            put(known),
            put(offsets, np.int64),
            put([high for _, high in here]),
            put([p == 0 for p in part], np.bool_),
        )
    support, gain, outer = map(backend.get, found)
    check(members, here, part, support, gain, outer)


def check_lists(packed: dict[int, tuple[np.ndarray, ...]], sent: list[tuple[int, int]], part: list[int]) -> None:
    """Partition q gets the part of each row that starts at its first member in q, if it has more than one member."""
    expected: dict[int, list[list[int]]] = {}
    for low in range(VERTICES):
        row = [e for e, edge in enumerate(sent) if edge[0] == low]
        for q in (0, 2):
            firsts = [i for i, e in enumerate(row) if part[sent[e][1]] == q and i + 1 < len(row)]
            if firsts:
                expected.setdefault(q, []).append(row[firsts[0] :])
    found = {q: [entry[a:b].tolist() for a, b in pairwise(starts.tolist())] for q, (starts, entry) in packed.items()}
    assert found == expected


def check(
    entries: list[tuple[int, int]],
    edges: list[tuple[int, int]],
    part: list[int],
    support: np.ndarray,
    gain: np.ndarray,
    outer: np.ndarray,
) -> None:
    rows: dict[int, list[int]] = {}
    for low, high in entries:
        rows.setdefault(low, []).append(high)
    closed: Counter[tuple[int, int]] = Counter()
    used: Counter[tuple[int, int]] = Counter()
    away = set()
    for a, row in rows.items():
        for b, c in combinations(sorted(row), 2):
            if (b, c) in edges and part[b] == 0:
                closed[b, c] += 1
                used[a, b] += 1
                used[a, c] += 1
                if part[c] != 0:
                    away.add((a, b))
    assert support.tolist() == [closed[edge] for edge in edges]
    assert gain.tolist() == [used[edge] for edge in entries]
    assert outer.tolist() == [edge in away for edge in entries]


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
