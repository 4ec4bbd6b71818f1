"""Counts of the triangles in which an edge has the least λ, or is the first in an order of peeling.

Each triangle is found once, from the edge between its two lowest vertices: the shorter of two row ends is searched in
the longer one. The counts of its edges are raised atomically.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange

from ...graph import Adjacency, IntArray, LongArray, Topology
from ...runtime.cache import cached_njit
from ..arrays.atomics import fetch_add
from ..common_neighbours import search_shorter

KEY_BITS = 32
"""The key of an edge is its level, shifted left by this number of bits, plus its time."""
CHUNK = 512
"""Edges that a thread takes at a time."""


@cached_njit
def tail(neighbour, begin, stop, vertex):
    """The first entry of an ascending row whose neighbour is above `vertex`."""
    low = np.uintp(begin)
    high = np.uintp(stop)
    while low < high:
        middle = (low + high) >> np.uintp(1)
        if neighbour[middle] <= vertex:
            low = middle + np.uintp(1)
        else:
            high = middle
    return np.int64(low)


@cached_njit
def _triangles_above(low, high, e, begin, length, neighbour, edge, to_f, to_g):
    """The other two edges of each triangle of e whose third vertex is above both ends of e."""
    v = high[e]
    a_stop = begin[low[e]] + length[low[e]]
    b_stop = begin[v] + length[v]
    a = tail(neighbour, begin[low[e]], a_stop, v)
    b = tail(neighbour, begin[v], b_stop, v)
    if a_stop - a <= b_stop - b:
        return search_shorter(neighbour, edge, a, a_stop, b, b_stop, to_f, to_g)
    return search_shorter(neighbour, edge, b, b_stop, a, a_stop, to_f, to_g)


@cached_njit(parallel=True)
def _level_counts(low, high, begin, length, neighbour, edge, level, cursor, found_f, found_g, count):
    for thread in prange(found_f.shape[0]):
        to_f = found_f[thread]
        to_g = found_g[thread]
        while True:
            first = fetch_add(cursor, 0, np.int64(CHUNK))
            if first >= low.size:
                break
            for e in range(first, min(first + CHUNK, low.size)):
                own = level[e]
                gained = np.int32(0)
                hits = _triangles_above(low, high, e, begin, length, neighbour, edge, to_f, to_g)
                for h in range(np.uintp(hits)):
                    f = to_f[h]
                    g = to_g[h]
                    least = min(own, level[f], level[g])
                    gained += np.int32(own == least)
                    if level[f] == least:
                        fetch_add(count, f, np.int32(1))
                    if level[g] == least:
                        fetch_add(count, g, np.int32(1))
                if gained:
                    fetch_add(count, e, gained)


@cached_njit(parallel=True)
def _first_counts(low, high, begin, length, neighbour, edge, key, cursor, found_f, found_g, count):
    for thread in prange(found_f.shape[0]):
        to_f = found_f[thread]
        to_g = found_g[thread]
        while True:
            first = fetch_add(cursor, 0, np.int64(CHUNK))
            if first >= low.size:
                break
            for e in range(first, min(first + CHUNK, low.size)):
                own = key[e]
                gained = np.int32(0)
                hits = _triangles_above(low, high, e, begin, length, neighbour, edge, to_f, to_g)
                for h in range(np.uintp(hits)):
                    f = to_f[h]
                    g = to_g[h]
                    if own < key[f] and own < key[g]:
                        gained += np.int32(1)
                    elif key[f] < key[g]:
                        fetch_add(count, f, np.int32(1))
                    else:
                        fetch_add(count, g, np.int32(1))
                if gained:
                    fetch_add(count, e, gained)


def level_counts(topology: Topology, rows: Adjacency, level: IntArray) -> IntArray:
    """The triangles of each edge whose other edges have at least its level, int32 [edges].

    `level` is int32 [edges]. Vertices may be numbered in any way. Reads the shorter of two row ends for each edge, and
    three levels for each triangle.
    """
    count = np.zeros(topology.edges, np.int32)
    _level_counts(*_rows(topology, rows), level, *_scratch(rows), count)
    return count


def first_counts(topology: Topology, rows: Adjacency, key: LongArray) -> IntArray:
    """The triangles of each edge whose other edges have larger keys, int32 [edges]. `key` is int64 [edges], distinct.

    Reads the shorter of two row ends for each edge, and three keys for each triangle.
    """
    count = np.zeros(topology.edges, np.int32)
    _first_counts(*_rows(topology, rows), key, *_scratch(rows), count)
    return count


def _rows(topology: Topology, rows: Adjacency) -> tuple[IntArray, IntArray, LongArray, IntArray, IntArray, IntArray]:
    return topology.low, topology.high, rows.begin, rows.length, rows.neighbour, rows.edge


def _scratch(rows: Adjacency) -> tuple[LongArray, IntArray, IntArray]:
    room = get_num_threads(), rows.widest + 1
    return np.zeros(1, np.int64), np.empty(room, np.int32), np.empty(room, np.int32)
