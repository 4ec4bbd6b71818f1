"""Transpose rows of in-edges: the rows that contain each source."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...graph import IntArray
from ...in_rows import InRows
from ...runtime.cache import cached_njit


@cached_njit
def _transpose(offsets, source, weight, next_slot, row_of, weight_of):
    """Rows are read in order, so the rows of each source ascend."""
    for row in range(offsets.size - 1):
        for q in range(offsets[row], offsets[row + 1]):
            to = next_slot[source[q]]
            next_slot[source[q]] = to + 1
            row_of[to] = row
            if weight.size:
                weight_of[to] = weight[q]


@cached_njit
def place_sources(offsets, source, weight, first_row, first_source, next_slot, row_of, weight_of):
    """Put the entries of some rows, from `first_row` on, into the slots of their sources; only sources from
    `first_source` on that have one. `next_slot` [sources] is advanced.
    """
    for row in range(offsets.size - 1):
        for q in range(offsets[row], offsets[row + 1]):
            at = source[q] - first_source
            if 0 <= at < next_slot.size:
                to = next_slot[at]
                next_slot[at] = to + 1
                row_of[to] = first_row + row
                if weight.size:
                    weight_of[to] = weight[q]


@cached_njit
def _touched(offsets, row_of, changed, seen, found):
    count = 0
    for s in changed:
        for q in range(offsets[s], offsets[s + 1]):
            row = row_of[q]
            if not seen[row]:
                seen[row] = True
                found[count] = row
                count += 1
    return count


def transpose_rows(rows: InRows, sources: int) -> InRows:
    """The entries by source."""
    sizes = np.bincount(rows.source, minlength=sources)
    offsets = np.zeros(sources + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    row_of = np.empty_like(rows.source)
    weight = rows.weights
    weight_of = np.empty_like(weight)
    _transpose(rows.offsets, rows.source, weight, offsets[:-1].copy(), row_of, weight_of)
    return InRows(offsets, row_of, None if rows.weight is None else weight_of)


def touched_rows(transposed: InRows, changed: IntArray, rows: int) -> IntArray:
    """The rows that contain a changed source, ascending."""
    seen: NDArray[np.bool_] = np.zeros(rows, np.bool_)
    found = np.empty(rows, np.int32)
    count = _touched(transposed.offsets, transposed.source, changed, seen, found)
    return np.sort(found[:count])
