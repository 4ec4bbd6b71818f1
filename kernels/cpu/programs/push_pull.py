"""Push the values of a few sources to their rows, pull the first active source of each row, and store what rows got.

A program pushes from few sources, and pulls to few rows. Threads share the sources, or chunks of rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from ...graph import ALONG, Extreme, InRows, IntArray, LongArray, Received
from ...runtime.cache import cached_njit
from ..arrays.intrinsics import compare_swap, places
from .chunks import chunk_starts, entry_chunks, even_chunks, packed, threads_for


@cached_njit
def _improve(out, row, value, largest):
    """Write the value if it is better than the row's, atomically. Returns whether it was, and the row's old value."""
    before = out[row]
    while (value > before) if largest else (value < before):
        if compare_swap(out, row, before, value):
            return True, before
        before = out[row]
    return False, before


class Pushing(NamedTuple):
    """Sources that push, in chunks."""

    changed: NDArray[np.uint32]
    """[changed] the sources."""
    values: NDArray[Any]
    """[changed]"""
    cuts: LongArray
    """[chunks + 1] where each chunk starts."""
    starts: LongArray
    """[chunks + 1] the number of entries before each chunk. From there the chunk lists the rows that it improves first.
    """
    worst: Any
    """The worst value of the type."""
    bound: NDArray[Any]
    """[rows] a row accepts only values that are better than its bound; empty if rows accept all values."""
    largest: bool
    along: int


@cached_njit(parallel=True)
def _push_weighted(rows, pushing, out, touched, counts):
    """Push weighted values. The thread that first improves the value of a row adds the row to the list of its chunk."""
    offsets, row_of, weight = rows
    changed, values, cuts, starts, worst, bound, largest, along = pushing
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
                if improved and before == worst:
                    touched[slot] = row
                    slot += 1
        counts[chunk] = slot - starts[chunk]


@cached_njit(parallel=True)
def _push_unweighted(rows, pushing, out, touched, counts):
    """As `_push_weighted` without weights, for values of any type."""
    offsets, row_of, _ = rows
    changed, values, cuts, starts, worst, bound, largest, _ = pushing
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
                if improved and before == worst:
                    touched[slot] = row
                    slot += 1
        counts[chunk] = slot - starts[chunk]


@cached_njit(parallel=True)
def _find_sources(rows, pushing, out, best):
    """Find the first source of each row's value. Rows that received nothing have the worst value. As an unsigned
    number, -1 for no source is the largest.
    """
    offsets, row_of, weight = rows
    changed, values, cuts, _, worst, _, _, along = pushing
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            s, sent = changed[i], values[i]
            for q in range(offsets[s], offsets[s + _1]):
                row, value = row_of[q], sent
                if along == 1:
                    value = value + weight[q]
                elif along == 2:
                    value = value * weight[q]
                if value == out[row] and value != worst:
                    _lower_source(best, row, s)


@cached_njit(parallel=True)
def _find_unweighted(rows, pushing, out, best):
    """As `_find_sources` without weights, for values of any type."""
    offsets, row_of, _ = rows
    changed, values, cuts, _, worst, _, _, _ = pushing
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            s, value = changed[i], values[i]
            for q in range(offsets[s], offsets[s + _1]):
                row = row_of[q]
                if value == out[row] and value != worst:
                    _lower_source(best, row, s)


@cached_njit
def _lower_source(best, row, s):
    """Write the source if it is smaller than the row's, atomically."""
    before = best[row]
    while s < before and not compare_swap(best, row, before, s):
        before = best[row]


