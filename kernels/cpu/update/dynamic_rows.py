"""Sorted rows that change by batches: each touched row is merged with its part of the batch and written anew.

A row has entries for both directions of its edges, ascending. The entry of an edge at its lower end holds its support.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from ...graph import IntArray, LongArray
from ...runtime.cache import cached_njit
from ..arrays.atomics import fetch_add

FLAG = np.int32(1 << 30)
"""Added to the support of an edge of the batch while triangles are found."""
ROWS = 64
"""Rows of one step of a parallel pass."""


@cached_njit
def _place(neighbour, begin, length, vertex):
    """The entry of `vertex` in a row, or -1."""
    low = begin
    high = begin + length
    while low < high:
        middle = (low + high) >> 1
        if neighbour[middle] < vertex:
            low = middle + 1
        else:
            high = middle
    return low if low < begin + length and neighbour[low] == vertex else -1


@cached_njit(parallel=True)
def present(begin, length, neighbour, low, high):
    """Whether each pair is an edge of the rows, bool [pairs]. A binary search for each."""
    found = np.empty(low.size, np.bool_)
    for i in prange(low.size):
        found[i] = _place(neighbour, begin[low[i]], length[low[i]], high[i]) >= 0
    return found


@cached_njit(parallel=True)
def merge_into(rows, starts, ends, begin, length, neighbour, support, to):
    """Write the union of each touched row and its new neighbours to the row's new place, from its end to its start.

    `rows` [touched] are vertices, `ends` [entries] their new neighbours, none of which is in its row, and `starts`
    [touched + 1] where those of each row begin; `to` [touched] are the new places, which overlap no row. New edges have
    support FLAG. `begin` and `length` are updated.
    """
    for step in prange((rows.size + ROWS - 1) // ROWS):
        for i in range(step * ROWS, min((step + 1) * ROWS, rows.size)):
            v = rows[i]
            a = begin[v]
            a_stop = a + length[v]
            b = starts[i]
            b_stop = starts[i + 1]
            t = to[i]
            while a < a_stop or b < b_stop:
                if b >= b_stop or (a < a_stop and neighbour[a] < ends[b]):
                    neighbour[t] = neighbour[a]
                    support[t] = support[a]
                    a += 1
                else:
                    neighbour[t] = ends[b]
                    support[t] = FLAG
                    b += 1
                t += 1
            begin[v] = to[i]
            length[v] += b_stop - starts[i]


@cached_njit(parallel=True)
def leave_out_of(rows, starts, ends, begin, length, neighbour, support):
    """Take neighbours out of rows, in place; arguments as those of `merge_into`. Each is in its row."""
    for step in prange((rows.size + ROWS - 1) // ROWS):
        for i in range(step * ROWS, min((step + 1) * ROWS, rows.size)):
            v = rows[i]
            b = starts[i]
            t = _place(neighbour, begin[v], length[v], ends[b])
            for a in range(t, begin[v] + length[v]):
                if b < starts[i + 1] and neighbour[a] == ends[b]:
                    b += 1
                else:
                    neighbour[t] = neighbour[a]
                    support[t] = support[a]
                    t += 1
            length[v] -= starts[i + 1] - starts[i]


@cached_njit(parallel=True)
def pack(begin, length, neighbour, support, new_begin, new_neighbour, new_support):
    """Copy all rows to their new places."""
    for v in prange(begin.size):
        a = begin[v]
        t = new_begin[v]
        for q in range(length[v]):
            new_neighbour[t + q] = neighbour[a + q]
            new_support[t + q] = support[a + q]


@cached_njit(parallel=True)
def set_flags(low, high, begin, length, neighbour, support):
    """Add FLAG to the support of edges."""
    for i in prange(low.size):
        support[_place(neighbour, begin[low[i]], length[low[i]], high[i])] += FLAG


@cached_njit
def _entry(u, v, begin, length, neighbour):
    """The entry of an edge that is there, at its lower end."""
    if u < v:
        return _place(neighbour, begin[u], length[u], v)
    return _place(neighbour, begin[v], length[v], u)


@cached_njit
def _comes_first(u, v, other_u, other_v):
    """Whether the pair (u, v), u < v, is before another one, whose ends are in any order."""
    a = min(other_u, other_v)
    return u < a or (u == a and v < max(other_u, other_v))


@cached_njit(parallel=True)
def change_supports(low, high, begin, length, neighbour, support, change):
    """Find the triangles of the batch's edges, which have FLAG. Returns their number for each, int32 [pairs].

    Adds `change` to the support of each other edge once for each triangle.

    Searches the shorter row in the longer one; then up to two searches for each triangle.
    """
    own = np.zeros(low.size, np.int32)
    for i in prange(low.size):
        u = low[i]
        v = high[i]
        if length[u] > length[v]:
            u, v = v, u
        first = begin[v]
        stop = begin[v] + length[v]
        for q in range(begin[u], begin[u] + length[u]):
            w = neighbour[q]
            last = stop
            while first < last:
                middle = (first + last) >> 1
                if neighbour[middle] < w:
                    first = middle + 1
                else:
                    last = middle
            if first >= stop:
                break
            if neighbour[first] != w:
                continue
            own[i] += 1
            f = q if u < w else _entry(u, w, begin, length, neighbour)
            g = first if v < w else _entry(v, w, begin, length, neighbour)
            f_too = support[f] >= FLAG // 2
            g_too = support[g] >= FLAG // 2
            if f_too and not _comes_first(low[i], high[i], u, w):
                continue
            if g_too and not _comes_first(low[i], high[i], v, w):
                continue
            if not f_too:
                fetch_add(support, f, np.int32(change))
            if not g_too:
                fetch_add(support, g, np.int32(change))
    return own


@cached_njit(parallel=True)
def set_supports(low, high, begin, length, neighbour, support, values):
    """Set the support of edges that are there."""
    for i in prange(low.size):
        support[_place(neighbour, begin[low[i]], length[low[i]], high[i])] = values[i]


@cached_njit(parallel=True)
def get_supports(low, high, begin, length, neighbour, support):
    """The support of edges that are there, int32 [pairs]."""
    found = np.empty(low.size, np.int32)
    for i in prange(low.size):
        found[i] = support[_place(neighbour, begin[low[i]], length[low[i]], high[i])]
    return found


def group_by_row(low: IntArray, high: IntArray) -> tuple[IntArray, LongArray, IntArray]:
    """Both directions of some pairs: the rows, where the entries of each start, and the entries; all ascending."""
    keys = np.concatenate([low.astype(np.int64) << 32 | high, high.astype(np.int64) << 32 | low])
    keys.sort()
    of = (keys >> 32).astype(np.int32)
    heads = np.flatnonzero(np.diff(of, prepend=-1))
    return of[heads], np.append(heads, len(of)), keys.astype(np.int32)
