"""Packing of the oriented lists that other partitions need."""

from __future__ import annotations

import numpy as np

from ...graph import IntArray, LongArray
from ...runtime.cache import cached_njit


@cached_njit
def _measure(offsets, high, part, own, seen, lists, entries):
    for a in range(offsets.size - 1):
        stop = offsets[a + 1]
        for i in range(offsets[a], stop - 1):
            q = part[high[i]]
            if q != own and seen[q] != a:
                seen[q] = a
                lists[q] += 1
                entries[q] += stop - i


@cached_njit
def _fill(offsets, high, part, own, seen, next_list, next_entry, entry_edge, starts):
    for a in range(offsets.size - 1):
        stop = offsets[a + 1]
        for i in range(offsets[a], stop - 1):
            q = part[high[i]]
            if q != own and seen[q] != a:
                seen[q] = a
                starts[next_list[q]] = next_entry[q]
                next_list[q] += 1
                for j in range(i, stop):
                    entry_edge[next_entry[q]] = j
                    next_entry[q] += 1


def pack_lists(
    offsets: LongArray, high: IntArray, part: np.ndarray, own: int, partitions: int
) -> dict[int, tuple[LongArray, IntArray]]:
    """For each other partition, the part of each list that starts at the first member that belongs to it."""
    seen = np.full(partitions, -1, np.int64)
    lists = np.zeros(partitions, np.int64)
    entries = np.zeros(partitions, np.int64)
    _measure(offsets, high, part, own, seen, lists, entries)
    list_end, entry_end = np.cumsum(lists), np.cumsum(entries)
    starts = np.empty(int(list_end[-1]), np.int64)
    entry_edge = np.empty(int(entry_end[-1]), np.int32)
    seen[:] = -1
    _fill(offsets, high, part, own, seen, list_end - lists, entry_end - entries, entry_edge, starts)
    packed = {}
    for q in np.flatnonzero(lists).tolist():
        begin, end = int(entry_end[q] - entries[q]), int(entry_end[q])
        own_starts = starts[int(list_end[q] - lists[q]) : int(list_end[q])]
        packed[q] = (np.append(own_starts, end) - begin, entry_edge[begin:end])
    return packed
