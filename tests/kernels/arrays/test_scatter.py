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


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 1000, MANY])
@pytest.mark.parametrize("longest", [0, 1, 3, 100])
@pytest.mark.parametrize("size", [100, 10_000])
def test_sorted_and_other_indices_are_counted(
    backend: Backend, kind: type, count: int, longest: int, size: int
) -> None:
    """Runs of equal indices, as sorted edges have them, of up to `longest` indices, and indices in no order. A GPU
    counts few different ones in another way.
    """
    rng = np.random.default_rng(count)
    index = rng.integers(0, size - 1, count, kind)
    if longest:
        index = np.repeat(index, rng.integers(1, longest + 1, count))[:count].astype(kind)
    found = backend.get(kernels.bincount(backend.put(index), size))
    assert found.dtype == np.int64
    assert np.array_equal(found, np.bincount(index, minlength=size))
