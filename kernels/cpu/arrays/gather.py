"""Gather and scatter by all threads: NumPy indexes with one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ...runtime.cache import cached_njit
from .places import places

MANY = 2**16
"""From this number of indices on, all threads share the work. They take longer to start for fewer."""


@cached_njit(parallel=True)
def _take(values, index, taken):
    for i in prange(index.size):
        taken[i] = values[index[i]]


@cached_njit(parallel=True)
def _store(target, index, values):
    for i in prange(index.size):
        target[index[i]] = values[i]


def take(values: NDArray[Any], index: NDArray[Any]) -> NDArray[Any]:
    """`values[index]`; see `kernels.take`."""
    if len(index) < MANY:
        return values[index]
    taken = np.empty(len(index), values.dtype)
    _take(values, places(index), taken)
    return taken


def store(target: NDArray[Any], index: NDArray[Any], values: NDArray[Any]) -> None:
    """`target[index] = values`; see `kernels.store`."""
    if len(index) < MANY:
        target[index] = values
    else:
        _store(target, places(index), values)
