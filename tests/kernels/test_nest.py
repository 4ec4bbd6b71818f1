"""Components at all levels, on each backend, against SciPy's components at each level."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from backends import BACKENDS, Backend, OnGpu
from edgemill import kernels
from edgemill.kernels.cpu.nest import nest_few, nest_many, subtree_minima, subtree_sums
from edgemill.kernels.graph import Nested
from examples import examples

Drawn = list[tuple[int, int, int]]


def components(edges: NDArray[np.int32], vertices: int) -> NDArray[np.int32]:
    """[vertices] the component of each."""
    low, high, _ = edges.T
    ones = np.ones(len(edges), np.int8)
    label: NDArray[np.int32]
    _, label = connected_components(coo_array((ones, (low, high)), shape=(vertices, vertices)), directed=False)
    return label


def check(edges: NDArray[np.int32], vertices: int, found: Nested) -> None:
    level, least, parent = found.level, found.least, found.parent
    assert np.array_equal(np.lexsort((least, -level)), np.arange(len(found)))
    assert np.all((parent == -1) | (parent > np.arange(len(found))))
    assert np.all(level[parent[parent >= 0]] < level[parent >= 0])
    assert np.array_equal(level[found.edge], edges[:, 2])
    for k in range(int(level.max(initial=-1)) + 1):
        kept = edges[:, 2] >= k
        label = components(edges[kept], vertices)
        outermost = np.arange(len(found))  # the outermost component of k or more outermost each
        for x in range(len(found) - 1, -1, -1):
            if parent[x] >= 0 and level[parent[x]] >= k:
                outermost[x] = outermost[parent[x]]
        outer = outermost[found.edge[kept]]
        found_labels, expected_labels = outer.tolist(), label[edges[kept, 0]].tolist()
        assert (
            len(set(zip(found_labels, expected_labels, strict=True)))
            == len(set(found_labels))
            == len(set(expected_labels))
        )
        for x in set(found_labels):
            inside = label == label[least[x]]
            assert least[x] == np.flatnonzero(inside)[0]
            own = found.vertex[inside]
            assert np.all(outermost[own] == x)
    touched = np.zeros(vertices, np.bool_)
    touched[edges[:, :2]] = True
    assert np.array_equal(found.vertex >= 0, touched)
    highest = np.full(vertices, -1)
    for end in (0, 1):
        np.maximum.at(highest, edges[:, end], edges[:, 2])
    assert np.array_equal(level[found.vertex[touched]], highest[touched])


def nested(backend: Backend, edges: NDArray[np.int32], vertices: int) -> Nested:
    low, high, level = (backend.put(column) for column in edges.T)
    found = kernels.nest(low, high, level, vertices)
    names = ("vertex", "edge", "level", "least", "parent")
    return Nested(*(backend.get(getattr(found, name)) for name in names))


@pytest.mark.parametrize("backend", BACKENDS)
@given(
    drawn=st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19), st.integers(0, 6)), max_size=60),
)
@settings(max_examples=examples(200))
def test_drawn(backend: Backend, drawn: Drawn) -> None:
    """With loops and repeated edges."""
    edges = np.array(drawn, np.int32).reshape(-1, 3)
    check(edges, 20, nested(backend, edges, 20))


@pytest.mark.gpu
def test_more_components_than_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each edge is a component of its own, so that there is room for few of them at first."""
    # By its name alone, the module is hidden by the function.
    monkeypatch.setattr(importlib.import_module("edgemill.kernels.gpu.nest"), "MIN_ROOM", 4)
    places, levels = np.arange(999), np.random.default_rng(1).integers(0, 50, 1998)
    ends = np.concatenate([np.column_stack([2 * places, 2 * places + 1])] * 2)
    edges = np.column_stack([ends, levels]).astype(np.int32)
    check(edges, 2000, nested(OnGpu(), edges, 2000))


@given(
    drawn=st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19), st.integers(0, 6)), max_size=60),
)
@settings(max_examples=examples(200))
def test_by_a_forest(drawn: Drawn) -> None:
    """Components from a spanning forest, which large graphs have, and the forest itself."""
    edges = np.array(drawn, np.int32).reshape(-1, 3)
    low, high, level = edges.T.copy()
    for nest in (nest_few, nest_many):
        found, forest = nest(low, high, level, 20)
        check(edges, 20, found)
        for k in range(7):
            trees = 20 - len(np.unique(components(edges[level >= k], 20)))
            assert np.count_nonzero(forest & (level >= k)) == trees
            assert len(np.unique(components(edges[forest & (level >= k)], 20))) == 20 - trees


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("levels", [1, 7, 300, 5000])
def test_many_at_once(backend: Backend, levels: int) -> None:
    """So many edges of a level that GPU threads unite the same sets at the same time; and long chains."""
    rng = np.random.default_rng(levels)
    vertices = 20_000
    ends = rng.integers(0, vertices, (30_000, 2))
    chain = np.stack([np.arange(5_000), np.arange(5_000) + 1], axis=1)[rng.permutation(5_000)]
    ends = np.concatenate([ends, chain])
    edges = np.column_stack([ends, rng.integers(0, levels, len(ends))]).astype(np.int32)
    found = nested(backend, edges, vertices)
    if levels <= 7:
        check(edges, vertices, found)
    low, high, level = edges.T.copy()
    again, _ = nest_many(low, high, level, vertices)
    for name in ("vertex", "edge", "level", "least", "parent"):
        assert np.array_equal(getattr(found, name), getattr(again, name)), name


def test_sums_and_minima() -> None:
    parent = np.array([2, 2, 4, 4, -1, -1], np.int32)
    values = np.array([1, 2, 4, 8, 16, 32])
    assert subtree_sums(parent, values).tolist() == [1, 2, 7, 8, 31, 32]
    assert subtree_minima(parent, values[::-1].copy()).tolist() == [32, 16, 8, 4, 2, 1]
    assert values.tolist() == [1, 2, 4, 8, 16, 32]
