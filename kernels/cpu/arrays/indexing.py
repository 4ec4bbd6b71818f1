"""Gather, scatter, lookup, copies and positions of elements by all threads.

NumPy's functions for these operations use one thread. Those that combine values with equal indices hold the global
interpreter lock (GIL), so that only one of the tasks of a worker computes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import IntArray, LongArray
from ...runtime.cache import cached_njit
from .intrinsics import lowest_bit, places, popcount
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
    """The positions of the true marks. Reads eight marks as one word, since often most words have no true mark."""
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
    """The same indices, all below `size`, as uint32 if they fit, so that kernels are compiled for one type."""
    return index.astype(np.uint32) if index.itemsize > 4 and size < 1 << 32 else places(index)


@cached_njit
def _add(total, index, values):
    for i in range(index.size):
        total[index[i]] += values[i]


@cached_njit
def _raise(largest, index, values):
    for i in range(index.size):
        largest[index[i]] = max(largest[index[i]], values[i])


@cached_njit
def _count_index(counts, index):
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
    _count_index(counts, places(index))
    return counts


AnyInts: TypeAlias = NDArray[np.int32] | NDArray[np.int64]
TABLE_SLACK = 4
"""A table is used if the range of the keys is less than this many times the number of values."""


@cached_njit
def count_below(values, value):
    """The number of ascending values below `value`."""
    first = 0
    last = values.size
    while first < last:
        middle = (first + last) >> 1
        if values[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first


@cached_njit(parallel=True)
def _lookup(keys, bucket, shift, table, values, found):
    """Look up values by a table over the range of the keys, or by binary search in the bucket of the leading bits.

    One kernel does both, so that a run with other values need not compile another kernel.
    """
    least, largest = keys[0], keys[keys.size - 1]
    if table.size:
        for i in prange(table.size):
            table[i] = -1
        for i in prange(keys.size):
            table[keys[i] - least] = i
    for i in prange(values.size):
        value = values[i]
        found[i] = -1
        if value < least or value > largest:
            continue
        if table.size:
            found[i] = table[value - least]
            continue
        prefix = (value - least) >> shift
        lo = bucket[prefix]
        hi = bucket[prefix + 1]
        while lo < hi:
            middle = (lo + hi) >> 1
            if keys[middle] < value:
                lo = middle + 1
            else:
                hi = middle
        if lo < keys.size and keys[lo] == value:
            found[i] = lo


def lookup(keys: AnyInts, values: AnyInts) -> IntArray:
    """The index of each value in the ascending `keys` without repeats; -1 for a value that `keys` does not contain."""
    found = np.full(len(values), -1, np.int32)
    if not len(keys) or not len(values):
        return found
    least, span = int(keys[0]), int(keys[-1]) - int(keys[0])
    if span < TABLE_SLACK * len(values):
        _lookup(keys, np.empty(0, np.int64), 0, np.empty(span + 1, np.int32), values, found)
        return found
    shift = max(0, span.bit_length() - len(keys).bit_length())
    edges = least + (np.arange((span >> shift) + 2, dtype=np.int64) << shift)
    bucket = np.searchsorted(keys, edges).astype(np.int64)
    _lookup(keys, bucket, shift, np.empty(0, np.int32), values, found)
    return found


Words = NDArray[np.uint32]
SERIAL = 2**14
"""One thread is faster than several for at most this many values, since threads take time to start."""


@cached_njit(parallel=True)
def _gather_words(lanes, index, words, out):
    for lane in prange(lanes):
        first, end = lane * index.size // lanes, (lane + 1) * index.size // lanes
        if out.size == index.size:
            for i in range(first, end):
                out[i] = words[index[i]]
        else:
            for i in range(first, end):
                at = 2 * np.int64(index[i])
                out[2 * i], out[2 * i + 1] = words[at], words[at + 1]


@cached_njit(parallel=True)
def _scatter_words(lanes, index, words, out):
    for lane in prange(lanes):
        first, end = lane * index.size // lanes, (lane + 1) * index.size // lanes
        if words.size == index.size:
            for i in range(first, end):
                out[index[i]] = words[i]
        else:
            for i in range(first, end):
                at = 2 * np.int64(index[i])
                out[at], out[at + 1] = words[2 * i], words[2 * i + 1]


@cached_njit(parallel=True)
def _copy_words(lanes, words, out):
    for lane in prange(lanes):
        for i in range(lane * words.size // lanes, (lane + 1) * words.size // lanes):
            out[i] = words[i]


def _lanes(count: int) -> int:
    return get_num_threads() if count > SERIAL else 1


def gather_words(values: NDArray[Any], index: IntArray, out: Words) -> None:
    """Write the words of `values[index]` to `out`."""
    _gather_words(_lanes(len(index)), index, values.view(np.uint32), out)


def scatter_words(words: Words, index: IntArray, out: NDArray[Any]) -> None:
    """Write values, given as words, to `out[index]`. No index may occur twice."""
    _scatter_words(_lanes(len(index)), index, words, out.view(np.uint32))


def copy_words(words: Words, out: Words) -> None:
    """Copy words to other memory of the same length."""
    if len(words) > SERIAL:
        _copy_words(get_num_threads(), words, out)
    else:
        out[:] = words
