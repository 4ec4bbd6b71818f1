"""Counting sorts: the order of pairs, positions by their keys, and positions by group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import IntArray, LongArray
from ...runtime.cache import cached_njit

MANY = 2**18
"""All threads sort, gather or mark at least this many elements. For fewer elements the start of threads takes longer,
and the kernels for many elements need not be compiled for small graphs.
"""
DIGIT_BITS = 11
"""Bits of a digit of a key. The counters of all values of a digit fit the first cache."""
DIGIT = (1 << DIGIT_BITS) - 1
RUN_BITS = 14
"""log2 of the minimum number of pairs in a run. Two copies of a run, of 12 bytes a pair, fit a core's cache."""


@cached_njit
def _order_pairs(low, high, start_low, start_high, rows, order):
    """Counting sort by high, then a stable counting sort by low. The low end is stored beside the index."""
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

    All threads sort many pairs: the pairs are placed in runs by the first bits of their low ends, and each run, which
    fits a core's cache, is sorted by the other bits.
    """
    if len(low) < MANY:
        order = np.empty(len(low), np.int32)
        _order_pairs(low, high, _starts(low, lows), _starts(high, highs), np.empty(len(low), np.int64), order)
        return order
    runs = place_in_runs(low, high, lows, highs)
    sort_runs(runs)
    return runs.order


@dataclass(frozen=True)
class Runs:
    """Pairs in runs, by the first bits of their low ends."""

    ends: LongArray
    """[runs + 1] where each run begins, and where the last run ends."""
    key_bits: int
    """Bits of the keys that differ."""
    keys: NDArray[np.uint64]
    """[pairs] the other bits of the pair."""
    order: IntArray
    """[pairs] the position of the pair."""


def place_in_runs(low: IntArray, high: IntArray, lows: int, highs: int) -> Runs:
    """Place pairs in runs that fit a core's cache. The pairs of a run stay in order."""
    bits_low, bits_high = (max(count - 1, 0).bit_length() for count in (lows, highs))
    run_bits = min(DIGIT_BITS, bits_low, max(0, len(low).bit_length() - RUN_BITS))
    shift = bits_low - run_bits
    cuts = _even_cuts(len(low))
    counts = np.zeros((len(cuts) - 1, 1 << run_bits), np.int64)
    _count_runs(cuts, low, shift, counts)
    ends = np.cumsum(np.concatenate([[0], counts.sum(axis=0)]))
    keys, order = np.empty(len(low), np.uint64), np.empty(len(low), np.int32)
    _place_runs(cuts, low, high, shift, bits_high, _slots(counts), keys, order)
    return Runs(ends, shift + bits_high, keys, order)


def sort_runs(runs: Runs) -> None:
    """Sort each run by its keys, in place."""
    shares = np.searchsorted(runs.ends, _even_cuts(len(runs.keys)))
    shares[-1] = len(runs.ends) - 1
    _sort_runs(shares, runs.ends, -(-runs.key_bits // DIGIT_BITS), runs.keys, runs.order)


def _even_cuts(count: int) -> LongArray:
    """[threads + 1] where the share of each thread begins, and the end."""
    return np.arange(get_num_threads() + 1) * count // get_num_threads()


@cached_njit(parallel=True)
def _count_runs(cuts, low, shift, counts):
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            counts[chunk, np.uintp(low[i] >> shift)] += 1


@cached_njit(parallel=True)
def _place_runs(cuts, low, high, shift, bits_high, slots, keys, order):
    """Store each pair's other bits and its position in its run."""
    rest = (1 << shift) - 1
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            run = np.uintp(low[i] >> shift)
            slot = np.uintp(slots[chunk, run])
            slots[chunk, run] += 1
            keys[slot] = np.uint64((np.int64(low[i] & rest) << bits_high) | high[i])
            order[slot] = i


@cached_njit(parallel=True)
def _sort_runs(shares, ends, digits, keys, order):
    """Sort each run by its keys, digit by digit. Each thread sorts a share of the runs."""
    for share in prange(shares.size - 1):
        longest = 0
        for run in range(shares[share], shares[share + 1]):
            longest = max(longest, ends[run + 1] - ends[run])
        other_keys, other_order = np.empty(longest, np.uint64), np.empty(longest, np.int32)
        slots = np.empty(DIGIT + 1, np.int64)
        for run in range(shares[share], shares[share + 1]):
            first, after = ends[run], ends[run + 1]
            for digit in range(digits):
                shift = np.uint64(DIGIT_BITS * digit)
                for value in range(slots.size):
                    slots[value] = 0
                for i in range(first, after):
                    slots[np.uintp((keys[i] >> shift) & np.uint64(DIGIT))] += 1
                before = 0
                for value in range(slots.size):
                    before, slots[value] = before + slots[value], before
                for i in range(first, after):
                    of = np.uintp((keys[i] >> shift) & np.uint64(DIGIT))
                    at = np.uintp(slots[of])
                    slots[of] += 1
                    other_keys[at], other_order[at] = keys[i], order[i]
                for i in range(first, after):
                    keys[i], order[i] = other_keys[i - first], other_order[i - first]


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
    """The positions sorted by their entries of `key`, for 0 ≤ key < keys. Positions with equal keys keep their order.

    All threads together count and place by one digit of the keys after the other, from the lowest digit on.
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
    """[chunks, groups] the place of a chunk's first element of a group, in the order of groups, then of chunks."""
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
