"""Positions and numbers by all threads are those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from edgemill.kernels.cpu.arrays.gather import copied, nonzero, numbers
from edgemill.kernels.cpu.arrays.sort import MANY
from edgemill.kernels.runtime.threads import kernel_threads


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 1000, MANY + 1])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.7, 1.0])
def test_nonzero(threads: int, size: int, share: float) -> None:
    rng = np.random.default_rng(size)
    values = np.where(rng.random(size) < share, rng.integers(-9, 9, size), 0).astype(np.int32)
    with kernel_threads(threads):
        found = nonzero(values)
    assert found.dtype == np.int32
    assert np.array_equal(found, np.flatnonzero(values))


@pytest.mark.parametrize("size", [0, 1, 7, MANY + 1])
def test_numbers_and_copies(size: int) -> None:
    found = numbers(size)
    assert found.dtype == np.int32
    assert np.array_equal(found, np.arange(size))
    again = copied(found)
    assert np.array_equal(again, found)
    assert not np.shares_memory(again, found)
