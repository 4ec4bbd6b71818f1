"""Common neighbours of two rows of one shard, as in `common_neighbours`, over entries of a neighbour and a half.

Functions for kernels. Rows start and stop at unsigned numbers: Numba tests every signed index for being negative.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_HALF = np.uint64(2**32 - 1)


@njit(cache=True, nogil=True)
def find_half(entries, start, stop, number):
    """The half of a neighbour that the row must have; binary search."""
    low, high = start, stop
    wanted = np.uint64(number) << np.uint64(32)
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if entries[middle] < wanted:
            low = middle + np.uint64(1)
        else:
            high = middle
    return np.uint32(entries[low] & _HALF)


@njit(cache=True, nogil=True)
def search_shorter(entries, a, a_stop, b, b_stop, to_f, to_g):
    """Common neighbours of two rows, the first the shorter one: gallop through the longer."""
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


@njit(cache=True, nogil=True)
def mark_row(mark, entries, start, stop):
    """Note at every neighbour which half leads there, plus one."""
    for q in range(start, stop):
        mark[entries[q] >> np.uint64(32)] = np.uint32(entries[q] & _HALF) + np.uint32(1)


@njit(cache=True, nogil=True)
def unmark_row(mark, entries, start, stop):
    """Undo `mark_row`."""
    for q in range(start, stop):
        mark[entries[q] >> np.uint64(32)] = 0


@njit(cache=True, nogil=True)
def probe(mark, entries, start, stop, to_f, to_g):
    """Common neighbours of a row and the marked one, gathered without a branch."""
    hits = np.uintp(0)
    for q in range(start, stop):
        m = mark[entries[q] >> np.uint64(32)]
        to_f[hits] = np.uint32(entries[q] & _HALF)
        to_g[hits] = m - np.uint32(1)
        hits += np.uintp(m != 0)
    return np.int64(hits)
