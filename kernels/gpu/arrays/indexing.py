"""Gather, scatter, lookup, positions and sums of elements, by CuPy and by two kernels of this project."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from ..runtime import source
from . import transfer


def take(values: Any, index: Any) -> Any:
    """`values[index]`."""
    return values[index]


def nonzero(values: Any) -> Any:
    """The positions of the values that are not 0."""
    return cupy.flatnonzero(values).astype(cupy.int32)


def number_marked(marked: Any) -> Any:
    """The number of each marked value among the marked values, from 0; undefined for other values."""
    return cupy.cumsum(marked, dtype=np.int32) - np.int32(1)


def join(parts: Sequence[Any]) -> Any:
    """The parts one after the other."""
    return cupy.concatenate(parts)


def store(target: Any, index: Any, values: Any) -> None:
    """`target[index] = values`."""
    target[index] = values


def lookup(keys: Any, values: Any) -> Any:
    """The index of each value in the ascending `keys` without repeats; -1 for a value that `keys` does not contain."""
    if not len(keys) or not len(values):
        return cupy.full(len(values), -1, np.int32)
    index = cupy.minimum(cupy.searchsorted(keys, values), len(keys) - 1)
    return cupy.where(keys[index] == values, index, -1).astype(np.int32)


_BLOCK = 512


def scatter_sum(index: Any, values: Any, size: int) -> Any:
    """The sum of the values with each index."""
    return _scattered("scatter_sum", index, values, cupy.zeros(size, np.int64))


def scatter_max(index: Any, values: Any, size: int) -> Any:
    """The largest of the values with each index."""
    return _scattered("scatter_max", index, values, cupy.zeros(size, np.int32))


def _scattered(name: str, index: Any, values: Any, found: Any) -> Any:
    """`found` after the kernel `name`."""
    if len(index):
        arguments = (*map(cupy.ascontiguousarray, (index, values)), np.int64(len(index)), found)
        source.kernel(f"arrays/scatter:{name}")((source.grid(len(index), _BLOCK, 32),), (_BLOCK,), arguments)
    return found


def bincount(index: Any, size: int) -> Any:
    """How often each index occurs, which is int32 or int64.

    CuPy's function also looks for negative indices and the largest one, with kernels that take 5 s to compile.
    """
    counts = cupy.zeros(size, np.int64)
    _count(index, counts.view(np.uint64))
    return counts


def count_ranks(rank: Any, vertices: int) -> Any:
    """How often each rank below `vertices` occurs, int32. `rank` is uint32, which CuPy's scatter does not support above
    2^31 - 1.
    """
    counts = cupy.zeros(vertices, np.int32)
    _count(rank, counts)
    return counts


FEW = 2**13
"""A block counts up to this many different indices in its shared memory."""


def _count(index: Any, counts: Any) -> None:
    if len(index):
        kernel = source.kernel(f"arrays/count:count_{index.dtype.name}")
        few = len(counts) if len(counts) <= FEW else 0
        arguments = (cupy.ascontiguousarray(index), np.int64(len(index)), counts, np.int32(few))
        grid = source.grid(len(index), _BLOCK, 4 if few else 32)
        kernel((grid,), (_BLOCK,), arguments, shared_mem=few * np.dtype(np.uint32).itemsize)


def total(values: Any) -> int:
    """The sum of the values, which are bool or int32. Waits for the device."""
    found = cupy.zeros(1, np.uint64)
    if len(values):
        kernel = source.kernel(f"arrays/total:total_{values.dtype.name}")
        kernel((source.grid(len(values), _BLOCK),), (_BLOCK,), (values, np.int64(len(values)), found))
    return int(transfer.wait_for(found.view(np.int64))[0])
