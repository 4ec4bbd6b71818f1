"""Counting sorts: the order of pairs, positions by their keys, and positions by group."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import IntArray, LongArray
from ...runtime.cache import cached_njit

MANY = 2**18
"""From this number of elements on, all threads sort, gather or mark them. Threads take longer to start for fewer, and
the kernels for many elements need not be compiled for small graphs.
"""
DIGIT_BITS = 11
"""Bits of a digit of a key: counters of all digits fit the first cache."""
DIGIT = (1 << DIGIT_BITS) - 1


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


def order_pairs(low: IntArray, high: IntArray, lows: int, highs: int) -> IntArray:
    """The permutation that sorts pairs by (low, high), for 0 ≤ low < lows and 0 ≤ high < highs.

    Many pairs are sorted by all threads, digit by digit.
    """
    if len(low) >= MANY:
        positions = by_key(high, np.arange(len(high), dtype=np.int32), highs)
        return by_key(low, positions, lows)
    order = np.empty(len(low), np.int32)
    _order_pairs(low, high, _starts(low, lows), _starts(high, highs), np.empty(len(low), np.int64), order)
    return order


@cached_njit(parallel=True)
def _count_digits(cuts, key, positions, shift, counts):
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            counts[chunk, (key[np.uintp(positions[i])] >> shift) & DIGIT] += 1


@cached_njit(parallel=True)
def _place_digits(cuts, key, positions, shift, slots, placed):
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            position = positions[i]
            digit = (key[np.uintp(position)] >> shift) & DIGIT
            placed[slots[chunk, digit]] = position
            slots[chunk, digit] += 1


def by_key(key: IntArray, positions: IntArray, keys: int) -> IntArray:
    """The positions sorted by their entries of `key`, for 0 ≤ key < keys. Equal ones keep their order.

    All threads count and place one digit of the keys after the other, from the lowest on.
    """
    chunks = get_num_threads()
    cuts = np.arange(chunks + 1) * len(positions) // chunks
    for shift in range(0, max(keys - 1, 0).bit_length(), DIGIT_BITS):
        counts, placed = np.zeros((chunks, DIGIT + 1), np.int64), np.empty_like(positions)
        _count_digits(cuts, key, positions, shift, counts)
        _place_digits(cuts, key, positions, shift, _slots(counts), placed)
        positions = placed
    return positions


def _slots(counts: LongArray) -> LongArray:
    """[chunks, groups] where the first element of a chunk's group goes: group by group, chunk by chunk in each."""
    ends = np.cumsum(counts.T.ravel())
    return np.ascontiguousarray((ends - counts.T.ravel()).reshape(-1, len(counts)).T)


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
    _place_groups(cuts, group, _slots(counts), found)
    return np.split(found, np.cumsum(counts.sum(axis=0))[:-1])
