"""Count the edges between the sources of a row: the links between the neighbours of a vertex."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import InRows, IntArray, LongArray
from ...runtime.cache import cached_njit
from ..arrays.intrinsics import fetch_add
from .chunks import CHUNKS_PER_THREAD, threads_for


@cached_njit(parallel=True)
def _count(transposed, edges, cuts, links):
    """Edges with equal `one` are adjacent. Mark the rows of `one` once, then read the rows of each `other`."""
    offsets, row_of = transposed
    one, other, times = edges
    for chunk in prange(cuts.size - 1):
        marked = np.zeros(links.size, np.bool_)
        last = np.int64(-1)
        for i in range(cuts[chunk], cuts[chunk + 1]):
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
                    fetch_add(links, row, np.int64(times[i]))


@cached_njit(parallel=True)
def _count_whole(offsets, lower, times, cuts, links):
    """Find each triangle w, x, y once, at its last vertex y. Each of its edges counts for the opposite vertex."""
    for chunk in prange(cuts.size - 1):
        marked = np.zeros(offsets.size - 1, np.uint8)
        for y in range(cuts[chunk], cuts[chunk + 1]):
            for q in range(offsets[y], offsets[y + 1]):
                marked[lower[q]] = times[q]
            of_y = np.int64(0)
            for q in range(offsets[y], offsets[y + 1]):
                x = lower[q]
                of_x = np.int64(0)
                for r in range(offsets[x], offsets[x + 1]):
                    w = lower[r]
                    if marked[w]:
                        fetch_add(links, w, np.int64(times[q]))
                        of_x += marked[w]
                        of_y += times[r]
                if of_x:
                    fetch_add(links, x, of_x)
            if of_y:
                fetch_add(links, y, of_y)
            for q in range(offsets[y], offsets[y + 1]):
                marked[lower[q]] = 0


def count_all_links(offsets: LongArray, lower: IntArray, times: NDArray[np.uint8]) -> LongArray:
    """For each vertex, the sum of `times` over the edges between its neighbours; see `kernels.programs`."""
    links = np.zeros(len(offsets) - 1, np.int64)
    if len(lower):
        work = np.concatenate(([0], np.cumsum(np.diff(offsets)[lower] + 1)))[offsets] + np.arange(len(offsets))
        aims = np.linspace(0, work[-1], CHUNKS_PER_THREAD * get_num_threads() + 1)
        cuts = np.unique(np.concatenate(([0], np.searchsorted(work, aims), [len(links)])))
        with threads_for(int(work[-1])):
            _count_whole(offsets, lower, times, cuts[cuts <= len(links)], links)
    return links


def count_links(transposed: InRows, one: IntArray, other: IntArray, times: NDArray[np.uint8], links: LongArray) -> None:
    """Add to each row the `times` of the edges that have both ends in the row; see `kernels.programs`."""
    if not len(one):
        return
    starts = np.concatenate(([0], np.flatnonzero(np.diff(one)) + 1))
    work = np.cumsum(np.diff(transposed.offsets)[other] + 1)
    aims = np.linspace(0, work[-1], 4 * get_num_threads() + 1)
    aimed = np.searchsorted(work, aims)
    cuts = np.unique(np.append(starts, len(one))[np.searchsorted(starts, aimed)])
    cuts = np.unique(np.concatenate(([0], cuts, [len(one)])))
    _count((transposed.offsets, transposed.source), (one, other, times), cuts, links)
