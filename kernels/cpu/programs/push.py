"""Push the values of a few sources to the rows that contain them."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ...graph import IntArray
from ...in_rows import ALONG, InRows
from ...runtime.cache import cached_njit


@cached_njit
def _push(offsets, row_of, weight, along, largest, changed, values, out, best, touched):
    """Sources ascend, and only a better value replaces another: of equal values the first source's is kept."""
    count = 0
    for i in range(changed.size):
        s = changed[i]
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


@cached_njit
def _push_unweighted(offsets, row_of, largest, changed, values, out, best, touched):
    """As `_push` without weights, for values of any type."""
    count = 0
    for i in range(changed.size):
        s = changed[i]
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
    transposed: InRows,
    changed: IntArray,
    values: NDArray[Any],
    along: str,
    largest: bool,
    best: IntArray,
    out: NDArray[Any],
    touched: IntArray,
) -> IntArray:
    """Push the values of the changed sources to their rows. Returns the rows that received a value."""
    if along:
        weight = transposed.weights
        count = _push(
            transposed.offsets, transposed.source, weight, ALONG[along], largest, changed, values, out, best, touched
        )
    else:
        count = _push_unweighted(transposed.offsets, transposed.source, largest, changed, values, out, best, touched)
    return touched[:count]
