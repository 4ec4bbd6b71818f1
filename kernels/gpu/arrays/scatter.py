"""Scatter with a sum, a maximum or a count: combine the values that have the same index."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np


def scatter_sum(index: Any, values: Any, size: int) -> Any:
    """The sum of the values with each index."""
    total = cupy.zeros(size, np.int64)
    cupy.add.at(total.view(np.uint64), index, values)  # CUDA has atomic additions of 64 bits for unsigned integers only
    return total


def scatter_max(index: Any, values: Any, size: int) -> Any:
    """The largest of the values with each index."""
    largest = cupy.zeros(size, np.int32)
    cupy.maximum.at(largest, index, values)
    return largest


def bincount(index: Any, size: int) -> Any:
    """How often each index occurs."""
    return cupy.bincount(index, minlength=size)
