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
_1, _5, _31 = np.uint32(1), np.uint32(5), np.uint32(31)
_ONE = np.uint64(1)


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
def _first(offsets, cuts, source, receiving, active, counts, entries, rows, best):
    """`active` has a bit for each source, since caches hold eight times as many bits as bytes."""
    for chunk in prange(cuts.size - 1):
        slot, count = cuts[chunk], np.uint64(0)
        for row in range(cuts[chunk], cuts[chunk + 1]):
            if receiving.size == 0 or receiving[row]:
                q, end = offsets[row], offsets[row + 1]
                count += end - q
                while q < end:
                    s = source[q]
                    if active[s >> _5] & (_1 << (s & _31)):
                        rows[slot] = row
                        best[slot] = s
                        slot += 1
                        break
                    q += _ONE
        counts[chunk], entries[chunk] = slot - cuts[chunk], count


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
) -> tuple[IntArray, IntArray, int]:
    """The receiving rows with an active source, the first of each, and the entries of all receiving rows."""
    found, best = np.empty(rows.rows, np.int32), np.empty(rows.rows, np.int32)
    offsets, source, first = places(rows.offsets), places(rows.source), places(best)
    bits = np.zeros(-(-len(active) // 32), np.uint32)
    bits.view(np.uint8)[: -(-len(active) // 8)] = np.packbits(active, bitorder="little")
    with threads_for(len(rows)):
        cuts = chunk_starts(rows.offsets, None)
        counts, entries = np.empty(len(cuts) - 1, np.int64), np.empty(len(cuts) - 1, np.int64)
        _first(offsets, cuts, source, _ALL if receiving is None else receiving, bits, counts, entries, found, first)
    return packed(found, cuts, counts), packed(best, cuts, counts), int(entries.sum())
