"""Gather and scatter of few and of many values, against NumPy's, and sorting of positions by their keys."""

from __future__ import annotations

import numpy as np
import pytest

from backends import BACKENDS, Backend
from edgemill import kernels
from edgemill.kernels.cpu.arrays.sort import MANY, by_key
from edgemill.kernels.runtime.threads import kernel_threads

LENGTHS = [0, 1, 1000, MANY, 3 * MANY + 1]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("length", LENGTHS)
def test_take_and_store(backend: Backend, index_type: type, length: int) -> None:
    random = np.random.default_rng(length)
    index, values = random.permutation(length), random.integers(-(2**31), 2**31, length)
    there = backend.put(index, index_type), backend.put(values)
    assert (backend.get(kernels.take(there[1], there[0])) == values[index]).all()
    target, expected = backend.put(np.zeros(length)), np.zeros(length, np.int64)
    expected[index] = values
    kernels.store(target, *there)
    assert (backend.get(target) == expected).all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("lengths", [[0], [3], [2, 0, 1], [MANY, 1, MANY + 7]])
def test_join(backend: Backend, lengths: list[int]) -> None:
    parts = [np.arange(length, dtype=np.int32) + 10 * i for i, length in enumerate(lengths)]
    joined = kernels.join([backend.put(part) for part in parts])
    assert joined.dtype == np.int32 and (backend.get(joined) == np.concatenate(parts)).all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("keys", [1, 2, 3000, 5_000_000])
@pytest.mark.parametrize("length", LENGTHS)
def test_positions_by_key(threads: int, keys: int, length: int) -> None:
    random = np.random.default_rng(keys)
    key = random.integers(0, keys, 2 * length + 1).astype(np.int32)
    positions = random.permutation(2 * length + 1)[:length].astype(np.int32)
    with kernel_threads(threads):
        found = by_key(key, positions, keys)
    assert (found == positions[np.argsort(key[positions], kind="stable")]).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_many_pairs(threads: int) -> None:
    low, high = np.random.default_rng(1).integers(0, 40_000, (2, 2 * MANY)).astype(np.int32)
    with kernel_threads(threads):
        found = kernels.order_pairs(low, high, 40_000, 40_000)
    assert found.dtype == np.int32 and (found == np.lexsort((high, low))).all()
