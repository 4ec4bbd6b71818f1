"""Gather, scatter, copies and positions by all threads: NumPy uses one."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import IntArray
from ...runtime.cache import cached_njit
from .bits import lowest_bit, popcount
from .places import places
from .sort import MANY


@cached_njit(parallel=True)
def _take(values, index, taken):
    for i in prange(index.size):
        taken[i] = values[index[i]]


@cached_njit(parallel=True)
def _store(target, index, values):
    for i in prange(index.size):
        target[index[i]] = values[i]


@cached_njit(parallel=True)
def _count(values, cuts, found):
    for run in prange(found.size):
        hits = 0
        for i in range(cuts[run], cuts[run + 1]):
            hits += values[i] != 0
        found[run] = hits


@cached_njit(parallel=True)
def _write(values, cuts, starts, positions):
    for run in prange(starts.size):
        to = starts[run]
        for i in range(cuts[run], cuts[run + 1]):
            if values[i] != 0:
                positions[to] = i
                to += 1


@cached_njit(parallel=True)
def count_bits(words, cuts, found):
    """How many bits are set in the words of each part."""
    for run in prange(found.size):
        marks = np.uint64(0)
        for i in range(cuts[run], cuts[run + 1]):
            marks += popcount(words[i])
        found[run] = marks


@cached_njit(parallel=True)
def _write_marks(words, cuts, starts, first, positions):
    for run in prange(starts.size):
        to = starts[run]
        for i in range(cuts[run], cuts[run + 1]):
            word = words[i]
            while word:
                positions[to] = first + 8 * i + (lowest_bit(word) >> 3)
                to += 1
                word &= word - np.uint64(1)


@cached_njit(parallel=True)
def _number(numbers):
    for i in prange(numbers.size):
        numbers[i] = i


def take(values: NDArray[Any], index: NDArray[Any]) -> NDArray[Any]:
    """`values[index]`; see `kernels.take`."""
    if len(index) < MANY:
        return values[index]
    taken = np.empty(len(index), values.dtype)
    _take(values, _narrow(index, len(values)), taken)
    return taken


def store(target: NDArray[Any], index: NDArray[Any], values: NDArray[Any]) -> None:
    """`target[index] = values`; see `kernels.store`."""
    if len(index) < MANY:
        target[index] = values
    else:
        _store(target, _narrow(index, len(target)), values)


def join(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The parts one after the other; see `kernels.join`."""
    ends = np.cumsum([0, *map(len, parts)]).tolist()
    joined = np.empty(ends[-1], np.result_type(*parts))
    if len(joined) < MANY:
        np.concatenate(parts, out=joined)
    else:
        with ThreadPoolExecutor(get_num_threads()) as pool:
            pieces = [joined[a:b] for a, b in pairwise(ends)]
            deque(pool.map(np.copyto, pieces, parts), 0)
    return joined


def copied(values: NDArray[Any]) -> NDArray[Any]:
    """A copy, made by all threads."""
    return join(np.array_split(values, get_num_threads()))


def nonzero(values: NDArray[Any]) -> IntArray:
    """The positions of the values that are not 0; see `kernels.nonzero`."""
    if len(values) < MANY:
        return np.flatnonzero(values).astype(np.int32)
    if values.dtype == np.bool_:
        return _positions_of_marks(np.ascontiguousarray(values))
    runs = get_num_threads()
    cuts = np.linspace(0, len(values), runs + 1).astype(np.int64)
    found = np.empty(runs, np.int64)
    _count(values, cuts, found)
    positions = np.empty(int(found.sum()), np.int32)
    _write(values, cuts, np.cumsum(found) - found, positions)
    return positions


def _positions_of_marks(marks: NDArray[np.bool_]) -> IntArray:
    """The positions of the true ones. Words of eight are read at once, and most of them often have none."""
    first = -marks.ctypes.data % 8
    last = first + (len(marks) - first) // 8 * 8
    before, after = np.flatnonzero(marks[:first]), np.flatnonzero(marks[last:]) + last
    words, runs = marks[first:last].view(np.uint64), get_num_threads()
    cuts = np.linspace(0, len(words), runs + 1).astype(np.int64)
    found = np.empty(runs, np.int64)
    count_bits(words, cuts, found)
    ends = len(before) + np.cumsum(found)
    positions = np.empty(int(ends[-1]) + len(after), np.int32)
    positions[: len(before)], positions[int(ends[-1]) :] = before, after
    _write_marks(words, cuts, ends - found, first, positions)
    return positions


@cached_njit
def _number_marked(marked, numbers):
    marks = 0
    for i in range(marked.size):
        numbers[i] = marks
        marks += marked[i] != 0


def number_marked(marked: NDArray[np.bool_]) -> IntArray:
    """The number of each marked value; see `kernels.number_marked`."""
    if len(marked) < MANY:
        return np.cumsum(marked, dtype=np.int32) - np.int32(1)
    numbers = np.empty(len(marked), np.int32)
    _number_marked(marked.view(np.uint8), numbers)
    return numbers


def numbers(count: int) -> IntArray:
    """0 … count - 1, int32."""
    if count < MANY:
        return np.arange(count, dtype=np.int32)
    found = np.empty(count, np.int32)
    _number(found)
    return found


def _narrow(index: NDArray[Any], size: int) -> NDArray[Any]:
    """The same indices, below `size`, in 32 bits if they fit: so code is compiled for one type."""
    return index.astype(np.uint32) if index.itemsize > 4 and size < 1 << 32 else places(index)
