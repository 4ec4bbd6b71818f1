"""Common neighbours of two rows, by a search of the shorter row in the longer row, or by marks of one row's neighbours.

Functions for kernels. Inner loops index with unsigned numbers: Numba tests whether each signed index is negative.
"""

from __future__ import annotations

import numpy as np

from ..runtime.cache import cached_njit


@cached_njit
def search_shorter(neighbour, edge, a, a_stop, b, b_stop, to_f, to_g):
    """Write the edges to the common neighbours of two rows to `to_f` and `to_g`. Galloping search. Returns a count.

    The first row must be the shorter one; both ascend.
    """
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


@cached_njit
def mark_row(mark, neighbour, edge, start, stop):
    """Store at each neighbour of a row the edge to it, plus one."""
    for q in range(np.uintp(start), np.uintp(stop)):
        mark[neighbour[q]] = edge[q] + 1


@cached_njit
def unmark_row(mark, neighbour, start, stop):
    """Undo `mark_row`."""
    for q in range(np.uintp(start), np.uintp(stop)):
        mark[neighbour[q]] = 0


@cached_njit
def probe(mark, neighbour, edge, start, stop, to_f, to_g):
    """As `search_shorter`, for a row and the marked row. Has no branches."""
    hits = np.uintp(0)
    for q in range(np.uintp(start), np.uintp(stop)):
        m = mark[neighbour[q]]
        to_f[hits] = edge[q]
        to_g[hits] = m - 1
        hits += np.uintp(m != 0)
    return np.int64(hits)
