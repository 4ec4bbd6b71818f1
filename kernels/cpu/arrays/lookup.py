"""Indices of values in a sorted array."""

from __future__ import annotations

import numpy as np
from numba import prange

from ...graph import IntArray, LongArray
from ...runtime.cache import cached_njit


@cached_njit(parallel=True)
def _lookup(keys, bucket, shift, least, values, found):
    """Binary search within the bucket of the value's leading bits."""
    for i in prange(values.size):
        value = values[i]
        found[i] = -1
        if value < least or value > keys[keys.size - 1]:
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


def lookup(keys: LongArray, values: LongArray) -> IntArray:
    """The index of each value in the ascending `keys` without repeats; -1 for a value that `keys` does not contain."""
    found = np.full(len(values), -1, np.int32)
    if not len(keys) or not len(values):
        return found
    least, span = int(keys[0]), int(keys[-1]) - int(keys[0])
    shift = max(0, span.bit_length() - len(keys).bit_length())
    edges = least + (np.arange((span >> shift) + 2, dtype=np.int64) << shift)
    bucket = np.searchsorted(keys, edges).astype(np.int64)
    _lookup(keys, bucket, shift, least, values, found)
    return found
