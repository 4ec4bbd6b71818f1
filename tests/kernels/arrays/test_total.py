"""Sums of arrays, against Python's."""

from __future__ import annotations

import numpy as np
import pytest

from backends import BACKENDS, Backend
from edgemill import kernels


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("length", [0, 1, 31, 1000, 3_000_000])
def test_total(backend: Backend, length: int) -> None:
    values = np.random.default_rng(length).integers(-(2**31), 2**31, length)
    assert kernels.total(backend.put(values, np.int32)) == sum(values.tolist())
    assert kernels.total(backend.put(values > 0, np.bool_)) == sum(value > 0 for value in values.tolist())