def push(transposed: InRows, changed: IntArray, values: NDArray[Any], extreme: Extreme, received: Received) -> IntArray:
    """Push the values of the changed sources to their rows. Returns the rows that received a value."""
    along, out, best = ALONG[extreme.along], received.value, received.source
    rows = places(transposed.offsets), places(transposed.source), transposed.weights
    values = values + 0.0 if values.dtype.kind == "f" else values
    cuts, starts = entry_chunks(transposed.offsets, changed)
    bound = np.empty(0, values.dtype) if received.bound is None else received.bound
    worst = extreme.worst(values.dtype)
    pushing = Pushing(places(changed), values, cuts, starts, worst, bound, extreme.largest, along)
    touched, counts = np.empty(int(starts[-1]), np.int32), np.empty(len(cuts) - 1, np.int64)
    with threads_for(len(touched)):
        if along:
            _push_weighted(rows, pushing, out, touched, counts)
            if best is not None:
                _find_sources(rows, pushing, out, places(best))
        else:
            _push_unweighted(rows, pushing, out, touched, counts)
            if best is not None:
                _find_unweighted(rows, pushing, out, places(best))
    return np.concatenate([touched[first : first + count] for first, count in zip(starts, counts, strict=False)])


_ALL = np.zeros(0, np.bool_)
_1, _5, _31 = np.uint32(1), np.uint32(5), np.uint32(31)
_ONE = np.uint64(1)


@cached_njit(parallel=True)
def _count(offsets, cuts, receiving, counts):
    for chunk in prange(cuts.size - 1):
        count = np.int64(0)
        for row in range(cuts[chunk], cuts[chunk + 1]):
            count += (offsets[row + 1] - offsets[row]) * receiving[row]  # without a branch, so in vector instructions
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
    """The receiving rows with an active source, the first active source of each, and the number of entries of all
    receiving rows.
    """
    found, best = np.empty(rows.rows, np.int32), np.empty(rows.rows, np.int32)
    offsets, source, first = places(rows.offsets), places(rows.source), places(best)
    bits = np.zeros(-(-len(active) // 32), np.uint32)
    bits.view(np.uint8)[: -(-len(active) // 8)] = np.packbits(active, bitorder="little")
    with threads_for(len(rows)):
        cuts = chunk_starts(rows.offsets, None)
        counts, entries = np.empty(len(cuts) - 1, np.int64), np.empty(len(cuts) - 1, np.int64)
        _first(offsets, cuts, source, _ALL if receiving is None else receiving, bits, counts, entries, found, first)
    return packed(found, cuts, counts), packed(best, cuts, counts), int(entries.sum())


@cached_njit(parallel=True)
def _unreached(cuts, level, found):
    for chunk in prange(cuts.size - 1):
        for v in range(cuts[chunk], cuts[chunk + 1]):
            found[v] = level[v] < 0


@cached_njit(parallel=True)
def _set_levels(cuts, rows, got, step, level, parent):
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            level[rows[i]] = step
            parent[rows[i]] = got[i]


@cached_njit(parallel=True)
def _lower(cuts, rows, got, value, lowered):
    for chunk in prange(cuts.size - 1):
        for i in range(cuts[chunk], cuts[chunk + 1]):
            lowered[i] = got[i] < value[rows[i]]
            if lowered[i]:
                value[rows[i]] = got[i]


def unreached(level: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether each level is below 0."""
    found = np.empty(len(level), np.bool_)
    with threads_for(len(level)):
        _unreached(even_chunks(len(level)), level, found)
    return found


def set_levels(
    rows: IntArray, got: NDArray[Any], step: int, level: NDArray[np.int32], parent: NDArray[np.int64]
) -> None:
    """Give distinct `rows` the level `step` and the parents `got` [rows]."""
    with threads_for(len(rows)):
        _set_levels(even_chunks(len(rows)), places(rows), got, np.int32(step), level, parent)


def lower(rows: IntArray, got: NDArray[Any], value: NDArray[Any]) -> NDArray[np.bool_]:
    """Lower the values of distinct `rows` to `got` [rows] where `got` is smaller. Returns where it was, bool [rows]."""
    lowered = np.empty(len(rows), np.bool_)
    with threads_for(len(rows)):
        _lower(even_chunks(len(rows)), places(rows), got, value, lowered)
    return lowered
