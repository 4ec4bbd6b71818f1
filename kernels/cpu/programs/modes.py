"""The most frequent value of each row of in-edges, and the h-index of its values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from ...graph import IntArray
from ...in_rows import InRows
from .pieces import shared


@njit(parallel=True, cache=True, nogil=True)
def _modes(offsets, all_rows, rows, cuts, source, values, none, out):
    """A hash table of each row's values, with linear probing, at most half full; its places are cleared after it."""
    for piece in prange(cuts.size - 1):
        longest = np.int64(0)
        for i in range(cuts[piece], cuts[piece + 1]):
            row = i if all_rows else np.int64(rows[i])
            longest = max(longest, offsets[row + 1] - offsets[row])
        size = np.int64(4)
        while size < 2 * longest:
            size *= 2
        keys = np.empty(size, values.dtype)
        counts = np.zeros(size, np.int32)
        places = np.empty(longest, np.int64)
        for i in range(cuts[piece], cuts[piece + 1]):
            row = i if all_rows else np.int64(rows[i])
            first, stop = offsets[row], offsets[row + 1]
            room = np.int64(4)
            while room < 2 * (stop - first):
                room *= 2
            mask = np.uint64(room - 1)
            best = values.dtype.type(none)
            most = 0
            used = 0
            for q in range(first, stop):
                value = values[source[q]]
                mixed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
                place = np.int64((mixed >> np.uint64(32)) & mask)
                while counts[place] and keys[place] != value:
                    place = np.int64(np.uint64(place + 1) & mask)
                if not counts[place]:
                    keys[place] = value
                    places[used] = place
                    used += 1
                counts[place] += 1
                if counts[place] > most or (counts[place] == most and value < best):
                    most = counts[place]
                    best = value
            for u in range(used):
                counts[places[u]] = 0
            out[i] = best


@njit(parallel=True, cache=True, nogil=True)
def _h_indices(offsets, all_rows, rows, cuts, source, values, out):
    for piece in prange(cuts.size - 1):
        longest = np.int64(0)
        for i in range(cuts[piece], cuts[piece + 1]):
            row = i if all_rows else np.int64(rows[i])
            longest = max(longest, offsets[row + 1] - offsets[row])
        counts = np.empty(longest + 1, np.int32)
        for i in range(cuts[piece], cuts[piece + 1]):
            row = i if all_rows else np.int64(rows[i])
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


def row_modes(rows: InRows, wanted: IntArray | None, values: NDArray[Any], none: int) -> NDArray[Any]:
    """The most frequent value of each row, the least of several; `none` of a row without entries."""
    out = np.empty(rows.rows if wanted is None else len(wanted), values.dtype)
    with shared(rows, wanted) as which:
        _modes(rows.offsets, *which, rows.source, values, none, out)
    return out


def row_h_indices(rows: InRows, wanted: IntArray | None, values: NDArray[Any]) -> NDArray[Any]:
    """The largest k for which k values of the row are k or more."""
    out = np.empty(rows.rows if wanted is None else len(wanted), values.dtype)
    with shared(rows, wanted) as which:
        _h_indices(rows.offsets, *which, rows.source, values, out)
    return out
