"""The triangles of removed edges, each once, and counts of all triangles by their first edge in an order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import KEY_BITS, Adjacency, AnyArray, IntArray, LongArray, Topology
from ...runtime.cache import cached_njit
from ..adjacency import search_shorter
from ..arrays.intrinsics import fetch_add, prefetch
from .merging import ADDED, REMOVED

CHUNK = 32
"""Lists that a thread takes at a time."""
AHEAD = 4
"""Rows are prefetched this many members ahead."""


@cached_njit(parallel=True)
def _order_counts(offsets, high, key, marks, found, cursor, count, remainder):
    vertices = offsets.size - 1
    for thread in prange(marks.shape[0]):
        mark = marks[thread]
        at = found[thread]
        while True:
            first = fetch_add(cursor, 0, np.int64(CHUNK))
            if first >= vertices:
                break
            for a in range(first, min(first + CHUNK, vertices)):
                start = np.uintp(offsets[a])
                stop = np.uintp(offsets[a + 1])
                for i in range(start, stop):
                    mark[high[i]] = i + np.uintp(1)
                for i in range(start, stop):
                    if i + np.uintp(AHEAD) < stop:
                        prefetch(high, offsets[high[i + np.uintp(AHEAD)]])
                    hits = np.uintp(0)
                    for j in range(np.uintp(offsets[high[i]]), np.uintp(offsets[high[i] + 1])):
                        at[hits] = j
                        hits += np.uintp(mark[high[j]] != 0)
                    own = key[i]
                    counted = np.int32(0)
                    first_of = np.int32(0)
                    for h in range(hits):
                        f = at[h]
                        g = mark[high[f]] - 1
                        kf = key[f]
                        kg = key[g]
                        least = min(own, kf, kg)
                        level = least >> KEY_BITS
                        counted += np.int32(own >> KEY_BITS == level)
                        first_of += np.int32(own == least)
                        if kf >> KEY_BITS == level:
                            fetch_add(count, f, np.int32(1))
                        if kg >> KEY_BITS == level:
                            fetch_add(count, g, np.int32(1))
                        if kf == least:
                            fetch_add(remainder, f, np.int32(1))
                        if kg == least:
                            fetch_add(remainder, g, np.int32(1))
                    if counted:
                        fetch_add(count, i, counted)
                    if first_of:
                        fetch_add(remainder, i, first_of)
                for i in range(start, stop):
                    mark[high[i]] = 0


def order_counts(topology: Topology, key: LongArray) -> tuple[IntArray, IntArray]:
    """Two counts of each edge's triangles, int32 [edges]: triangles whose other edges both have at least the edge's
    level, and triangles whose other edges both have no smaller key than the edge.

    `key` int64 [edges] has the level in the upper half and a time ≥ 0 in the lower half. Uses the forward algorithm
    (Schank and Wagner, WEA 2005), which is fast if vertices are in degree order: reads the row of a vertex once for
    each edge that leads to the vertex, and three keys for each triangle.
    """
    offsets = np.searchsorted(topology.low, np.arange(topology.vertices + 1, dtype=np.int32))
    threads, widest = get_num_threads(), int(np.diff(offsets).max(initial=0)) + 1
    count, remainder = np.zeros((2, topology.edges), np.int32)
    marks, found = np.zeros((threads, topology.vertices), np.uint32), np.empty((threads, widest), np.uint32)
    _order_counts(offsets, topology.high, key, marks, found, np.zeros(1, np.int64), count, remainder)
    return count, remainder


ROOM = 1 << 20
"""Triangles that all threads together find in one pass."""
PIECES = 1 << 10
"""The removed edges are cut into this many pieces, which threads take in turn, as edges of hubs have most triangles."""


@cached_njit
def triangles_of(e, low, high, begin, length, neighbour, edge, to_f, to_g):
    """Write the other two edges of each triangle of e to `to_f` and `to_g`. Returns the number of triangles."""
    a = begin[low[e]]
    a_stop = a + length[low[e]]
    b = begin[high[e]]
    b_stop = b + length[high[e]]
    if a_stop - a <= b_stop - b:
        return search_shorter(neighbour, edge, a, a_stop, b, b_stop, to_f, to_g)
    return search_shorter(neighbour, edge, b, b_stop, a, a_stop, to_f, to_g)


class Scratch(NamedTuple):
    """Scratch memory of all threads that find triangles of removed edges."""

    cursor: LongArray
    """[1] the first piece that no thread has taken."""
    todo: LongArray
    """[threads, 2] the rest of a thread's piece: its first edge and its end."""
    others: NDArray[np.uint32]
    """[2, threads, widest + 1] the other two edges of the triangles of one edge."""
    found: IntArray
    """[threads, room, 3] triangles."""
    runs: LongArray
    """[threads, runs, 3] the index of the first edge of each run, and where its triangles begin and end in `found`."""
    made: LongArray
    """[threads] the number of runs."""
    looked: LongArray
    """[threads] triangles looked at."""


