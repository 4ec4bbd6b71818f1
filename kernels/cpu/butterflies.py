"""Butterflies of a graph with two sides: complete subgraphs of two vertices on each side.

A wedge is a path u, v, w. Two wedges with the same ends are a butterfly. Every butterfly is found once, from its vertex
u of the highest order: both wedges from u over a middle v to an end w that come before u. This is counting by vertex
priority (Wang, Lin, Qin, Zhang and Zhang, "Vertex priority based butterfly counting for large-scale bipartite
networks", PVLDB 2019), whose order is that of degrees. No kernel needs to know the side of a vertex.

An edge lies in fewer butterflies than there are edges: the edge opposite to it in a butterfly determines that. So int32
holds the butterflies of an edge, and not those of a vertex or of the graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import get_num_threads, prange

from ..graph import Adjacency, IntArray, LongArray
from ..runtime.cache import cached_njit
from .arrays.intrinsics import fetch_add, prefetch

CHUNK = 16
"""Vertices that a thread takes at a time: few, since those of a hub take as long as those of thousands of others."""
AHEAD = 8
"""Counters are prefetched this many entries ahead."""


@cached_njit
def count_ends(u, begin, length, neighbour, paths, ends):
    """Count the wedges from u to each end that come before u in the order, in `paths` [vertices], which is 0 before.

    Writes the ends to `ends` [vertices]. Returns their number. Rows ascend.
    """
    found = np.uintp(0)
    last = np.uintp(neighbour.size - 1)
    row = np.uintp(begin[u])
    for q in range(row, row + np.uintp(length[u])):
        prefetch(begin, neighbour[min(q + np.uintp(2 * AHEAD), last)])
        prefetch(length, neighbour[min(q + np.uintp(2 * AHEAD), last)])
        prefetch(neighbour, begin[neighbour[min(q + np.uintp(AHEAD), last)]])
        v = neighbour[q]
        if v >= u:
            break
        start = np.uintp(begin[v])
        stop = start + np.uintp(length[v])
        for r in range(start, stop):
            w = neighbour[r]
            if w >= u:
                break
            known = paths[w]
            ends[found] = w
            found += np.uintp(known == 0)
            paths[w] = known + 1
    return np.int64(found)


@cached_njit(parallel=True)
def _count(begin, length, neighbour, edge, paths, ends, cursor, support, entries, blooms):
    """Add the butterflies of each edge to `support`. Sets `entries` and `blooms` [vertices] to what an index of the
    butterflies that are found from a vertex would hold: wedges that share their ends with others, and pairs of ends.
    """
    vertices = begin.size
    alone = paths.shape[0] == 1
    for thread in prange(paths.shape[0]):
        own, found = paths[thread], ends[thread]
        while True:
            taken = fetch_add(cursor, 0, np.int64(CHUNK))
            if taken >= vertices:
                break
            for u in range(max(vertices - taken - CHUNK, 0), vertices - taken):
                wedges = count_ends(u, begin, length, neighbour, own, found)
                shared = np.int64(0)
                pairs = np.int64(0)
                for i in range(wedges):
                    c = own[found[i]]
                    shared += c * (c > 1)
                    pairs += c > 1
                entries[u] = shared
                blooms[u] = pairs
                if shared:
                    row = np.uintp(begin[u])
                    for q in range(row, row + np.uintp(length[u])):
                        v = neighbour[q]
                        if v >= u:
                            break
                        start = np.uintp(begin[v])
                        sum_of_v = np.int32(0)
                        for r in range(start, start + np.uintp(length[v])):
                            w = neighbour[r]
                            if w >= u:
                                break
                            others = own[w] - np.int32(1)
                            if others:
                                sum_of_v += others
                                if alone:
                                    support[np.uintp(edge[r])] += others
                                else:
                                    fetch_add(support, edge[r], others)
                        if sum_of_v:
                            fetch_add(support, edge[q], sum_of_v)
                for i in range(wedges):
                    own[found[i]] = 0


@dataclass(frozen=True)
class Butterflies:
    """The butterflies of a graph, and what an index of them would hold."""

    support: IntArray
    """[edges] butterflies of each edge."""
    entries: LongArray
    """[vertices] wedges from the vertex, as the highest in the order, that share their ends with others."""
    blooms: LongArray
    """[vertices] pairs of ends of these wedges."""


def count_butterflies(rows: Adjacency, edges: int) -> Butterflies:
    """Count the butterflies of the graph that has `rows`, whose edges have numbers below `edges`.

    Its vertices are in an order of ascending degrees, which bounds the work: the sum over edges of the lesser degree of
    the two ends. Each thread has two int32 a vertex.
    """
    vertices, threads = len(rows.begin), get_num_threads()
    support, cursor = np.zeros(edges, np.int32), np.zeros(1, np.int64)
    entries, blooms = np.zeros((2, vertices), np.int64)
    paths = np.zeros((threads, vertices + 1), np.int32)
    ends = np.empty((threads, vertices + 1), np.int32)
    _count(rows.begin, rows.length, rows.neighbour, rows.edge, paths, ends, cursor, support, entries, blooms)
    return Butterflies(support, entries, blooms)
