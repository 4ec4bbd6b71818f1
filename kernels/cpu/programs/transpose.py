"""Transposes rows of in-edges to the rows that contain each source, and makes rows of edges in both directions."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import InRows, IntArray, LongArray
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
    """Place the entries of some rows, from `first_row` on, in the slots of their sources. Only sources from
    `first_source` on that are in `next_slot` get entries. `next_slot` [sources] is advanced.
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


@cached_njit(parallel=True)
def _find_starts(parts, low, starts):
    """Where the edges of each lower end begin, up to the last lower end."""
    for part in prange(parts):
        for e in range(part * low.size // parts, (part + 1) * low.size // parts):
            before = low[e - 1] if e else -1
            for v in range(before + 1, low[e] + 1):
                starts[v] = e


@cached_njit(parallel=True)
def _count_lower(cuts, starts, high, lower):
    """Count the lower neighbours of each vertex. Each part counts for a range of vertices, from edges of lower ones."""
    for t in prange(cuts.size - 1):
        first, last = cuts[t], cuts[t + 1]
        for u in range(last):
            for q in range(starts[u], starts[u + 1]):
                v = high[q]
                if v >= last:
                    break
                if v >= first:
                    lower[v] += 1


@cached_njit(parallel=True)
def _fill_both(cuts, starts, high, weight, offsets, lower, source, weights):
    """Write the rows of both directions: lower neighbours, in their order, then higher ones."""
    for t in prange(cuts.size - 1):
        first, last = cuts[t], cuts[t + 1]
        slot = offsets[first:last].copy()
        for u in range(last):
            for q in range(starts[u], starts[u + 1]):
                v = high[q]
                if v >= last:
                    break
                if v >= first:
                    source[slot[v - first]] = u
                    if weight.size:
                        weights[slot[v - first]] = weight[q]
                    slot[v - first] += 1
        for v in range(first, last):
            to = offsets[v] + lower[v]
            for q in range(starts[v], starts[v + 1]):
                source[to] = high[q]
                if weight.size:
                    weights[to] = weight[q]
                to += 1


def both_ways(low: IntArray, high: IntArray, weight: NDArray[np.float64] | None, vertices: int) -> InRows:
    """The rows of edges in both directions; see `kernels.programs`. Each thread makes a range of rows."""
    parts = get_num_threads()
    starts = np.full(vertices + 1, len(low), np.int64)
    _find_starts(parts, low, starts)
    lower = np.zeros(vertices, np.int64)
    _count_lower(np.arange(parts + 1) * vertices // parts, starts, high, lower)
    offsets = starts.copy()
    offsets[1:] += np.cumsum(lower)
    cuts: LongArray = np.searchsorted(offsets, np.arange(parts + 1) * int(offsets[-1]) // parts)
    cuts[0], cuts[-1] = 0, vertices
    source = np.empty(int(offsets[-1]), np.int32)
    given = np.zeros(0) if weight is None else weight
    weights = np.empty(len(source) if weight is not None else 0)
    _fill_both(cuts, starts, high, given, offsets, lower, source, weights)
    return InRows(offsets, source, None if weight is None else weights)


def transpose_rows(rows: InRows, sources: int) -> InRows:
    """The entries of `rows` as rows by source; see `kernels.programs`."""
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
