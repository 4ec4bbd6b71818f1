"""The triangles of removed edges, each once, in parallel."""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange

from ...graph import Adjacency, AnyArray, IntArray, Topology
from ...runtime.cache import cached_njit
from ..common_neighbours import search_shorter
from .merging import ADDED, REMOVED

ROOM = 1 << 20
"""Triangles that all threads together find in one pass."""


@cached_njit
def triangles_of(e, low, high, begin, length, neighbour, edge, to_f, to_g):
    """Write the other two edges of each triangle of e to `to_f` and `to_g`. Returns a count."""
    a = begin[low[e]]
    a_stop = a + length[low[e]]
    b = begin[high[e]]
    b_stop = b + length[high[e]]
    if a_stop - a <= b_stop - b:
        return search_shorter(neighbour, edge, a, a_stop, b, b_stop, to_f, to_g)
    return search_shorter(neighbour, edge, b, b_stop, a, a_stop, to_f, to_g)


@cached_njit(parallel=True)
def _find(some, low, high, begin, length, neighbour, edge, mark, todo, found_f, found_g, found, fill, looked):
    """Each thread goes through its range of `some` until its room is full."""
    for thread in prange(todo.shape[0]):
        to_f = found_f[thread]
        to_g = found_g[thread]
        triples = found[thread]
        n = 0
        seen = 0
        i = todo[thread, 0]
        while i < todo[thread, 1]:
            e = some[i]
            if n + min(length[low[e]], length[high[e]]) > triples.shape[0]:
                break
            hits = triangles_of(e, low, high, begin, length, neighbour, edge, to_f, to_g)
            seen += hits
            for h in range(hits):
                f = to_f[h]
                g = to_g[h]
                mf = mark[f]
                mg = mark[g]
                if mf != ADDED and mg != ADDED and (mf != REMOVED or f > e) and (mg != REMOVED or g > e):
                    triples[n, 0] = e
                    triples[n, 1] = f
                    triples[n, 2] = g
                    n += 1
            i += 1
        todo[thread, 0] = i
        fill[thread] = n
        looked[thread] += seen


def removed_triangles(topology: Topology, rows: Adjacency, mark: AnyArray, removed: IntArray) -> tuple[IntArray, int]:
    """The triangles before the batch with a removed edge, int32 [triangles, 3] edges, and how many were looked at.

    `removed` are the edges with the mark REMOVED, ascending. A triangle is listed at its lowest removed edge, which is
    its first edge; triangles are in the order of these edges, whatever the number of threads. Reads the shorter of two
    rows for each edge, and two marks for each triangle.
    """
    threads = get_num_threads()
    room = max(rows.widest + 1, ROOM // threads)
    bounds = np.linspace(0, len(removed), threads + 1).astype(np.int64)
    todo = np.column_stack([bounds[:-1], bounds[1:]])
    pieces: list[list[IntArray]] = [[] for _ in range(threads)]
    found, fill, looked = (
        np.empty((threads, room, 3), np.int32),
        np.zeros(threads, np.int64),
        np.zeros(threads, np.int64),
    )
    scratch = np.empty((2, threads, rows.widest + 1), np.uint32)
    args = topology.low, topology.high, rows.begin, rows.length, rows.neighbour, rows.edge.view(np.uint32), mark
    while (todo[:, 0] < todo[:, 1]).any():
        _find(removed, *args, todo, *scratch, found, fill, looked)
        for thread in range(threads):
            pieces[thread].append(found[thread, : fill[thread]].copy())
    whole = [piece for own_pieces in pieces for piece in own_pieces]
    return np.concatenate(whole) if whole else np.empty((0, 3), np.int32), int(looked.sum())
