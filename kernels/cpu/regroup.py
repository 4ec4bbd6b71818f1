"""Finds the vertices and edges that are affected when edges leave a spanning forest, or when edges of a vertex
change.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange

from ..graph import AnyArray, IntArray, Topology
from ..runtime.cache import cached_njit
from .nest import find_root

NO_LIMIT = 2**30
"""Higher than all levels."""
NOT_SEEN = -2
"""Lower than all levels, and than -1, the level of an edge that is gone."""


@cached_njit
def _unite(low, high, chosen, up):
    for i in range(chosen.size):
        if chosen[i]:
            a, b = find_root(up, low[i]), find_root(up, high[i])
            up[max(a, b)] = min(a, b)


@cached_njit
def _limits(low, high, level, vertices):
    kept = level == NO_LIMIT
    up = np.arange(vertices).astype(np.int32)
    piece, size = np.empty(vertices, np.int32), np.zeros(vertices, np.int32)
    _unite(low, high, kept, up)
    for v in range(vertices):
        piece[v] = find_root(up, v)
        size[piece[v]] += 1
    _unite(low, high, ~kept, up)
    largest = np.full(vertices, -1, np.int32)  # of a root of a tree: its largest piece
    begin = np.zeros(vertices + 1, np.int32)
    for v in range(vertices):
        tree = find_root(up, v)
        if largest[tree] < 0 or size[piece[v]] > size[largest[tree]]:
            largest[tree] = piece[v]
    for i in range(kept.size):
        if not kept[i]:
            begin[piece[low[i]] + 1] += 1
            begin[piece[high[i]] + 1] += 1
    for v in range(vertices):
        begin[v + 1] += begin[v]
    slot = begin[:-1].copy()
    other, by = np.empty(begin[-1], np.int32), np.empty(begin[-1], np.int32)
    for i in range(kept.size):
        if not kept[i]:
            a, b = piece[low[i]], piece[high[i]]
            other[slot[a]], by[slot[a]] = b, level[i]
            other[slot[b]], by[slot[b]] = a, level[i]
            slot[a] += 1
            slot[b] += 1
    found = np.full(vertices, NOT_SEEN, np.int32)
    queue = np.empty(begin[-1] + 1, np.int32)
    for v in range(vertices):
        if piece[v] == v and largest[find_root(up, v)] == v:
            found[v] = NO_LIMIT
            queue[0] = v
            first, last = 0, 1
            while first < last:
                p = queue[first]
                first += 1
                for j in range(begin[p], begin[p + 1]):
                    q = other[j]
                    if found[q] == NOT_SEEN:
                        found[q] = min(found[p], by[j])
                        queue[last] = q
                        last += 1
    for v in range(vertices):
        found[v] = found[piece[v]]
    return found


def limits(low: IntArray, high: IntArray, level: IntArray, vertices: int) -> IntArray:
    """The least level on the path from each vertex to the largest piece of its tree, int32 [vertices].

    `low` and `high` [edges] are the ends of the edges of a forest. The edges whose `level` is not NO_LIMIT separate its
    trees into pieces. Vertices of the largest piece of a tree have NO_LIMIT. If several pieces have the most vertices,
    the piece with the least vertex counts as the largest.
    """
    return _limits(low, high, level, vertices)


@cached_njit
def _has(bits, v):
    """Whether the bit of a vertex is set. A bitmap fits a cache even if an array of values of vertices does not."""
    return bits[v >> np.uintp(3)] >> (v & np.uintp(7)) & np.uintp(1)


@cached_njit(parallel=True)
def _over(low, high, level, limit, bits, found):
    for e in prange(found.size):
        u, v = np.uintp(low[e]), np.uintp(high[e])
        if _has(bits, u) or _has(bits, v):
            found[e] |= level[e] > min(limit[u], limit[v])


def mark_over(edges: Topology, level: IntArray, limit: IntArray, found: AnyArray) -> None:
    """Set `found` [edges] where the `level` of the edge is above the `limit` [vertices] of one of its ends.

    Reads 8 bytes an edge, and the level of an edge if one of its ends has a limit.
    """
    _over(edges.low, edges.high, level, limit, _bits(limit != NO_LIMIT), found)


def _bits(marked: AnyArray) -> AnyArray:
    """A mask as bits, uint8, from the lowest bit of the first byte on."""
    return np.packbits(marked, bitorder="little")


@cached_njit(parallel=True)
def _within(low, high, level, of_vertex, wanted, found):
    for e in prange(found.size):
        c = of_vertex[np.uintp(low[e])]
        found[e] = c >= 0 and wanted[np.uintp(c)] == level[e] and of_vertex[np.uintp(high[e])] == c


def mark_within(edges: Topology, level: IntArray, of_vertex: IntArray, wanted: IntArray) -> AnyArray:
    """Whether each edge is in a wanted component, bool [edges]. No wanted component contains a smaller component.

    `level` [edges] are the levels of edges, `of_vertex` [vertices] the innermost component of each vertex or -1.
    `wanted` [components] is the level of a wanted component, and -1 for any other component.
    """
    found = np.empty(edges.edges, np.bool_)
    _within(edges.low, edges.high, level, of_vertex, wanted, found)
    return found


@cached_njit(parallel=True)
def _highest(low, high, level, bits, place, found):
    threads = found.shape[0]
    for thread in prange(threads):
        own = found[thread]
        for e in range(thread * level.size // threads, (thread + 1) * level.size // threads):
            u, v = np.uintp(low[e]), np.uintp(high[e])
            if _has(bits, u):
                own[place[u]] = max(own[place[u]], level[e])
            if _has(bits, v):
                own[place[v]] = max(own[place[v]], level[e])


def highest_at(edges: Topology, level: IntArray, vertices: IntArray) -> IntArray:
    """The highest `level` [edges] of the edges of each of the distinct `vertices`, int32; 0 for a vertex without edges.

    Reads 8 bytes an edge, and the level of an edge of these vertices. Takes 4 bytes a thread for each of `vertices`.
    """
    place, wanted = np.zeros(edges.vertices, np.int32), np.zeros(edges.vertices, np.bool_)
    place[vertices], wanted[vertices] = np.arange(len(vertices), dtype=np.int32), True
    found = np.zeros((get_num_threads(), len(vertices)), np.int32)
    _highest(edges.low, edges.high, level, _bits(wanted), place, found)
    return found.max(axis=0)
