"""Scatter with a sum, a maximum or a count: combine the values that have the same index.

NumPy's functions for it hold the global interpreter lock (GIL), so that only one of the tasks of a worker computes.
"""

from __future__ import annotations

import numpy as np

from ...graph import IntArray, LongArray
from ...runtime.cache import cached_njit
from .places import places
from .sort import MANY


@cached_njit
def _add(total, index, values):
    for i in range(index.size):
        total[index[i]] += values[i]


@cached_njit
def _raise(largest, index, values):
    for i in range(index.size):
        largest[index[i]] = max(largest[index[i]], values[i])


@cached_njit
def _count(counts, index):
    for i in range(index.size):
        counts[index[i]] += 1


def scatter_sum(index: IntArray, values: IntArray, size: int) -> LongArray:
    """The sum of the values with each index."""
    total = np.zeros(size, np.int64)
    if len(index) < MANY:
        np.add.at(total, index, values.astype(np.int64))
    else:
        _add(total, places(index), values)
    return total


def scatter_max(index: IntArray, values: IntArray, size: int) -> IntArray:
    """The largest of the values with each index."""
    largest = np.zeros(size, np.int32)
    if len(index) < MANY:
        np.maximum.at(largest, index, values)
    else:
        _raise(largest, places(index), values)
    return largest


def bincount(index: IntArray | LongArray, size: int) -> LongArray:
    """How often each index occurs."""
    if len(index) < MANY:
        return np.bincount(index, minlength=size)
    counts = np.zeros(size, np.int64)
    _count(counts, places(index))
    return counts
