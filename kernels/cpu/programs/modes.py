"""The most frequent value of each row of in-edges, and the h-index of its values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ...graph import IntArray
from ...in_rows import InRows
from ...runtime.cache import cached_njit
from .chunks import row_chunks


@cached_njit(parallel=True)
def _modes(offsets, all_rows, rows, cuts, source, values, none, out):
    """Count each row's values in a hash table with linear probing, at most half full. Used slots are cleared after
    a row.
    """
    for chunk in prange(cuts.size - 1):
        longest = np.int64(0)
        for i in range(cuts[chunk], cuts[chunk + 1]):
            row = i if all_rows else np.int64(rows[i])
            longest = max(longest, offsets[row + 1] - offsets[row])
        size = np.int64(4)
        while size < 2 * longest:
            size *= 2
        keys = np.empty(size, values.dtype)
        counts = np.zeros(size, np.int32)
        slots = np.empty(longest, np.int64)
        for i in range(cuts[chunk], cuts[chunk + 1]):
            row = i if all_rows else np.int64(rows[i])
            first, stop = offsets[row], offsets[row + 1]
            capacity = np.int64(4)
            while capacity < 2 * (stop - first):
                capacity *= 2
            mask = np.uint64(capacity - 1)
            best = values.dtype.type(none)
            most = 0
            used = 0
            for q in range(first, stop):
                value = values[source[q]]
                hashed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
                slot = np.int64((hashed >> np.uint64(32)) & mask)
                while counts[slot] and keys[slot] != value:
                    slot = np.int64(np.uint64(slot + 1) & mask)
                if not counts[slot]:
                    keys[slot] = value
                    slots[used] = slot
                    used += 1
                counts[slot] += 1
                if counts[slot] > most or (counts[slot] == most and value < best):
                    most = counts[slot]
                    best = value
            for u in range(used):
                counts[slots[u]] = 0
            out[i] = best


@cached_njit(parallel=True)
def _h_indices(offsets, all_rows, rows, cuts, source, values, out):
    for chunk in prange(cuts.size - 1):
        longest = np.int64(0)
        for i in range(cuts[chunk], cuts[chunk + 1]):
            row = i if all_rows else np.int64(rows[i])
            longest = max(longest, offsets[row + 1] - offsets[row])
        counts = np.empty(longest + 1, np.int32)
        for i in range(cuts[chunk], cuts[chunk + 1]):
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


def row_modes(rows: InRows, selected: IntArray | None, values: NDArray[Any], none: int) -> NDArray[Any]:
    """The most frequent value of each row; the smallest of several; `none` for a row without entries."""
    out = np.empty(rows.rows if selected is None else len(selected), values.dtype)
    with row_chunks(rows, selected) as chunks:
        _modes(rows.offsets, *chunks, rows.source, values, none, out)
    return out


def row_h_indices(rows: InRows, selected: IntArray | None, values: NDArray[Any]) -> NDArray[Any]:
    """The largest k such that k values of the row are at least k."""
    out = np.empty(rows.rows if selected is None else len(selected), values.dtype)
    with row_chunks(rows, selected) as chunks:
        _h_indices(rows.offsets, *chunks, rows.source, values, out)
    return out
