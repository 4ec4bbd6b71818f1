"""Fixpoint iterations: the bounds of edges go down to the greatest fixpoint.

The iterative bounding of the DN-graph paper (Wang, Zhang, Tan and Tung, PVLDB 2010) with the h-index operator, or with
the paper's own decrement by one. Threads write bounds while others read them. Each order of the writes ends at the same
bounds: bounds only go down, the operator is monotone, and an edge is evaluated again after a neighbour's bound has gone
down.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange

from ..graph import Adjacency, IntArray, Topology
from ..runtime.cache import cached_njit
from .adjacency import search_shorter
from .arrays.intrinsics import fetch_add

CHUNK = 64
"""Edges that a thread processes at a time."""


@cached_njit
def _lowered(old, bound, to_f, to_g, hits, at_least):
    """The h-index of the lesser other bounds of the triangles, at most `old`. `at_least` is scratch memory."""
    at_least[: old + 1] = 0
    for h in range(hits):
        at_least[min(old, min(bound[to_f[h]], bound[to_g[h]]))] += 1
    new = old
    reached = at_least[old]
    while reached < new:
        new -= 1
        reached += at_least[new]
    return new


@cached_njit
def _evaluate_some(thread, active, rows, bound, by_one, scratch, again):
    """Lower the bounds of the active edges that a thread takes, and flag the edges whose bounds this may lower."""
    low, high, begin, length, neighbour, edge = rows
    cursor, found, tally = scratch
    to_f, to_g, at_least = found[0, thread], found[1, thread], tally[thread]
    while True:
        first = fetch_add(cursor, 0, np.int64(CHUNK))
        if first >= active.size:
            break
        for i in range(first, min(first + CHUNK, active.size)):
            e = active[i]
            a = begin[low[e]]
            a_stop = a + length[low[e]]
            b = begin[high[e]]
            b_stop = b + length[high[e]]
            if a_stop - a <= b_stop - b:
                hits = search_shorter(neighbour, edge, a, a_stop, b, b_stop, to_f, to_g)
            else:
                hits = search_shorter(neighbour, edge, b, b_stop, a, a_stop, to_f, to_g)
            old = bound[e]
            if by_one:
                supporting = 0
                for h in range(hits):
                    supporting += min(bound[to_f[h]], bound[to_g[h]]) >= old
                new = old if supporting >= old else old - 1
            else:
                new = _lowered(old, bound, to_f, to_g, hits, at_least)
            if new < old:
                bound[e] = new
                again[e] = True
                for h in range(hits):
                    # Only an edge whose bound is above the new one was supported by e.
                    if bound[to_f[h]] > new:
                        again[to_f[h]] = True
                    if bound[to_g[h]] > new:
                        again[to_g[h]] = True


@cached_njit(parallel=True)
def _evaluate(active, rows, bound, by_one, scratch, again):
    """Lower the bound of each active edge once, and flag the edges whose bounds this may lower.

    `rows` are the ends of edges, and the begin, length, neighbours and edges of the rows of vertices.
    """
    for thread in prange(scratch[2].shape[0]):
        _evaluate_some(np.int64(thread), active, rows, bound, by_one, scratch, again)


class Fixpoint:
    """Scratch memory for the iterations of one graph; see `kernels.fixpoint`. Not thread-safe."""

    def __init__(self, topology: Topology, rows: Adjacency, highest: int) -> None:
        threads = get_num_threads()
        self.topology, self.rows = topology, rows
        found, tally = np.empty((2, threads, rows.widest + 1), np.int32), np.zeros((threads, highest + 1), np.int32)
        self._cursor = np.zeros(1, np.int64)
        self._scratch = self._cursor, found, tally

    def evaluate(self, bound: IntArray, active: IntArray, by_one: bool) -> IntArray:
        """Lower the bounds of `active` once, in place. Returns the edges to evaluate again, ascending."""
        rows, topology = self.rows, self.topology
        again = np.zeros(topology.edges, np.bool_)
        self._cursor[0] = 0
        lists = topology.low, topology.high, rows.begin, rows.length, rows.neighbour, rows.edge
        _evaluate(active, lists, bound, by_one, self._scratch, again)
        return np.flatnonzero(again).astype(np.int32)
