"""Rows that take batches, against a set of pairs."""

from __future__ import annotations

import inspect
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from backends import BACKENDS, Backend
from edgemill.kernels.cpu.update import dynamic_rows as on_cpu
from edgemill.kernels.dynamic_rows import dynamic_rows
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.update import dynamic
from edgemill.tasks.update.dynamic import DynamicRows
from examples import examples
from foreign import elsewhere, to_foreign, with_kernels

VERTICES = 9
ENDS = st.tuples(st.integers(0, VERTICES - 1), st.integers(0, VERTICES - 1))
CLIQUE = list(combinations(range(VERTICES), 2))
BATCHES = st.lists(st.tuples(st.booleans(), st.one_of(st.lists(ENDS, max_size=20), st.just(CLIQUE))), max_size=12)
Drawn = list[tuple[bool, list[tuple[int, int]]]]


def check(rows: DynamicRows, batches: Drawn, put: Any, get: Any) -> None:
    known = set[tuple[int, int]]()
    for insert, batch in batches:
        ends = [put(end) for end in np.array(batch, np.int32).reshape(-1, 2).T]
        before, pairs = len(known), oracles.simple_edges(batch)
        known = known | pairs if insert else known - pairs
        changed = rows.insert(*ends) if insert else rows.delete(*ends)
        assert changed == abs(len(known) - before) and rows.edges == len(known)
        low, high = rows.pairs()
        assert list(zip(get(low).tolist(), get(high).tolist(), strict=True)) == sorted(known)
        if rows.supports:
            expected = oracles.brute_force_support(known)
            assert get(rows.supports_of(low, high)).tolist() == [expected[pair] for pair in sorted(known)]


def space_of(backend: Backend) -> MemorySpace:
    return MemorySpace.HOST if backend.name == "cpu" else MemorySpace.DEVICE


@pytest.mark.parametrize("backend", BACKENDS)
@given(batches=BATCHES, supports=st.booleans())
@settings(max_examples=examples(150))
def test_batches(backend: Backend, batches: Drawn, supports: bool) -> None:
    """With loops, repeated pairs, edges that are there and pairs that are no edges."""
    check(DynamicRows(VERTICES, supports, space_of(backend)), batches, backend.put, backend.get)


@given(batches=BATCHES)
@settings(max_examples=examples(60))
def test_batches_elsewhere(batches: Drawn) -> None:
    """Nothing but kernels reads the rows, so they can lie on a GPU."""
    with with_kernels(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(dynamic, "dynamic_rows", lambda _: elsewhere(on_cpu))
        check(DynamicRows(VERTICES, True, MemorySpace.DEVICE), batches, to_foreign, lambda array: array.get())


@pytest.mark.parametrize("backend", BACKENDS)
def test_large_batches(backend: Backend) -> None:
    """Supports after batches of random edges, in several threads, are those counted from nothing."""
    rng = np.random.default_rng(3)
    ends = backend.put(rng.integers(0, 300, (2, 20_000)))
    rows = DynamicRows(300, space=space_of(backend))
    for start in range(0, 20_000, 5_000):
        rows.insert(*ends[:, start : start + 5_000])
    rows.delete(*ends[:, 2_500:7_500])
    whole = DynamicRows(300, space=space_of(backend))
    whole.insert(*rows.pairs())
    adjacent = np.zeros((300, 300), np.int32)
    low, high = (backend.get(end) for end in rows.pairs())
    adjacent[low, high] = adjacent[high, low] = 1
    expected = (adjacent @ adjacent)[low, high]
    for one in (rows, whole):
        assert np.array_equal(backend.get(one.supports_of(*rows.pairs())), expected)


def test_twins_have_the_same_functions() -> None:
    on_gpu = pytest.importorskip("edgemill.kernels.gpu.dynamic_rows", exc_type=ImportError)
    names = [name for name, value in vars(on_gpu).items() if inspect.isfunction(value) and name[0] != "_"]
    names.remove("starts_of")
    for name in names:
        own, other = getattr(on_gpu, name), getattr(on_cpu, name)
        found = [list(inspect.signature(getattr(one, "py_func", one)).parameters) for one in (own, other)]
        assert found[0] == found[1], name
    assert on_gpu.FLAG == on_cpu.FLAG and len(names) == 9


def test_arrays_of_others_are_refused() -> None:
    with pytest.raises(TypeError, match="NumPy's and CuPy's arrays, not foreign's"):
        dynamic_rows(to_foreign(np.zeros(1)))
