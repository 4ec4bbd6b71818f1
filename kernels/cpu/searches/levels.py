"""One level of a breadth-first search from many sources (Then et al., PVLDB 8(4), 2014)."""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ...graph import IntArray
from ...in_rows import InRows
from ...runtime.cache import cached_njit
from ..programs.chunks import row_chunks

Masks = NDArray[np.uint64]


@cached_njit(parallel=True)
def _level(offsets, selected, cuts, source, at, seen, fresh):
    words = at.shape[1]
    for chunk in prange(cuts.size - 1):
        found = np.empty(words, np.uint64)
        for i in range(cuts[chunk], cuts[chunk + 1]):
            row = selected[i]
            for w in range(words):
                found[w] = seen[row, w]
            for q in range(offsets[row], offsets[row + 1]):
                position = source[q]
                everything = ~np.uint64(0)
                for w in range(words):
                    found[w] |= at[position, w]
                    everything &= found[w]
                if everything == ~np.uint64(0):
                    break
            for w in range(words):
                fresh[i, w] = found[w] & ~seen[row, w]


def search_level(rows: InRows, selected: IntArray, at: Masks, seen: Masks) -> Masks:
    """The bits that reach each selected row for the first time."""
    fresh = np.empty((len(selected), at.shape[1]), np.uint64)
    with row_chunks(rows, selected) as (_, _, cuts):
        _level(rows.offsets, selected, cuts, rows.source, at, seen, fresh)
    return fresh
