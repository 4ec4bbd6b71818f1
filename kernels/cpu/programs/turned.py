"""Rows of in-edges turned round: the rows that each source is in."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ...graph import IntArray
from ...in_rows import InRows

_NO_WEIGHT = np.zeros(0)


@njit(cache=True, nogil=True)
def _turn(offsets, source, weight, place, row_of, weight_of):
    """Rows come in order, so those of each source ascend."""
    for row in range(offsets.size - 1):
        for q in range(offsets[row], offsets[row + 1]):
            to = place[source[q]]
            place[source[q]] = to + 1
            row_of[to] = row
            if weight.size:
                weight_of[to] = weight[q]


@njit(cache=True, nogil=True)
def _touched(offsets, row_of, moved, seen, found):
    count = 0
    for s in moved:
        for q in range(offsets[s], offsets[s + 1]):
            row = row_of[q]
            if not seen[row]:
                seen[row] = True
                found[count] = row
                count += 1
    return count


def rows_of_sources(rows: InRows, sources: int) -> InRows:
    """The same entries by source."""
    sizes = np.bincount(rows.source, minlength=sources)
    offsets = np.zeros(sources + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    row_of = np.empty_like(rows.source)
    weight = _NO_WEIGHT if rows.weight is None else rows.weight
    weight_of = np.empty_like(weight)
    _turn(rows.offsets, rows.source, weight, offsets[:-1].copy(), row_of, weight_of)
    return InRows(offsets, row_of, None if rows.weight is None else weight_of)


def touched_rows(turned: InRows, moved: IntArray, rows: int) -> IntArray:
    """The rows that one of the moved sources is in, ascending."""
    seen: NDArray[np.bool_] = np.zeros(rows, np.bool_)
    found = np.empty(rows, np.int32)
    count = _touched(turned.offsets, turned.source, moved, seen, found)
    return np.sort(found[:count])
