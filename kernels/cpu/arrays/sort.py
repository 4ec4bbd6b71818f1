"""Counting sorts: the order of pairs, and positions by group."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

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


@cached_njit(parallel=True)
def _count_groups(cuts, group, counts):
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            counts[chunk, group[i]] += 1


@cached_njit(parallel=True)
def _place_groups(cuts, group, slots, found):
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            of = group[i]
            found[slots[chunk, of]] = i
            slots[chunk, of] += 1


def positions_by_group(group: NDArray[np.int16], groups: int) -> list[IntArray]:
    """[groups] the positions of each group's elements in `group`, ascending, for 0 ≤ group < groups."""
    chunks = get_num_threads()
    cuts = np.arange(chunks + 1) * len(group) // chunks
    counts, found = np.zeros((chunks, groups), np.int64), np.empty(len(group), np.int32)
    _count_groups(cuts, group, counts)
    ends = np.cumsum(counts.T.ravel())
    slots = np.ascontiguousarray((ends - counts.T.ravel()).reshape(groups, chunks).T)
    _place_groups(cuts, group, slots, found)
    return np.split(found, ends[chunks - 1 :: chunks][:-1])
