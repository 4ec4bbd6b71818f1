"""The order of pairs on each backend, against Python's sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backends import BACKENDS, Backend, OnGpu
from edgemill.kernels import order_pairs
from edgemill.kernels.cpu.arrays.sort import MANY
from edgemill.kernels.runtime.threads import kernel_threads
from examples import examples

PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60)


def check(backend: Backend, pairs: list[tuple[int, int]]) -> None:
    low, high = (backend.put(ends) for ends in np.array(pairs, np.int32).reshape(-1, 2).T.copy())
    order = backend.get(order_pairs(low, high, 10, 12))
    assert order.tolist() == sorted(range(len(pairs)), key=lambda i: (pairs[i], i))


@pytest.mark.parametrize("backend", BACKENDS)
@given(pairs=PAIRS)
def test_pairs_are_ordered(backend: Backend, pairs: list[tuple[int, int]]) -> None:
    check(backend, pairs)


@pytest.mark.gpu
@given(pairs=PAIRS, at_once=st.integers(1, 20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(100))
def test_pairs_are_ordered_by_ranges(
    pairs: list[tuple[int, int]], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("edgemill.kernels.gpu.arrays.sort.SORTED_AT_ONCE", at_once)
        check(OnGpu(), pairs)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("lows", "highs"), [(1, 1), (3, 2**20), (2**20, 5), (3_000_000, 4_000_000)])
def test_many_pairs_are_ordered(threads: int, lows: int, highs: int) -> None:
    """In one run and in many, some of them empty; half of the pairs have one low end, and some occur twice."""
    random = np.random.default_rng(lows)
    count = 3 * MANY + 1
    low, high = random.integers(0, lows, count, np.int32), random.integers(0, highs, count, np.int32)
    low[::2] = lows - 1
    low[-1000:], high[-1000:] = low[:1000], high[:1000]
    with kernel_threads(threads):
        found = order_pairs(low, high, lows, highs)
    assert np.array_equal(found, np.lexsort((high, low)))
