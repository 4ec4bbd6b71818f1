"""The least or largest value of each row of in-edges, and the first source that speaks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from ...graph import IntArray
from ...in_rows import ALONG, InRows
from .pieces import shared

_NO_WEIGHT = np.zeros(0)


@njit(parallel=True, cache=True, nogil=True)
def _extremes(offsets, all_rows, rows, cuts, source, weight, along, largest, values, silent, out, best):
    for piece in prange(cuts.size - 1):
        for i in range(cuts[piece], cuts[piece + 1]):
            row = i if all_rows else np.int64(rows[i])
            found = silent
            place = -1
            for q in range(offsets[row], offsets[row + 1]):
                value = values[source[q]]
                if value != silent:
                    if along == 1:
                        value += weight[q]
                    elif along == 2:
                        value *= weight[q]
                    if (value > found) if largest else (value < found):
                        found = value
                        place = q
            out[i] = found
            best[i] = source[place] if place >= 0 else -1


@njit(parallel=True, cache=True, nogil=True)
def _plain_extremes(offsets, all_rows, rows, cuts, source, largest, values, silent, out, best):
    """The same without weights, for values of any type."""
    for piece in prange(cuts.size - 1):
        for i in range(cuts[piece], cuts[piece + 1]):
            row = i if all_rows else np.int64(rows[i])
            found = silent
            place = -1
            for q in range(offsets[row], offsets[row + 1]):
                value = values[source[q]]
                if (value > found) if largest else (value < found):
                    found = value
                    place = q
            out[i] = found
            best[i] = source[place] if place >= 0 else -1


@njit(parallel=True, cache=True, nogil=True)
def _first(offsets, all_rows, rows, cuts, source, speaks, best):
    for piece in prange(cuts.size - 1):
        for i in range(cuts[piece], cuts[piece + 1]):
            row = i if all_rows else np.int64(rows[i])
            best[i] = -1
            for q in range(offsets[row], offsets[row + 1]):
                if speaks[source[q]]:
                    best[i] = source[q]
                    break


def row_extremes(
    rows: InRows, wanted: IntArray | None, values: NDArray[Any], silent: Any, along: str, largest: bool
) -> tuple[NDArray[Any], IntArray]:
    """The least value that comes along the entries of each row, or the largest, and where it comes from."""
    out = np.empty(rows.rows if wanted is None else len(wanted), values.dtype)
    best = np.empty(len(out), np.int32)
    silent = values.dtype.type(silent)
    weight = _NO_WEIGHT if rows.weight is None else rows.weight
    with shared(rows, wanted) as which:
        if along:
            _extremes(rows.offsets, *which, rows.source, weight, ALONG[along], largest, values, silent, out, best)
        else:
            _plain_extremes(rows.offsets, *which, rows.source, largest, values, silent, out, best)
    return out, best


def first_speakers(rows: InRows, wanted: IntArray | None, speaks: NDArray[np.bool_]) -> IntArray:
    """The first source of each row that speaks."""
    best = np.empty(rows.rows if wanted is None else len(wanted), np.int32)
    with shared(rows, wanted) as which:
        _first(rows.offsets, *which, rows.source, speaks, best)
    return best
