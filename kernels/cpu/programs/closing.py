"""Edges between the sources of a row: triangles of a vertex, and links among its neighbours."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, njit, prange
from numpy.typing import NDArray

from ...graph import IntArray, LongArray
from ...in_rows import InRows
from ..atomics import fetch_add
from .pieces import PIECES, threads_for


@njit(parallel=True, cache=True, nogil=True)
def _count(offsets, row_of, rows, cuts, one, other, times, found):
    """Edges of equal `one` come together: the rows of `one` are marked once, then those of each `other` are read."""
    for piece in prange(cuts.size - 1):
        marked = np.zeros(rows, np.bool_)
        last = np.int64(-1)
        for i in range(cuts[piece], cuts[piece + 1]):
            s = np.int64(one[i])
            if s != last:
                if last >= 0:
                    for q in range(offsets[last], offsets[last + 1]):
                        marked[row_of[q]] = False
                for q in range(offsets[s], offsets[s + 1]):
                    marked[row_of[q]] = True
                last = s
            for q in range(offsets[other[i]], offsets[other[i] + 1]):
                row = row_of[q]
                if marked[row]:
                    fetch_add(found, row, np.int64(times[i]))


@njit(parallel=True, cache=True, nogil=True)
def _count_whole(offsets, lower, times, cuts, found):
    """Each triangle w, x, y once, at its last vertex y; each of its edges counts at the vertex across."""
    for piece in prange(cuts.size - 1):
        marked = np.zeros(offsets.size - 1, np.uint8)
        for y in range(cuts[piece], cuts[piece + 1]):
            for q in range(offsets[y], offsets[y + 1]):
                marked[lower[q]] = times[q]
            of_y = np.int64(0)
            for q in range(offsets[y], offsets[y + 1]):
                x = lower[q]
                of_x = np.int64(0)
                for r in range(offsets[x], offsets[x + 1]):
                    w = lower[r]
                    if marked[w]:
                        fetch_add(found, w, np.int64(times[q]))
                        of_x += marked[w]
                        of_y += times[r]
                if of_x:
                    fetch_add(found, x, of_x)
            if of_y:
                fetch_add(found, y, of_y)
            for q in range(offsets[y], offsets[y + 1]):
                marked[lower[q]] = 0


def count_closing_whole(offsets: LongArray, lower: IntArray, times: NDArray[np.uint8]) -> LongArray:
    """For each vertex `times` of the edges between its neighbours, from rows of those before it in an order."""
    found = np.zeros(len(offsets) - 1, np.int64)
    if len(lower):
        work = np.concatenate(([0], np.cumsum(np.diff(offsets)[lower] + 1)))[offsets] + np.arange(len(offsets))
        aims = np.linspace(0, work[-1], PIECES * get_num_threads() + 1)
        cuts = np.unique(np.concatenate(([0], np.searchsorted(work, aims), [len(found)])))
        with threads_for(int(work[-1])):
            _count_whole(offsets, lower, times, cuts[cuts <= len(found)], found)
    return found


def count_closing(
    turned: InRows, rows: int, one: IntArray, other: IntArray, times: NDArray[np.uint8], found: LongArray
) -> None:
    """Add to each row `times` of the edges whose ends are both in it."""
    if not len(one):
        return
    starts = np.concatenate(([0], np.flatnonzero(np.diff(one)) + 1))
    work = np.cumsum(np.diff(turned.offsets)[other] + 1)
    aims = np.linspace(0, work[-1], 4 * get_num_threads() + 1)
    aimed = np.searchsorted(work, aims)
    cuts = np.unique(np.append(starts, len(one))[np.searchsorted(starts, aimed)])
    cuts = np.unique(np.concatenate(([0], cuts, [len(one)])))
    _count(turned.offsets, turned.source, rows, cuts, one, other, times, found)
