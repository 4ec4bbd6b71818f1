"""Sorting by counting: several times faster than NumPy's sort where keys have few bits or codes are dense."""

from __future__ import annotations

import numpy as np
from numba import njit

from ..graph import IntArray, LongArray

DIGIT_BITS = 11
"""Bits sorted by at once: the counts of one digit, 16 KiB, stay in the first-level cache."""


@njit(cache=True, nogil=True)
def _sort_keys(keys, passes, digit):
    """Radix sort from the least significant digit; one read counts all digits."""
    mask = (1 << digit) - 1
    counts = np.zeros((passes, mask + 1), np.int64)
    for key in keys:
        for p in range(passes):
            counts[p, (key >> (p * digit)) & mask] += 1
    source = keys
    one = np.empty_like(keys)
    other = np.empty_like(keys)
    for p in range(passes):
        place = counts[p]
        start = 0
        for value in range(mask + 1):
            size = place[value]
            place[value] = start
            start += size
        shift = p * digit
        for key in source:
            value = (key >> shift) & mask
            one[place[value]] = key
            place[value] += 1
        source = one
        one, other = other, one
    return source


@njit(cache=True, nogil=True)
def _order_pairs(low, high, start_low, start_high, rows, order):
    """Counting sort by high, then, which is stable, by low; the low end travels with the row to be read in sequence."""
    for i in range(low.size):
        place = start_high[high[i]]
        start_high[high[i]] += 1
        rows[place] = (np.int64(low[i]) << 32) | i
    for row in rows:
        value = row >> 32
        order[start_low[value]] = row & 0xFFFFFFFF
        start_low[value] += 1


def sort_keys(keys: LongArray, bits: int) -> LongArray:
    """The keys, each 0 ≤ key < 2^bits, ascending."""
    passes = max(1, -(-bits // DIGIT_BITS))
    sorted_keys: LongArray = _sort_keys(keys, passes, -(-bits // passes))
    return sorted_keys


def order_pairs(low: IntArray, high: IntArray, lows: int, highs: int) -> LongArray:
    """The permutation that sorts pairs by (low, high), for 0 ≤ low < lows and 0 ≤ high < highs."""
    order = np.empty(len(low), np.int64)
    _order_pairs(low, high, _starts(low, lows), _starts(high, highs), np.empty(len(low), np.int64), order)
    return order


def _starts(values: IntArray, count: int) -> LongArray:
    sizes = np.bincount(values, minlength=count)
    return np.cumsum(sizes) - sizes
