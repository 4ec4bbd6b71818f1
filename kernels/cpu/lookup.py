"""Where values stand in a sorted array."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from ..graph import IntArray, LongArray


@njit(parallel=True, cache=True, nogil=True)
def _lookup(keys, bucket, shift, least, wanted, found):
    """Binary search inside the bucket that the value's leading bits point to."""
    for i in prange(wanted.size):
        value = wanted[i]
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


def lookup(keys: LongArray, wanted: LongArray) -> IntArray:
    """Index of each wanted value in the ascending, distinct `keys`; -1 where it is not there."""
    found = np.full(len(wanted), -1, np.int32)
    if not len(keys) or not len(wanted):
        return found
    least, span = int(keys[0]), int(keys[-1]) - int(keys[0])
    shift = max(0, span.bit_length() - len(keys).bit_length())
    edges = least + (np.arange((span >> shift) + 2, dtype=np.int64) << shift)
    bucket = np.searchsorted(keys, edges).astype(np.int64)
    _lookup(keys, bucket, shift, least, wanted, found)
    return found
