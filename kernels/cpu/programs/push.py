"""Push the values of a few sources to the rows that contain them. Threads share the sources."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ...graph import IntArray
from ...in_rows import ALONG, InRows
from ...runtime.cache import cached_njit
from ..arrays.atomics import compare_swap
from ..arrays.places import places
from .chunks import entry_chunks, threads_for

_1 = np.uint32(1)


@cached_njit
def _improve(out, row, value, largest):
    """Write the value if it is better than that of the row, atomically. Returns whether it did, and what was there."""
    before = out[row]
    while (value > before) if largest else (value < before):
        if compare_swap(out, row, before, value):
            return True, before
        before = out[row]
    return False, before


@cached_njit(parallel=True)
def _push(offsets, row_of, weight, along, largest, changed, cuts, starts, values, neutral, bound, out, touched, counts):
    """The thread that first improves the value of a row puts it on the list of its chunk."""
    for chunk in prange(cuts.size - 1):
        slot = starts[chunk]
        for i in range(cuts[chunk], cuts[chunk + 1]):
            s, sent = changed[i], values[i]
            for q in range(offsets[s], offsets[s + _1]):
                row, value = row_of[q], sent
                if along == 1:
                    value = value + weight[q] + 0.0
                elif along == 2:
                    value = value * weight[q] + 0.0
                if bound.size and not ((value > bound[row]) if largest else (value < bound[row])):
                    continue
                improved, before = _improve(out, row, value, largest)
                if improved and before == neutral:
                    touched[slot] = row
                    slot += 1
        counts[chunk] = slot - starts[chunk]


@cached_njit(parallel=True)
def _push_unweighted(offsets, row_of, largest, changed, cuts, starts, values, neutral, bound, out, touched, counts):
    """As `_push` without weights, for values of any type."""
    for chunk in prange(cuts.size - 1):
        slot = starts[chunk]
        for i in range(cuts[chunk], cuts[chunk + 1]):
            s = changed[i]
            value = values[i]
            for q in range(offsets[s], offsets[s + _1]):
                row = row_of[q]
                if bound.size and not ((value > bound[row]) if largest else (value < bound[row])):
                    continue
                improved, before = _improve(out, row, value, largest)
                if improved and before == neutral:
                    touched[slot] = row
                    slot += 1
        counts[chunk] = slot - starts[chunk]


@cached_njit(parallel=True)
def _find_sources(offsets, row_of, weight, along, changed, cuts, values, neutral, out, best):
    """The first source of each row's value. Rows that received nothing have the neutral value. Unsigned, no source is
    the largest.
    """
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            s, sent = changed[i], values[i]
            for q in range(offsets[s], offsets[s + _1]):
                row, value = row_of[q], sent
                if along == 1:
                    value = value + weight[q]
                elif along == 2:
                    value = value * weight[q]
                if value == out[row] and value != neutral:
                    before = best[row]
                    while s < before:
                        if compare_swap(best, row, before, s):
                            break
                        before = best[row]


@cached_njit(parallel=True)
def _find_unweighted(offsets, row_of, changed, cuts, values, neutral, out, best):
    """As `_find_sources` without weights, for values of any type."""
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            s, value = changed[i], values[i]
            for q in range(offsets[s], offsets[s + _1]):
                row = row_of[q]
                if value == out[row] and value != neutral:
                    before = best[row]
                    while s < before:
                        if compare_swap(best, row, before, s):
                            break
                        before = best[row]


def push(
    transposed: InRows,
    changed: IntArray,
    values: NDArray[Any],
    along: str,
    largest: bool,
    bound: NDArray[Any] | None,
    best: IntArray | None,
    out: NDArray[Any],
) -> IntArray:
    """Push the values of the changed sources to their rows. Returns the rows that received a value."""
    offsets, row_of, weight = places(transposed.offsets), places(transposed.source), transposed.weights
    values = values + 0.0 if values.dtype.kind == "f" else values
    neutral = _worst(values.dtype, largest)
    limit = np.empty(0, values.dtype) if bound is None else bound
    cuts, starts = entry_chunks(transposed.offsets, changed)
    changed = places(changed)
    touched, counts = np.empty(int(starts[-1]), np.int32), np.empty(len(cuts) - 1, np.int64)
    lists = cuts, starts, values, neutral, limit, out, touched, counts
    with threads_for(len(touched)):
        if along:
            _push(offsets, row_of, weight, ALONG[along], largest, changed, *lists)
            if best is not None:
                _find_sources(offsets, row_of, weight, ALONG[along], changed, cuts, values, neutral, out, places(best))
        else:
            _push_unweighted(offsets, row_of, largest, changed, *lists)
            if best is not None:
                _find_unweighted(offsets, row_of, changed, cuts, values, neutral, out, places(best))
    return np.concatenate([touched[first : first + count] for first, count in zip(starts, counts, strict=False)])


def _worst(kind: np.dtype[Any], largest: bool) -> Any:
    if kind.kind == "f":
        return kind.type(-np.inf if largest else np.inf)
    return kind.type(np.iinfo(kind).min if largest else np.iinfo(kind).max)
