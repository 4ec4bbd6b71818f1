"""Sums over rows of in-edges. Each sum is bitwise determined by its row."""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ...in_rows import ALONG, InRows
from ...runtime.cache import cached_njit
from .chunks import chunk_starts, threads_for

SEGMENT = 4096
"""Entries added to one partial sum."""
LONG = 16 * SEGMENT
"""Rows with more entries are shared by several threads."""


@cached_njit
def _segment(source, weight, along, values, first, stop):
    """Four partial sums by position in the segment: additions to a single one would wait for each other."""
    a = b = c = d = 0.0
    q = first
    if along == 2:
        while q + 4 <= stop:
            a += values[source[q]] * weight[q]
            b += values[source[q + 1]] * weight[q + 1]
            c += values[source[q + 2]] * weight[q + 2]
            d += values[source[q + 3]] * weight[q + 3]
            q += 4
        while q < stop:
            a += values[source[q]] * weight[q]
            q += 1
    elif along == 1:
        while q < stop:
            a += values[source[q]] + weight[q]
            q += 1
    else:
        while q + 4 <= stop:
            a += values[source[q]]
            b += values[source[q + 1]]
            c += values[source[q + 2]]
            d += values[source[q + 3]]
            q += 4
        while q < stop:
            a += values[source[q]]
            q += 1
    return (a + b) + (c + d)


@cached_njit(parallel=True)
def _rows(offsets, cuts, source, weight, along, values, out):
    for chunk in prange(cuts.size - 1):
        for row in range(cuts[chunk], cuts[chunk + 1]):
            first, stop = offsets[row], offsets[row + 1]
            total = 0.0
            if stop - first <= LONG:
                while first < stop:
                    after = min(first + SEGMENT, stop)
                    total += _segment(source, weight, along, values, first, after)
                    first = after
            out[row] = total


@cached_njit(parallel=True)
def _long_row(first, stop, source, weight, along, values):
    partial = np.empty((stop - first + SEGMENT - 1) // SEGMENT)
    for s in prange(partial.size):
        start = first + s * SEGMENT
        partial[s] = _segment(source, weight, along, values, start, min(start + SEGMENT, stop))
    total = 0.0
    for s in range(partial.size):
        total += partial[s]
    return total


def row_sums(rows: InRows, values: NDArray[np.float64], along: str) -> NDArray[np.float64]:
    """The sum of values over the entries of each row."""
    out = np.empty(rows.rows)
    weight = rows.weights
    with threads_for(len(rows)):
        _rows(rows.offsets, chunk_starts(rows.offsets, None), rows.source, weight, ALONG[along], values, out)
    for row in np.flatnonzero(np.diff(rows.offsets) > LONG).tolist():
        first, stop = rows.offsets[row], rows.offsets[row + 1]
        out[row] = _long_row(first, stop, rows.source, weight, ALONG[along], values)
    return out
