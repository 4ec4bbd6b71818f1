"""Scatter with a sum or a maximum: combine the values that have the same index."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...graph import IntArray, LongArray


def scatter_index(index: IntArray) -> NDArray[Any]:
    """`index` as intp, to which NumPy converts every index array."""
    return index.astype(np.intp)


def scatter_sum(index: NDArray[Any], values: IntArray, size: int) -> LongArray:
    """The sum of the values with each index."""
    total = np.zeros(size, np.int64)
    np.add.at(total, index, values.astype(np.int64))
    return total


def scatter_max(index: NDArray[Any], values: IntArray, size: int) -> IntArray:
    """The largest of the values with each index."""
    largest = np.zeros(size, np.int32)
    np.maximum.at(largest, index, values)
    return largest
