"""Sums over rows of in-edges. Each sum is bitwise determined by its row."""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ...in_rows import ALONG, InRows
from ...runtime.cache import cached_njit
from ..arrays.places import places
from .chunks import chunk_starts, threads_for

SEGMENT = 4096
"""Entries added to one partial sum."""
LONG = 16 * SEGMENT
"""Rows with more entries are shared by several threads."""

_STEP = np.uint64(SEGMENT)
_MOST = np.uint64(LONG)
_0, _1, _2, _3, _4 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@cached_njit
def segment_sum(source, values, first, stop):
    """Four partial sums by position in the segment: additions to a single one would wait for each other."""
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
def _weighted_segment(source, weight, along, values, first, stop):
    """As `segment_sum`, with weights."""
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
def _rows(offsets, cuts, source, values, out, longest):
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
def _weighted_rows(offsets, cuts, source, weight, along, values, out, longest):
    """As `_rows`, with weights."""
    for chunk in prange(cuts.size - 1):
        most = _0
        for row in range(cuts[chunk], cuts[chunk + 1]):
            first, stop = offsets[row], offsets[row + 1]
            most = max(most, stop - first)
            if stop - first <= _MOST:
                total = 0.0
                while first < stop:
                    after = min(first + _STEP, stop)
                    total += _weighted_segment(source, weight, along, values, first, after)
                    first = after
                out[row] = total
        longest[chunk] = most


@cached_njit(parallel=True)
def _long_row(first, stop, source, weight, along, values):
    partial = np.empty((np.int64(stop - first) + SEGMENT - 1) // SEGMENT)
    for s in prange(partial.size):
        start = first + np.uint64(s) * _STEP
        after = min(start + _STEP, stop)
        if along:
            partial[s] = _weighted_segment(source, weight, along, values, start, after)
        else:
            partial[s] = segment_sum(source, values, start, after)
    total = 0.0
    for s in range(partial.size):
        total += partial[s]
    return total


def row_sums(rows: InRows, values: NDArray[np.float64], along: str) -> NDArray[np.float64]:
    """The sum of values over the entries of each row."""
    out = np.empty(rows.rows)
    weight, offsets, source = rows.weights, places(rows.offsets), places(rows.source)
    with threads_for(len(rows)):
        cuts = chunk_starts(rows.offsets, None)
        longest = np.empty(len(cuts) - 1, np.uint64)
        if along:
            _weighted_rows(offsets, cuts, source, weight, ALONG[along], values, out, longest)
        else:
            _rows(offsets, cuts, source, values, out, longest)
    if longest.max(initial=0) > LONG:
        for row in np.flatnonzero(np.diff(rows.offsets) > LONG).tolist():
            out[row] = _long_row(offsets[row], offsets[row + 1], source, weight, ALONG[along], values)
    return out
