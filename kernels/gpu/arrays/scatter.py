"""Scatter with a sum, a maximum or a count: combine the values that have the same index."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..runtime import source

_BLOCK = 512


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
    """How often each index occurs, which is int32 or int64.

    CuPy's function also looks for negative indices and the largest one, with kernels that take 5 s to compile.
    """
    counts = cupy.zeros(size, np.int64)
    _count(index, counts.view(np.uint64))
    return counts


def count_ranks(rank: Any, vertices: int) -> Any:
    """How often each rank below `vertices` occurs, int32. `rank` is uint32; CuPy adds at no index beyond 2^31 - 1."""
    counts = cupy.zeros(vertices, np.int32)
    _count(rank, counts)
    return counts


def _count(index: Any, counts: Any) -> None:
    if len(index):
        kernel = source.kernel(f"arrays/count:count_{index.dtype.name}")
        arguments = (cupy.ascontiguousarray(index), np.int64(len(index)), counts)
        kernel((source.grid(len(index), _BLOCK, 32),), (_BLOCK,), arguments)
