"""The order of pairs, by two counting sorts."""

from __future__ import annotations

import numpy as np

from ...graph import IntArray, LongArray
from ...runtime.cache import cached_njit


@cached_njit
def _order_pairs(low, high, start_low, start_high, rows, order):
    """Counting sort by high, then, as it is stable, by low. The low end is stored beside the index."""
    for i in range(low.size):
        slot = start_high[high[i]]
        start_high[high[i]] += 1
        rows[slot] = (np.int64(low[i]) << 32) | i
    for row in rows:
        value = row >> 32
        order[start_low[value]] = row & 0xFFFFFFFF
        start_low[value] += 1


def order_pairs(low: IntArray, high: IntArray, lows: int, highs: int) -> LongArray:
    """The permutation that sorts pairs by (low, high), for 0 ≤ low < lows and 0 ≤ high < highs."""
    order = np.empty(len(low), np.int64)
    _order_pairs(low, high, _starts(low, lows), _starts(high, highs), np.empty(len(low), np.int64), order)
    return order


def _starts(values: IntArray, count: int) -> LongArray:
    sizes = np.bincount(values, minlength=count)
    return np.cumsum(sizes) - sizes
