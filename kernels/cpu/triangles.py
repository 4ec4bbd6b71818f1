"""Triangles of a whole graph, by intersection of its oriented lists. The shorter of two lists is looked up in the
other.

A triangle a < b < c is found at the entry b of the list of a: c is in the rest of this list and in the list of b. If
the list of b is not longer than the rest, the list of b is looked up in the marked list of a, in a pass over the lists.
Otherwise the rest is looked up in the marked list of b, in a pass over the members b.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange

from ..graph import IntArray, LongArray
from ..runtime.cache import cached_njit
from .adjacency import row_numbers
from .arrays.intrinsics import fetch_add, prefetch
from .arrays.sort import by_key

AHEAD = 4
"""Lists are prefetched this many entries ahead, or twice as many where they lie far apart."""
LINES = 4
"""Cache lines of a list, and of the counts of its entries, that are prefetched."""
CHUNK = 8
"""Lists that a thread processes at a time: few, because the list of a hub takes as long as thousands of others."""


@cached_njit(parallel=True)
def _count_by_list(offsets, high, by_member, marks, found, cursor, share, shares, support, gain):
    """Count the triangles at entries b whose list is not longer than the rest of the list of a. Sets `by_member` for
    all other entries.

    Of each `shares` chunks of lists the chunk with number `share` is processed. Hits are stored without a branch. Adds
    the triangles of edges in the list of a, to which only this thread writes, to `gain`, and those of edges in the list
    of b to `support`.
    """
    lists = offsets.size - 1
    for thread in prange(marks.shape[0]):
        mark = marks[thread]
        at = found[0, thread]
        entry = found[1, thread]
        while True:
            taken = (fetch_add(cursor, 0, np.int64(1)) * shares + share) * CHUNK
            if taken >= lists:
                break
            for a in range(taken, min(taken + CHUNK, lists)):
                start = np.uintp(offsets[a])
                stop = np.uintp(offsets[a + 1])
                for i in range(start, stop):
                    mark[high[i]] = i - start + np.uintp(1)
                for i in range(start, stop):
                    if i + np.uintp(AHEAD) < stop:
                        prefetch(high, offsets[high[i + np.uintp(AHEAD)]])
                    row = np.uintp(offsets[high[i]])
                    row_stop = np.uintp(offsets[high[i] + np.uint32(1)])
                    if row_stop - row > stop - i - np.uintp(1):
                        by_member[i] = True
                        continue
                    hits = np.uintp(0)
                    for j in range(row, row_stop):
                        m = mark[high[j]]
                        at[hits] = j - row
                        entry[hits] = m - 1
                        hits += np.uintp(m != 0)
                    for h in range(hits):
                        fetch_add(support, row + np.uintp(at[h]), np.int32(1))
                        gain[start + np.uintp(entry[h])] += 1
                    gain[i] += np.int32(hits)
                for i in range(start, stop):
                    mark[high[i]] = 0


@cached_njit(parallel=True)
def _count_by_member(offsets, high, entries, ends, begins, marks, found, cursor, support, gain):
    """Count the triangles at the other entries. They are sorted by member: the entries of b begin at `begins[b]`.

    Members are processed from the last to the first, since the last members have most entries. Adds the triangles of
    edges in the list of b, to which only this thread writes, to `support`, and those of edges in other lists to `gain`.
    """
    members = offsets.size - 1
    for thread in prange(marks.shape[0]):
        mark = marks[thread]
        at = found[0, thread]
        entry = found[1, thread]
        while True:
            taken = fetch_add(cursor, 0, np.int64(CHUNK))
            if taken >= members:
                break
            for back in range(taken, min(taken + CHUNK, members)):
                b = members - 1 - back
                if begins[b] == begins[b + 1]:
                    continue
                row = np.uintp(offsets[b])
                row_stop = np.uintp(offsets[b + 1])
                for j in range(row, row_stop):
                    mark[high[j]] = j - row + np.uintp(1)
                for k in range(np.uintp(begins[b]), np.uintp(begins[b + 1])):
                    if k + np.uintp(2 * AHEAD) < np.uintp(entries.size):
                        ahead = entries[k + np.uintp(2 * AHEAD)]
                        for line in range(LINES):
                            prefetch(high, ahead + 16 * line)
                            prefetch(gain, ahead + 16 * line)
                    e = np.uintp(entries[k])
                    hits = np.uintp(0)
                    for q in range(e + np.uintp(1), np.uintp(ends[k])):
                        m = mark[high[q]]
                        at[hits] = q - e
                        entry[hits] = m - 1
                        hits += np.uintp(m != 0)
                    for h in range(hits):
                        fetch_add(gain, e + np.uintp(at[h]), np.int32(1))
                        support[row + np.uintp(entry[h])] += 1
                    if hits:
                        fetch_add(gain, e, np.int32(hits))
                for j in range(row, row_stop):
                    mark[high[j]] = 0


@cached_njit(parallel=True)
def _find_ends(offsets, high, low, entries, ends, begins):
    """Find the end of the list of each entry, and where the entries of each member begin.

    All of `begins` [members + 1] must be the number of entries before the call.
    """
    for k in prange(entries.size):
        ends[k] = offsets[np.uintp(low[entries[k]]) + np.uintp(1)]
        before = high[entries[k - 1]] if k else np.int32(-1)
        for b in range(before + 1, high[entries[k]] + 1):
            begins[b] = k


class WholeCounts:
    """The triangles of each edge of a graph, in two parts to be added. Mutable."""

    def __init__(self, offsets: LongArray, high: IntArray) -> None:
        """`offsets` [vertices + 1] and `high` [edges] are its oriented lists, each ascending."""
        threads, self._vertices = get_num_threads(), len(offsets) - 1
        widest = int(np.diff(offsets).max(initial=0)) + 1
        self._offsets, self._high, self._members = offsets, high, high.view(np.uint32)
        self.support, self.gain = (np.zeros(len(high), np.int32) for _ in range(2))  # one may outlive the other
        self._marks = np.zeros((threads, self._vertices), np.int32)
        self._found = np.empty((2, threads, widest), np.uint32)

    def add_by_list(self, share: int = 0, shares: int = 1) -> IntArray:
        """Count the triangles at entries of all lists, or of one of `shares` shares of the lists. Returns the entries
        that are left to `add_by_member`, ascending.
        """
        left = np.zeros(len(self._high), np.bool_)
        lists, cursor = (self._offsets, self._members), np.zeros(1, np.int64)
        _count_by_list(*lists, left, self._marks, self._found, cursor, share, shares, self.support, self.gain)
        return np.flatnonzero(left).astype(np.int32)

    def add_by_member(self, entries: IntArray) -> None:
        """Count the triangles at these entries."""
        vertices, cursor = self._vertices, np.zeros(1, np.int64)
        if len(entries):
            entries = by_key(self._high, entries, vertices)
        ends, begins = np.empty(len(entries), np.int32), np.full(vertices + 1, len(entries))
        _find_ends(self._offsets, self._high, row_numbers(self._offsets), entries, ends, begins)
        lists, places = (self._offsets, self._members), (entries, ends, begins)
        _count_by_member(*lists, *places, self._marks, self._found, cursor, self.support, self.gain)


def count_whole(offsets: LongArray, high: IntArray, share: int = 0, shares: int = 1) -> tuple[IntArray, IntArray]:
    """The number of triangles of each edge of a graph, as two arrays to be added, int32 [edges] each.

    `offsets` [vertices + 1] and `high` [edges] are the oriented lists of the graph, each ascending. If `shares` is
    above 1, only one of `shares` disjoint shares of the triangles is counted.
    """
    counts = WholeCounts(offsets, high)
    left = counts.add_by_list(share, shares)
    if len(left):
        counts.add_by_member(left)
    return counts.support, counts.gain


def supports(offsets: LongArray, high: IntArray, share: int = 0, shares: int = 1) -> IntArray:
    """The triangles of each edge of a graph; see `kernels.supports`."""
    support, gain = count_whole(offsets, high, share, shares)
    support += gain
    return support
