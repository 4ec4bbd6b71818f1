"""Indices of values in a sorted array."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ...graph import IntArray
from ...runtime.cache import cached_njit

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
    """By a table over the range of the keys, or a binary search within the bucket of the value's leading bits.

    One kernel for both, so that a run with other values does not compile another.
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