@cached_njit
def _find_some(thread, some, rows, mark, cuts, scratch):
    """Find the triangles of pieces of `some` until the thread's `found` is full. Stores the rest of a piece in `todo`.

    `scratch` is that of all threads.
    """
    low, high, begin, length, neighbour, edge = rows
    to_f, to_g, triples = scratch.others[0, thread], scratch.others[1, thread], scratch.found[thread]
    cursor, todo, runs = scratch.cursor, scratch.todo[thread], scratch.runs[thread]
    n = 0
    seen = 0
    own = 0
    i = todo[0]
    stop = todo[1]
    is_full = False
    while not is_full:
        if i >= stop:
            piece = fetch_add(cursor, 0, np.int64(1))
            if piece >= cuts.size - 1:
                break
            i = cuts[piece]
            stop = cuts[piece + 1]
        runs[own, 0] = i
        runs[own, 1] = n
        while i < stop:
            e = some[i]
            if n + min(length[low[e]], length[high[e]]) > triples.shape[0]:
                is_full = True
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
        runs[own, 2] = n
        own += 1
    todo[0] = i
    todo[1] = stop
    scratch.made[thread] = own
    scratch.looked[thread] += seen


@cached_njit(parallel=True)
def _find(some, rows, mark, cuts, scratch):
    """Find triangles of the edges `some`, in pieces between `cuts`, until all are found or every `found` is full.

    `rows` is (low, high, begin, length, neighbour, edge): the ends of edges, and the arrays of `Adjacency`.
    """
    for thread in prange(scratch.todo.shape[0]):
        _find_some(np.int64(thread), some, rows, mark, cuts, scratch)


def removed_triangles(topology: Topology, rows: Adjacency, mark: AnyArray, removed: IntArray) -> tuple[IntArray, int]:
    """The triangles before the batch that have a removed edge, int32 [triangles, 3], as their edges. Also returns the
    number of triangles looked at.

    `removed` are the edges with the mark REMOVED, ascending. The first edge of a triangle is its lowest removed edge.
    Triangles are in the order of their first edges, whatever the number of threads. Reads the shorter of two rows for
    each edge, and two marks for each triangle.
    """
    threads = get_num_threads()
    room = max(rows.widest + 1, ROOM // threads)
    cuts = np.linspace(0, len(removed), PIECES + 1).astype(np.int64)
    scratch = Scratch(
        cursor=np.zeros(1, np.int64),
        todo=np.zeros((threads, 2), np.int64),
        others=np.empty((2, threads, rows.widest + 1), np.uint32),
        found=np.empty((threads, room, 3), np.int32),
        runs=np.empty((threads, PIECES + 1, 3), np.int64),
        made=np.zeros(threads, np.int64),
        looked=np.zeros(threads, np.int64),
    )
    cursor, todo, runs = scratch.cursor, scratch.todo, scratch.runs
    lists = topology.low, topology.high, rows.begin, rows.length, rows.neighbour, rows.edge.view(np.uint32)
    pieces: dict[int, IntArray] = {}
    while cursor[0] < PIECES or (todo[:, 0] < todo[:, 1]).any():
        _find(removed, lists, mark, cuts, scratch)
        for thread, count in enumerate(scratch.made.tolist()):
            own = runs[thread, :count].tolist()
            pieces |= {first: scratch.found[thread, begin:end].copy() for first, begin, end in own if begin < end}
    whole = [pieces[first] for first in sorted(pieces)]
    return np.concatenate(whole) if whole else np.empty((0, 3), np.int32), int(scratch.looked.sum())


@cached_njit(parallel=True)
def _least(triangles, value, least):
    for i in prange(least.size):
        least[i] = min(value[triangles[i, 0]], value[triangles[i, 1]], value[triangles[i, 2]])


def least_of_triangles(triangles: IntArray, value: AnyArray) -> AnyArray:
    """The least `value` [edges] of the edges of each triangle, [triangles] in the type of `value`."""
    least = np.empty(len(triangles), value.dtype)
    _least(triangles, value, least)
    return least
