"""Sums over levels, and values of edges after an update, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from edgemill.kernels.cpu.update import level_sums, values_since
from edgemill.kernels.cpu.update.merging import BLOCK
from edgemill.kernels.runtime.threads import kernel_threads

SIZES = [0, 1, 5, BLOCK, 2 * BLOCK + 3]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", SIZES)
def test_level_sums(size: int, threads: int) -> None:
    random = np.random.default_rng(size)
    level, values = random.integers(0, 9, size, np.int32), random.integers(0, 2**31 - 1, size, np.int32)
    with kernel_threads(threads):
        sums = level_sums(level, values)
    expected = [values[level == own].sum(dtype=np.int64) for own in range(int(level.max(initial=0)) + 1)]
    assert sums.dtype == np.int64 and sums.tolist() == expected


@pytest.mark.parametrize("size", SIZES)
def test_values_since(size: int) -> None:
    random = np.random.default_rng(size)
    before = random.integers(0, 1000, size + 10, np.int32)
    origin = np.sort(random.permutation(size + 10)[:size]).astype(np.int32)
    origin[random.random(size) < 0.1] = -1
    known = origin >= 0
    changed = ~known | (random.random(size) < 0.3)
    change = np.where(random.random(size) < 0.2, random.integers(-5, 6, size), 0).astype(np.int32)
    support, touched, differ = values_since(before, origin, changed, change)
    assert support.dtype == np.int32 and touched.dtype == np.bool_
    assert np.array_equal(support, change + np.where(known, before[origin], 0))
    assert np.array_equal(touched, changed | (change != 0))
    assert differ == np.count_nonzero(changed & known)
