"""Positions, numbers and copies by all threads are those of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backends import BACKENDS, Backend
from edgemill import kernels
from edgemill.kernels.cpu.arrays.indexing import copied, numbers
from edgemill.kernels.cpu.arrays.sort import MANY
from edgemill.kernels.runtime.threads import kernel_threads

SIZES = [0, 1, 2, 1000, MANY, 3 * MANY + 1]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.int32, np.bool_])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.7, 1.0])
def test_nonzero(backend: Backend, threads: int, dtype: Any, size: int, share: float) -> None:
    random = np.random.default_rng(size)
    values = np.where(random.random(size) < share, random.integers(-9, 9, size), 0).astype(dtype)
    with kernel_threads(threads):
        found = kernels.nonzero(backend.put(values, dtype))
    assert found.dtype == np.int32
    assert np.array_equal(backend.get(found), np.flatnonzero(values))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.7, 1.0])
def test_numbers_of_marked_values(backend: Backend, size: int, share: float) -> None:
    marked = np.random.default_rng(size).random(size) < share
    found = kernels.number_marked(backend.put(marked, np.bool_))
    assert found.dtype == np.int32
    assert np.array_equal(backend.get(found)[marked], np.arange(np.count_nonzero(marked)))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", SIZES)
def test_numbers_and_copies(threads: int, size: int) -> None:
    with kernel_threads(threads):
        found = numbers(size)
        again = copied(found)
    assert found.dtype == np.int32 and np.array_equal(found, np.arange(size))
    assert np.array_equal(again, found) and not np.shares_memory(again, found)
