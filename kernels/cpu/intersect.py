"""Triangles, by intersection of oriented lists with the oriented rows of a partition."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange

from ..graph import IntArray, LongArray
from ..runtime.cache import cached_njit
from .arrays.atomics import fetch_add, prefetch
from .arrays.sort import MANY
from .whole_triangles import count_whole

AHEAD = 4
"""Rows are prefetched this many members ahead."""
CHUNK = 32
"""Lists that a thread processes at a time: few, because the list of a hub takes as long as thousands of others."""


@cached_njit(parallel=True)
def _intersect(starts, members, offsets, high, home, whole, marks, hit_at, hit_entry, cursor, support, gain, outer):
    """Threads take lists from a shared cursor and mark one list at a time. Hits are stored without a branch."""
    lists = starts.size - 1
    for thread in prange(marks.shape[0]):
        mark = marks[thread]
        at = hit_at[thread]
        entry = hit_entry[thread]
        while True:
            first = fetch_add(cursor, 0, np.int64(CHUNK))
            if first >= lists:
                break
            for a in range(first, min(first + CHUNK, lists)):
                start = starts[a]
                stop = starts[a + 1]
                for i in range(start, stop):
                    if members[i] >= 0:
                        mark[members[i]] = i - start + 1
                for i in range(start, stop):
                    if i + AHEAD < stop and members[i + AHEAD] >= 0:
                        prefetch(high, offsets[members[i + AHEAD]])
                    b = members[i]
                    if b < 0 or not home[b]:
                        continue
                    row = np.uintp(offsets[b])
                    hits = np.uintp(0)
                    # Unsigned indices: Numba tests whether a signed index is negative at each access.
                    for j in range(row, np.uintp(offsets[b + 1])):
                        m = mark[high[j]]
                        at[hits] = j - row
                        entry[hits] = m - 1
                        hits += np.uintp(m != 0)
                    elsewhere = False
                    own = gain[start:stop]
                    for h in range(hits):
                        edge = row + np.uintp(at[h])
                        fetch_add(support, edge, np.int32(1))
                        own[entry[h]] += 1
                        if not whole:
                            elsewhere |= not home[high[edge]]
                    gain[i] += np.int32(hits)
                    outer[i] |= elsewhere
                for i in range(start, stop):
                    if members[i] >= 0:
                        mark[members[i]] = 0


def intersect(
    starts: LongArray, members: IntArray, offsets: LongArray, high: IntArray, home: np.ndarray
) -> tuple[IntArray, IntArray, np.ndarray]:
    """Find each triangle a < b < c whose list of a is given and whose edge (b, c) is in this partition."""
    whole = bool(home.all())
    if whole and members is high and starts is offsets and len(high) >= MANY:
        return *count_whole(offsets, high), np.zeros(len(members), np.bool_)
    threads = get_num_threads()
    vertices = len(offsets) - 1
    widest = int(np.diff(offsets).max(initial=0)) + 1
    support = np.zeros(len(high), np.int32)
    gain = np.zeros(len(members), np.int32)
    outer = np.zeros(len(members), np.bool_)
    _intersect(
        starts,
        members,
        offsets,
        high.view(np.uint32),
        home,
        whole,
        np.zeros((threads, vertices), np.int32),
        np.empty((threads, widest), np.uint32),
        np.empty((threads, widest), np.uint32),
        np.zeros(1, np.int64),
        support,
        gain,
        outer,
    )
    return support, gain, outer
