"""Counts of the triangles in which an edge has the least level, and of those in which it is the first in an order."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange

from ...graph import KEY_BITS, IntArray, LongArray, Topology
from ...runtime.cache import cached_njit
from ..arrays.atomics import fetch_add, prefetch

CHUNK = 32
"""Lists that a thread takes at a time."""
AHEAD = 4
"""Rows are prefetched this many members ahead."""


@cached_njit(parallel=True)
def _order_counts(offsets, high, key, marks, found, cursor, count, remainder):
    vertices = offsets.size - 1
    for thread in prange(marks.shape[0]):
        mark = marks[thread]
        at = found[thread]
        while True:
            first = fetch_add(cursor, 0, np.int64(CHUNK))
            if first >= vertices:
                break
            for a in range(first, min(first + CHUNK, vertices)):
                start = np.uintp(offsets[a])
                stop = np.uintp(offsets[a + 1])
                for i in range(start, stop):
                    mark[high[i]] = i + np.uintp(1)
                for i in range(start, stop):
                    if i + np.uintp(AHEAD) < stop:
                        prefetch(high, offsets[high[i + np.uintp(AHEAD)]])
                    hits = np.uintp(0)
                    for j in range(np.uintp(offsets[high[i]]), np.uintp(offsets[high[i] + 1])):
                        at[hits] = j
                        hits += np.uintp(mark[high[j]] != 0)
                    own = key[i]
                    counted = np.int32(0)
                    first_of = np.int32(0)
                    for h in range(hits):
                        f = at[h]
                        g = mark[high[f]] - 1
                        kf = key[f]
                        kg = key[g]
                        least = min(own, kf, kg)
                        level = least >> KEY_BITS
                        counted += np.int32(own >> KEY_BITS == level)
                        first_of += np.int32(own == least)
                        if kf >> KEY_BITS == level:
                            fetch_add(count, f, np.int32(1))
                        if kg >> KEY_BITS == level:
                            fetch_add(count, g, np.int32(1))
                        if kf == least:
                            fetch_add(remainder, f, np.int32(1))
                        if kg == least:
                            fetch_add(remainder, g, np.int32(1))
                    if counted:
                        fetch_add(count, i, counted)
                    if first_of:
                        fetch_add(remainder, i, first_of)
                for i in range(start, stop):
                    mark[high[i]] = 0


def order_counts(topology: Topology, key: LongArray) -> tuple[IntArray, IntArray]:
    """Two counts of each edge's triangles, int32 [edges]: those whose other edges have at least its level, and those
    whose other edges have no smaller keys.

    `key` int64 [edges] is the level in the upper half and a time ≥ 0 in the lower one. The forward algorithm (Schank
    and Wagner, WEA 2005), which is fast if vertices are in degree order: reads each row once for each list that it is
    in, and three keys for each triangle.
    """
    offsets = np.searchsorted(topology.low, np.arange(topology.vertices + 1, dtype=np.int32))
    threads, widest = get_num_threads(), int(np.diff(offsets).max(initial=0)) + 1
    count, remainder = np.zeros((2, topology.edges), np.int32)
    marks, found = np.zeros((threads, topology.vertices), np.uint32), np.empty((threads, widest), np.uint32)
    _order_counts(offsets, topology.high, key, marks, found, np.zeros(1, np.int64), count, remainder)
    return count, remainder
