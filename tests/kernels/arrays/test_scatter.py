"""Scatter with a sum, a maximum and a count on each backend, against a loop."""

from __future__ import annotations

import numpy as np
import pytest

from backends import BACKENDS, Backend
from edgemill import kernels
from edgemill.kernels.cpu.arrays.sort import MANY


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [0, 1, 1000, MANY, MANY + 1])
def test_against_a_loop(backend: Backend, count: int) -> None:
    """Few and many values, which other kernels combine."""
    rng = np.random.default_rng(count)
    index, values = rng.integers(0, 99, count, np.int32), rng.integers(0, 2**31, count, np.int32)
    sums, most, times = [0] * 100, [0] * 100, [0] * 100
    for at, value in zip(index.tolist(), values.tolist(), strict=True):
        sums[at] += value
        most[at] = max(most[at], value)
        times[at] += 1
    own, own_values = backend.put(index), backend.put(values)
    assert backend.get(kernels.scatter_sum(own, own_values, 100)).tolist() == sums
    assert backend.get(kernels.scatter_max(own, own_values, 100)).tolist() == most
    found = backend.get(kernels.bincount(own, 100))
    assert found.dtype == np.int64
    assert found.tolist() == times


@pytest.mark.parametrize("count", [1000, MANY])
def test_indices_of_64_bits_are_counted(count: int) -> None:
    index = np.random.default_rng(1).integers(0, 99, count)
    assert np.array_equal(kernels.bincount(index, 100), np.bincount(index, minlength=100))
