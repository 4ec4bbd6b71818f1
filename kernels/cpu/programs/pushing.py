"""Few sources speak: their values are taken to the rows that they are in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ...graph import IntArray
from ...in_rows import ALONG, InRows

_NO_WEIGHT = np.zeros(0)


@njit(cache=True, nogil=True)
def _push(offsets, row_of, weight, along, largest, moved, values, out, best, touched):
    """Sources ascend, and only what is better replaces: of equal values that of the first source stays."""
    count = 0
    for i in range(moved.size):
        s = moved[i]
        for q in range(offsets[s], offsets[s + 1]):
            row = row_of[q]
            value = values[i]
            if along == 1:
                value += weight[q]
            elif along == 2:
                value *= weight[q]
            if best[row] < 0:
                touched[count] = row
                count += 1
                out[row] = value
                best[row] = s
            elif (value > out[row]) if largest else (value < out[row]):
                out[row] = value
                best[row] = s
    return count


@njit(cache=True, nogil=True)
def _push_plainly(offsets, row_of, largest, moved, values, out, best, touched):
    """The same without weights, for values of any type."""
    count = 0
    for i in range(moved.size):
        s = moved[i]
        value = values[i]
        for q in range(offsets[s], offsets[s + 1]):
            row = row_of[q]
            if best[row] < 0:
                touched[count] = row
                count += 1
                out[row] = value
                best[row] = s
            elif (value > out[row]) if largest else (value < out[row]):
                out[row] = value
                best[row] = s
    return count


def push(
    turned: InRows,
    moved: IntArray,
    values: NDArray[Any],
    along: str,
    largest: bool,
    best: IntArray,
    out: NDArray[Any],
    touched: IntArray,
) -> IntArray:
    """Take the values of the moved sources to their rows; gives the rows that got any."""
    if along:
        weight = _NO_WEIGHT if turned.weight is None else turned.weight
        count = _push(turned.offsets, turned.source, weight, ALONG[along], largest, moved, values, out, best, touched)
    else:
        count = _push_plainly(turned.offsets, turned.source, largest, moved, values, out, best, touched)
    return touched[:count]
