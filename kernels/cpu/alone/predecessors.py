"""Predecessors on shortest paths, from the distances."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import LongArray
from ...in_rows import InRows
from ...runtime.cache import cached_njit
from ..arrays.atomics import fetch_add
from ..arrays.places import places

_SHARE = 1024
"""Vertices that a thread takes at a time."""


@cached_njit(parallel=True)
def _precede(lanes, offsets, source, weight, distance, start, before, counters, equal, entries):
    """The first source whose distance and edge give that of the vertex, if it is nearer. Counts others by lane."""
    counters[0] = 0
    for lane in prange(lanes):
        count, read = 0, np.uint64(0)
        while True:
            first = fetch_add(counters, 0, _SHARE)
            if first >= distance.size:
                break
            for v in range(first, min(first + _SHARE, distance.size)):
                far, found = distance[v], np.int64(-1)
                if v == start:
                    found = np.int64(v)
                elif far < np.inf:
                    for q in range(offsets[v], offsets[v + 1]):
                        s = source[q]
                        read += np.uint64(1)
                        if distance[s] + weight[q] == far:
                            if distance[s] < far:
                                found = np.int64(s)
                            break
                    if found < 0:
                        count += 1
                before[v] = found
        equal[lane], entries[lane] = count, read


def predecessors(rows: InRows, distance: NDArray[np.float64], start: int) -> tuple[LongArray, int, int]:
    """(the smallest predecessor of each vertex, how many were not found, entries read).

    `rows` have the sources of each vertex, ascending, with weights. The predecessor is -1 where no path leads, and also
    where the smallest one is as far as the vertex itself: those were not found. That of `start` is itself.
    """
    lanes = get_num_threads()
    before, counters = np.empty(rows.rows, np.int64), np.zeros(1, np.int64)
    equal, entries = np.empty(lanes, np.int64), np.empty(lanes, np.uint64)
    offsets, source = places(rows.offsets), places(rows.source)
    _precede(lanes, offsets, source, rows.weights, distance, start, before, counters, equal, entries)
    return before, int(equal.sum()), int(entries.sum())
