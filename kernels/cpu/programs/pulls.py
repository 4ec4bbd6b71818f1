"""The first active source of rows of in-edges: a step of a search from the targets' side."""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ...graph import IntArray
from ...in_rows import InRows
from ...runtime.cache import cached_njit
from ..arrays.places import places
from .chunks import chunk_starts, even_chunks, packed, threads_for

_ALL = np.zeros(0, np.bool_)
_1, _3, _7 = np.uint32(1), np.uint32(3), np.uint32(7)


@cached_njit(parallel=True)
def _count(offsets, cuts, receiving, counts):
    for chunk in prange(cuts.size - 1):
        count = np.int64(0)
        for row in range(cuts[chunk], cuts[chunk + 1]):
            count += (offsets[row + 1] - offsets[row]) * receiving[row]  # without a branch, by vectors
        counts[chunk] = count


@cached_njit(parallel=True)
def _count_selected(offsets, cuts, selected, counts):
    for chunk in prange(cuts.size - 1):
        count = np.int64(0)
        for i in range(cuts[chunk], cuts[chunk + 1]):
            row = selected[i]
            count += offsets[row + _1] - offsets[row]
        counts[chunk] = count


@cached_njit(parallel=True)
def _first(offsets, cuts, source, receiving, active, counts, rows, best):
    """`active` has a bit for each source, since caches hold eight times as many bits as bytes."""
    for chunk in prange(cuts.size - 1):
        slot = cuts[chunk]
        for row in range(cuts[chunk], cuts[chunk + 1]):
            if receiving.size == 0 or receiving[row]:
                for q in range(offsets[row], offsets[row + 1]):
                    s = source[q]
                    if active[s >> _3] >> (s & _7) & _1:
                        rows[slot] = row
                        best[slot] = s
                        slot += 1
                        break
        counts[chunk] = slot - cuts[chunk]


def count_selected(rows: InRows, selected: IntArray) -> int:
    """The number of entries of the selected rows."""
    with threads_for(len(selected)):
        cuts = even_chunks(len(selected))
        counts = np.empty(len(cuts) - 1, np.int64)
        _count_selected(rows.offsets, cuts, places(selected), counts)
    return int(counts.sum())


def count_entries(rows: InRows, receiving: NDArray[np.bool_] | None) -> int:
    """The number of entries of the receiving rows, or of all rows."""
    if receiving is None:
        return len(rows)
    with threads_for(rows.rows):
        cuts = even_chunks(rows.rows)
        counts = np.empty(len(cuts) - 1, np.int64)
        _count(rows.offsets, cuts, receiving, counts)
    return int(counts.sum())


def first_active_sources(
    rows: InRows, receiving: NDArray[np.bool_] | None, active: NDArray[np.bool_]
) -> tuple[IntArray, IntArray]:
    """The receiving rows with an active source, and the first of each."""
    found, best = np.empty(rows.rows, np.int32), np.empty(rows.rows, np.int32)
    offsets, source, first = places(rows.offsets), places(rows.source), places(best)
    bits = np.packbits(active, bitorder="little")
    with threads_for(len(rows)):
        cuts = chunk_starts(rows.offsets, None)
        counts = np.empty(len(cuts) - 1, np.int64)
        _first(offsets, cuts, source, _ALL if receiving is None else receiving, bits, counts, found, first)
    return packed(found, cuts, counts), packed(best, cuts, counts)
