"""Common neighbours of two rows of one shard, as in `common_neighbours`, for entries of a neighbour and a half.

These functions are called from kernels. Row bounds are unsigned: Numba tests every signed index for being negative.
"""

from __future__ import annotations

import numpy as np

from ...runtime.cache import cached_njit

_HALF = np.uint64(2**32 - 1)


@cached_njit
def find_half(entries, start, stop, number):
    """The half of neighbour `number`, which the row must contain; binary search."""
    low, high = start, stop
    key = np.uint64(number) << np.uint64(32)
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if entries[middle] < key:
            low = middle + np.uint64(1)
        else:
            high = middle
    return np.uint32(entries[low] & _HALF)


@cached_njit
def intersect_galloping(entries, a, a_stop, b, b_stop, to_f, to_g):
    """Common neighbours of two rows, by galloping through the second row, which should be the longer one.

    Writes the halves of row a to `to_f` and those of row b to `to_g`, which have one element more than there may be
    hits. Returns the number of hits.
    """
    hits = np.uintp(0)
    one = np.uint64(1)
    for q in range(a, a_stop):
        w = entries[q] & ~_HALF
        step = one
        while b + step < b_stop and entries[b + step] < w:
            b += step
            step += step
        hi = min(b + step, b_stop)
        while b < hi:
            middle = (b + hi) >> one
            if entries[middle] < w:
                b = middle + one
            else:
                hi = middle
        if b >= b_stop:
            break
        if entries[b] & ~_HALF == w:
            to_f[hits] = np.uint32(entries[q] & _HALF)
            to_g[hits] = np.uint32(entries[b] & _HALF)
            hits += np.uintp(1)
    return np.int64(hits)


@cached_njit
def mark_row(mark, entries, start, stop):
    """Write to `mark`, for each neighbour of the row, the half of its entry plus one."""
    for q in range(start, stop):
        mark[entries[q] >> np.uint64(32)] = np.uint32(entries[q] & _HALF) + np.uint32(1)


@cached_njit
def unmark_row(mark, entries, start, stop):
    """Reset to 0 what `mark_row` wrote."""
    for q in range(start, stop):
        mark[entries[q] >> np.uint64(32)] = 0


@cached_njit
def intersect_marked(mark, entries, start, stop, to_f, to_g):
    """Common neighbours of a row and the marked row, gathered without a branch.

    Writes the halves of the row to `to_f` and those of the marked row to `to_g`; returns the number of hits.
    """
    hits = np.uintp(0)
    for q in range(start, stop):
        m = mark[entries[q] >> np.uint64(32)]
        to_f[hits] = np.uint32(entries[q] & _HALF)
        to_g[hits] = m - np.uint32(1)
        hits += np.uintp(m != 0)
    return np.int64(hits)
