"""The smallest or largest value of each row of in-edges, and its first source."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ...graph import IntArray
from ...in_rows import ALONG, InRows
from ...runtime.cache import cached_njit
from ..arrays.places import places
from .chunks import row_chunks

NONE = np.uint32(2**32 - 1)
"""Unsigned -1: no source."""


@cached_njit(parallel=True)
def _extremes(offsets, all_rows, rows, cuts, source, weight, along, largest, values, neutral, out, best):
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            row = i if all_rows else np.int64(rows[i])
            found, first = neutral, NONE
            for q in range(offsets[row], offsets[row + 1]):
                value = values[source[q]]
                if value != neutral:
                    if along == 1:
                        value += weight[q]
                    elif along == 2:
                        value *= weight[q]
                    if (value > found) if largest else (value < found):
                        found, first = value, source[q]
            out[i], best[i] = found, first


@cached_njit(parallel=True)
def _unweighted_extremes(offsets, all_rows, rows, cuts, source, largest, values, neutral, out, best):
    """As `_extremes` without weights, for values of any type."""
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            row = i if all_rows else np.int64(rows[i])
            found, first = neutral, NONE
            for q in range(offsets[row], offsets[row + 1]):
                value = values[source[q]]
                if (value > found) if largest else (value < found):
                    found, first = value, source[q]
            out[i], best[i] = found, first


def row_extremes(
    rows: InRows, selected: IntArray | None, values: NDArray[Any], neutral: Any, along: str, largest: bool
) -> tuple[NDArray[Any], IntArray]:
    """The smallest or largest value over the entries of each row, and its first source."""
    out = np.empty(rows.rows if selected is None else len(selected), values.dtype)
    best = np.empty(len(out), np.int32)
    neutral = values.dtype.type(neutral)
    weight, offsets, source, first = rows.weights, places(rows.offsets), places(rows.source), places(best)
    with row_chunks(rows, selected) as chunks:
        if along:
            _extremes(offsets, *chunks, source, weight, ALONG[along], largest, values, neutral, out, first)
        else:
            _unweighted_extremes(offsets, *chunks, source, largest, values, neutral, out, first)
    if values.dtype.kind == "f":
        out += 0.0  # -0.0 becomes 0.0, so that the bits do not depend on which of two equal values came first
    return out, best
