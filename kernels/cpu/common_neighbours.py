"""Common neighbours of two rows: by a search of the shorter one in the longer, or by marks of one row's neighbours.

Functions for kernels. Inner loops index with unsigned numbers: Numba tests every signed index for being negative.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def search_shorter(neighbour, edge, a, a_stop, b, b_stop, to_f, to_g):
    """Common neighbours of two rows, the first the shorter one: gallop through the longer."""
    hits = np.uintp(0)
    b = np.uintp(b)
    b_stop = np.uintp(b_stop)
    for q in range(np.uintp(a), np.uintp(a_stop)):
        w = neighbour[q]
        step = np.uintp(1)
        while b + step < b_stop and neighbour[b + step] < w:
            b += step
            step += step
        hi = min(b + step, b_stop)
        while b < hi:
            middle = (b + hi) >> np.uintp(1)
            if neighbour[middle] < w:
                b = middle + np.uintp(1)
            else:
                hi = middle
        if b >= b_stop:
            break
        if neighbour[b] == w:
            to_f[hits] = edge[q]
            to_g[hits] = edge[b]
            hits += np.uintp(1)
    return np.int64(hits)


@njit(cache=True, nogil=True)
def mark_row(mark, neighbour, edge, start, stop):
    """Note at every neighbour which edge leads there, plus one."""
    for q in range(np.uintp(start), np.uintp(stop)):
        mark[neighbour[q]] = edge[q] + 1


@njit(cache=True, nogil=True)
def unmark_row(mark, neighbour, start, stop):
    """Undo `mark_row`."""
    for q in range(np.uintp(start), np.uintp(stop)):
        mark[neighbour[q]] = 0


@njit(cache=True, nogil=True)
def probe(mark, neighbour, edge, start, stop, to_f, to_g):
    """Common neighbours of a row and the marked one, gathered without a branch."""
    hits = np.uintp(0)
    for q in range(np.uintp(start), np.uintp(stop)):
        m = mark[neighbour[q]]
        to_f[hits] = edge[q]
        to_g[hits] = m - 1
        hits += np.uintp(m != 0)
    return np.int64(hits)
