"""One value from the entries of each row of in-edges: sums, smallest or largest, most frequent values, h-indices.

Each sum is bitwise determined by its row. `exact_sums` adds whole arrays without rounding, so that these sums do not
depend on order or partitioning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import ALONG, Extreme, InRows, IntArray
from ...runtime.cache import cached_njit
from ..arrays.intrinsics import places
from .chunks import row_chunks, threads_for

SEGMENT = 4096
"""Entries added to one partial sum."""
LONG = 16 * SEGMENT
"""Several threads share a row with more entries."""

_STEP = np.uint64(SEGMENT)
_MOST = np.uint64(LONG)
_0, _1, _2, _3, _4 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@cached_njit
def segment_sum(source, values, first, stop):
    """The sum over a segment, by four partial sums: additions to a single sum would wait for each other."""
    a = b = c = d = 0.0
    q = first
    while q + _4 <= stop:
        a += values[source[q]]
        b += values[source[q + _1]]
        c += values[source[q + _2]]
        d += values[source[q + _3]]
        q += _4
    while q < stop:
        a += values[source[q]]
        q += _1
    return (a + b) + (c + d)


@cached_njit
def segments_sum(source, values, first, stop):
    """The sum over several segments."""
    total = 0.0
    while first < stop:
        after = min(first + _STEP, stop)
        total += segment_sum(source, values, first, after)
        first = after
    return total


@cached_njit
def _weighted_segment(rows, along, values, first, stop):
    """As `segment_sum`, with weights."""
    source, weight = rows.source, rows.weight
    a = b = c = d = 0.0
    q = first
    if along == 2:
        while q + _4 <= stop:
            a += values[source[q]] * weight[q]
            b += values[source[q + _1]] * weight[q + _1]
            c += values[source[q + _2]] * weight[q + _2]
            d += values[source[q + _3]] * weight[q + _3]
            q += _4
        while q < stop:
            a += values[source[q]] * weight[q]
            q += _1
    else:
        while q < stop:
            a += values[source[q]] + weight[q]
            q += _1
    return (a + b) + (c + d)


@cached_njit(parallel=True)
def _rows(rows, values, out, longest):
    offsets, source, cuts = rows.offsets, rows.source, rows.cuts
    for chunk in prange(cuts.size - 1):
        most = _0
        for row in range(cuts[chunk], cuts[chunk + 1]):
            first, stop = offsets[row], offsets[row + 1]
            most = max(most, stop - first)
            if stop - first <= _STEP:
                out[row] = segment_sum(source, values, first, stop)
            elif stop - first <= _MOST:
                out[row] = segments_sum(source, values, first, stop)
        longest[chunk] = most


@cached_njit(parallel=True)
def _weighted_rows(rows, along, values, out, longest):
    """As `_rows`, with weights."""
    offsets, cuts = rows.offsets, rows.cuts
    for chunk in prange(cuts.size - 1):
        most = _0
        for row in range(cuts[chunk], cuts[chunk + 1]):
            first, stop = offsets[row], offsets[row + 1]
            most = max(most, stop - first)
            if stop - first <= _MOST:
                total = 0.0
                while first < stop:
                    after = min(first + _STEP, stop)
                    total += _weighted_segment(rows, along, values, first, after)
                    first = after
                out[row] = total
        longest[chunk] = most


@cached_njit(parallel=True)
def _long_row(rows, row, along, values):
    first, stop, source = rows.offsets[row], rows.offsets[row + 1], rows.source
    partial = np.empty((np.int64(stop - first) + SEGMENT - 1) // SEGMENT)
    for s in prange(partial.size):
        start = first + np.uint64(s) * _STEP
        after = min(start + _STEP, stop)
        if along:
            partial[s] = _weighted_segment(rows, along, values, start, after)
        else:
            partial[s] = segment_sum(source, values, start, after)
    total = 0.0
    for s in range(partial.size):
        total += partial[s]
    return total


def row_sums(rows: InRows, values: NDArray[np.float64], along: str) -> NDArray[np.float64]:
    """The sum of values over the entries of each row."""
    out = np.empty(rows.rows)
    with row_chunks(rows, None) as chunks:
        read = chunks.unsigned
        longest = np.empty(len(read.cuts) - 1, np.uint64)
        if along:
            _weighted_rows(read, ALONG[along], values, out, longest)
        else:
            _rows(read, values, out, longest)
    if longest.max(initial=0) > LONG:
        for row in np.flatnonzero(np.diff(rows.offsets) > LONG).tolist():
            out[row] = _long_row(read, row, ALONG[along], values)
    return out


NONE = np.uint32(2**32 - 1)
"""Unsigned -1: no source."""


class _Rule(NamedTuple):
    """An `Extreme` for values of one type."""

    largest: bool
    along: int
    worst: Any


@cached_njit(parallel=True)
def _extremes(rows, values, rule, out, best):
    offsets, source, weight, all_rows, selected, cuts = rows
    largest, along, worst = rule
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            row = i if all_rows else np.int64(selected[i])
            found, first = worst, NONE
            for q in range(offsets[row], offsets[row + 1]):
                value = values[source[q]]
                if value != worst:
                    if along == 1:
                        value += weight[q]
                    elif along == 2:
                        value *= weight[q]
                    if (value > found) if largest else (value < found):
                        found, first = value, source[q]
            out[i], best[i] = found, first


@cached_njit(parallel=True)
def _unweighted_extremes(rows, values, rule, out, best):
    """As `_extremes` without weights, for values of any type."""
    offsets, source, _, all_rows, selected, cuts = rows
    largest, _, worst = rule
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            row = i if all_rows else np.int64(selected[i])
            found, first = worst, NONE
            for q in range(offsets[row], offsets[row + 1]):
                value = values[source[q]]
                if (value > found) if largest else (value < found):
                    found, first = value, source[q]
            out[i], best[i] = found, first


def row_extremes(
    rows: InRows, selected: IntArray | None, values: NDArray[Any], extreme: Extreme
) -> tuple[NDArray[Any], IntArray]:
    """The best value over the entries of each row, and the first source that has this value."""
    out = np.empty(rows.rows if selected is None else len(selected), values.dtype)
    best = np.empty(len(out), np.int32)
    rule = _Rule(extreme.largest, ALONG[extreme.along], extreme.worst(values.dtype))
    with row_chunks(rows, selected) as chunks:
        kernel = _extremes if extreme.along else _unweighted_extremes
        kernel(chunks.unsigned, values, rule, out, places(best))
    if values.dtype.kind == "f":
        out += 0.0  # turns -0.0 into 0.0, so that the bits do not depend on which of two equal values came first
    return out, best


@cached_njit(parallel=True)
def _modes(rows, values, none, out):
    """Count each row's values in a hash table with linear probing, at most half full. Used slots are cleared after
    a row.
    """
    offsets, source, _, all_rows, selected, cuts = rows
    for chunk in prange(cuts.size - 1):
        longest = np.int64(0)
        for i in range(cuts[chunk], cuts[chunk + 1]):
            row = i if all_rows else np.int64(selected[i])
            longest = max(longest, offsets[row + 1] - offsets[row])
        size = np.int64(4)
        while size < 2 * longest:
            size *= 2
        keys = np.empty(size, values.dtype)
        counts = np.zeros(size, np.int32)
        slots = np.empty(longest, np.int64)
        for i in range(cuts[chunk], cuts[chunk + 1]):
            row = i if all_rows else np.int64(selected[i])
            first, stop = offsets[row], offsets[row + 1]
            capacity = np.int64(4)
            while capacity < 2 * (stop - first):
                capacity *= 2
            mask = np.uint64(capacity - 1)
            best = values.dtype.type(none)
            most = 0
            used = 0
            for q in range(first, stop):
                value = values[source[q]]
                hashed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
                slot = np.int64((hashed >> np.uint64(32)) & mask)
                while counts[slot] and keys[slot] != value:
                    slot = np.int64(np.uint64(slot + 1) & mask)
                if not counts[slot]:
                    keys[slot] = value
                    slots[used] = slot
                    used += 1
                counts[slot] += 1
                if counts[slot] > most or (counts[slot] == most and value < best):
                    most = counts[slot]
                    best = value
            for u in range(used):
                counts[slots[u]] = 0
            out[i] = best


@cached_njit(parallel=True)
def _h_indices(rows, values, out):
    offsets, source, _, all_rows, selected, cuts = rows
    for chunk in prange(cuts.size - 1):
        longest = np.int64(0)
        for i in range(cuts[chunk], cuts[chunk + 1]):
            row = i if all_rows else np.int64(selected[i])
            longest = max(longest, offsets[row + 1] - offsets[row])
        counts = np.empty(longest + 1, np.int32)
        for i in range(cuts[chunk], cuts[chunk + 1]):
            row = i if all_rows else np.int64(selected[i])
            first, stop = offsets[row], offsets[row + 1]
            length = stop - first
            for k in range(length + 1):
                counts[k] = 0
            for q in range(first, stop):
                counts[max(np.int64(0), min(np.int64(values[source[q]]), length))] += 1
            k = length
            above = np.int64(counts[k])
            while above < k:
                k -= 1
                above += counts[k]
            out[i] = k


def row_modes(rows: InRows, selected: IntArray | None, values: NDArray[Any], none: int) -> NDArray[Any]:
    """The most frequent value of each row, the smallest if several are; `none` for a row without entries."""
    out = np.empty(rows.rows if selected is None else len(selected), values.dtype)
    with row_chunks(rows, selected) as chunks:
        _modes(chunks, values, none, out)
    return out


def row_h_indices(rows: InRows, selected: IntArray | None, values: NDArray[Any]) -> NDArray[Any]:
    """The largest k such that k values of the row are at least k."""
    out = np.empty(rows.rows if selected is None else len(selected), values.dtype)
    with row_chunks(rows, selected) as chunks:
        _h_indices(chunks, values, out)
    return out


LIMBS = 66
"""32-bit digits that represent any float64 in units of 2^-1074."""
MAX_VALUES = 2**29
"""The most values added to one accumulator, whose digits are int64."""


@cached_njit(parallel=True)
def _accumulate(words, cuts, digits):
    low = np.int64(0xFFFFFFFF)
    for chunk in prange(cuts.size - 1):
        own = np.zeros(LIMBS + 1, np.int64)
        for i in range(cuts[chunk], cuts[chunk + 1]):
            word = words[i]
            exponent = (word >> 52) & 0x7FF
            mantissa = word & 0xFFFFFFFFFFFFF
            if exponent == 0x7FF:
                own[LIMBS] += 1
                continue
            if exponent:
                mantissa |= np.int64(1) << 52
                exponent -= 1
            limb, shift = exponent >> 5, exponent & 31
            lower = (mantissa & low) << shift
            upper = (mantissa >> 32) << shift
            # 32 bits shifted by at most 31 take 63 bits, so the sign bit stays 0.
            if word < 0:
                own[limb] -= lower & low
                own[limb + 1] -= (lower >> 32) + (upper & low)
                own[limb + 2] -= upper >> 32
            else:
                own[limb] += lower & low
                own[limb + 1] += (lower >> 32) + (upper & low)
                own[limb + 2] += upper >> 32
        for limb in range(LIMBS - 1):  # so that sums of chunks do not overflow
            own[limb + 1] += own[limb] >> 32
            own[limb] &= low
        digits[chunk] = own


def exact_sums(arrays: Sequence[NDArray[Any]]) -> list[tuple[int, int]]:
    """The sum of each array, and the number of its values that are not finite."""
    return [_exact_sum(one) if one.dtype.kind == "f" else (_whole_sum(one), 0) for one in arrays]


def _whole_sum(values: NDArray[Any]) -> int:
    return int(np.count_nonzero(values) if values.dtype == np.bool_ else values.sum(dtype=np.int64))


def _exact_sum(values: NDArray[np.float64]) -> tuple[int, int]:
    """The sum in units of 2^-1074, and the number of values that are not finite."""
    words = np.ascontiguousarray(values).view(np.int64)
    runs = max(get_num_threads(), -(-len(words) // MAX_VALUES))
    cuts = np.arange(runs + 1) * len(words) // runs
    digits = np.empty((runs, LIMBS + 1), np.int64)
    with threads_for(len(words)):
        _accumulate(words, cuts, digits)
    *sums, not_finite = digits.sum(axis=0).tolist()
    total = 0
    for one in reversed(sums):
        total = (total << 32) + one
    return total, not_finite
