"""Numbers of shortest paths from many sources by level, and dependencies on them (Brandes 2001)."""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ...graph import IntArray
from ...in_rows import InRows
from ...runtime.cache import cached_njit
from ..arrays.bits import lowest_bit, popcount
from ..programs.chunks import row_chunks

Masks = NDArray[np.uint64]
Floats = NDArray[np.float64]


@cached_njit
def add_at_bits(sums, values, position, mask):
    """Add the values at the bits of a mask. Few bits are added one by one, many with vector instructions.

    Both give the same bits: to add 0 changes no sum, as no sum is -0.
    """
    if popcount(mask) * np.uint64(4) <= np.uint64(sums.size):
        while mask:
            column = lowest_bit(mask)
            sums[column] += values[position, column]
            mask &= mask - np.uint64(1)
    else:
        for column in range(sums.size):
            value = values[position, column]
            sums[column] += value if (mask >> np.uint64(column)) & np.uint64(1) else 0.0


@cached_njit(parallel=True)
def _counts(offsets, selected, cuts, source, own, at, seen, counts, fresh):
    for chunk in prange(cuts.size - 1):
        sums = np.empty(counts.shape[1])
        for i in range(cuts[chunk], cuts[chunk + 1]):
            row = selected[i]
            open_bits = ~seen[row]
            new = np.uint64(0)
            for q in range(offsets[row], offsets[row + 1]):
                mask = at[source[q]] & open_bits
                if mask:
                    if not new:
                        sums[:] = 0.0
                    new |= mask
                    add_at_bits(sums, counts, source[q], mask)
            fresh[i] = new
            position = own[row]
            while new:
                column = lowest_bit(new)
                counts[position, column] = sums[column]
                new &= new - np.uint64(1)


@cached_njit(parallel=True)
def _dependencies(offsets, selected, cuts, target, masks, reads, own, at, values, score, squares):
    for chunk in prange(cuts.size - 1):
        sums = np.empty(values.shape[1])
        for i in range(cuts[chunk], cuts[chunk + 1]):
            row = selected[i]
            mask = masks[i]
            sums[:] = 0.0
            if reads[i]:
                for q in range(offsets[row], offsets[row + 1]):
                    successor = at[target[q]] & mask
                    if successor:
                        add_at_bits(sums, values, target[q], successor)
            position = own[row]
            while mask:
                column = lowest_bit(mask)
                paths = values[position, column]
                dependency = paths * sums[column]
                score[row] += dependency
                squares[row] += dependency * dependency
                values[position, column] = 1.0 / paths + sums[column]
                mask &= mask - np.uint64(1)


def path_counts(rows: InRows, selected: IntArray, own: IntArray, at: Masks, seen: Masks, counts: Floats) -> Masks:
    """The bits that reach each selected row for the first time; their numbers of paths are written to `counts`."""
    fresh = np.empty(len(selected), np.uint64)
    with row_chunks(rows, selected) as (_, _, cuts):
        _counts(rows.offsets, selected, cuts, rows.source, own, at, seen, counts, fresh)
    return fresh


def path_dependencies(
    rows: InRows,
    selected: IntArray,
    masks: Masks,
    reads: NDArray[np.bool_],
    own: IntArray,
    at: Masks,
    values: Floats,
    score: Floats,
    squares: Floats,
) -> None:
    """Replace the numbers of paths by what predecessors add up, and add the dependencies to `score` and `squares`."""
    with row_chunks(rows, selected) as (_, _, cuts):
        _dependencies(rows.offsets, selected, cuts, rows.source, masks, reads, own, at, values, score, squares)
