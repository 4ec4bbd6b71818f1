"""The smallest or largest value of each row of in-edges, and its first source."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ...graph import IntArray
from ...in_rows import ALONG, InRows
from ...runtime.cache import cached_njit
from .chunks import row_chunks


@cached_njit(parallel=True)
def _extremes(offsets, all_rows, rows, cuts, source, weight, along, largest, values, neutral, out, best):
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            row = i if all_rows else np.int64(rows[i])
            found = neutral
            entry = -1
            for q in range(offsets[row], offsets[row + 1]):
                value = values[source[q]]
                if value != neutral:
                    if along == 1:
                        value += weight[q]
                    elif along == 2:
                        value *= weight[q]
                    if (value > found) if largest else (value < found):
                        found = value
                        entry = q
            out[i] = found
            best[i] = source[entry] if entry >= 0 else -1


@cached_njit(parallel=True)
def _unweighted_extremes(offsets, all_rows, rows, cuts, source, largest, values, neutral, out, best):
    """As `_extremes` without weights, for values of any type."""
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            row = i if all_rows else np.int64(rows[i])
            found = neutral
            entry = -1
            for q in range(offsets[row], offsets[row + 1]):
                value = values[source[q]]
                if (value > found) if largest else (value < found):
                    found = value
                    entry = q
            out[i] = found
            best[i] = source[entry] if entry >= 0 else -1


def row_extremes(
    rows: InRows, selected: IntArray | None, values: NDArray[Any], neutral: Any, along: str, largest: bool
) -> tuple[NDArray[Any], IntArray]:
    """The smallest or largest value over the entries of each row, and its first source."""
    out = np.empty(rows.rows if selected is None else len(selected), values.dtype)
    best = np.empty(len(out), np.int32)
    neutral = values.dtype.type(neutral)
    weight = rows.weights
    with row_chunks(rows, selected) as chunks:
        if along:
            _extremes(rows.offsets, *chunks, rows.source, weight, ALONG[along], largest, values, neutral, out, best)
        else:
            _unweighted_extremes(rows.offsets, *chunks, rows.source, largest, values, neutral, out, best)
    if values.dtype.kind == "f":
        out += 0.0  # -0.0 becomes 0.0, so that the bits do not depend on which of two equal values came first
    return out, best
