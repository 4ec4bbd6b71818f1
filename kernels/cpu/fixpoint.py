"""Bounds that fall edge by edge to the greatest fixpoint, ghost bounds held still.

The iterative bounding of the DN-graph paper (Wang, Zhang, Tan and Tung, PVLDB 2010) with the h-index operator, or with
its own decrement by one. Bounds are written while others read them: they only fall, the operator is monotone, and an
edge is looked at again after a neighbour fell, so every order ends at the same bounds.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, njit, prange

from ..graph import Adjacency, IntArray, Topology
from .atomics import fetch_add
from .common_neighbours import search_shorter

CHUNK = 64


@njit(parallel=True, cache=True, nogil=True)
def _evaluate(
    active, low, high, begin, length, neighbour, edge, bound, owned, by_one, cursor, found_f, found_g, tally, again
):
    """Lower the bound of every active edge once and flag the edges whose own bound this may unsettle."""
    for thread in prange(found_f.shape[0]):
        to_f = found_f[thread]
        to_g = found_g[thread]
        at_least = tally[thread]
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
                    at_least[: old + 1] = 0
                    for h in range(hits):
                        at_least[min(old, min(bound[to_f[h]], bound[to_g[h]]))] += 1
                    new = old
                    reached = at_least[old]
                    while reached < new:
                        new -= 1
                        reached += at_least[new]
                if new < old:
                    bound[e] = new
                    again[e] = True
                    for h in range(hits):
                        # Only an edge whose bound lies above the new one counted on e.
                        if owned[to_f[h]] and bound[to_f[h]] > new:
                            again[to_f[h]] = True
                        if owned[to_g[h]] and bound[to_g[h]] > new:
                            again[to_g[h]] = True


@njit(cache=True, nogil=True)
def _unsettle(fallen, low, high, begin, length, neighbour, edge, bound, owned, to_f, to_g, again):
    """Flag the owned edges that share a triangle with an edge whose bound fell elsewhere."""
    for i in range(fallen.size):
        e = fallen[i]
        a = begin[low[e]]
        b = begin[high[e]]
        hits = search_shorter(neighbour, edge, a, a + length[low[e]], b, b + length[high[e]], to_f, to_g)
        for h in range(hits):
            if owned[to_f[h]] and bound[to_f[h]] > bound[e]:
                again[to_f[h]] = True
            if owned[to_g[h]] and bound[to_g[h]] > bound[e]:
                again[to_g[h]] = True


class Fixpoint:
    """Scratch of one subgraph's fixpoint rounds. Not for several threads at once."""

    def __init__(self, topology: Topology, rows: Adjacency, owned: np.ndarray, highest: int) -> None:
        threads = get_num_threads()
        self.topology, self.rows, self.owned = topology, rows, owned
        self._found = np.empty((2, threads, rows.widest + 1), np.int32)
        self._tally = np.zeros((threads, highest + 1), np.int32)
        self._cursor = np.zeros(1, np.int64)

    def unsettle(self, bound: IntArray, fallen: IntArray) -> IntArray:
        """Owned edges to look at again after the bounds of the ghosts `fallen` came down, ascending."""
        rows = self.rows
        again = np.zeros(self.topology.edges, np.bool_)
        _unsettle(
            fallen,
            self.topology.low,
            self.topology.high,
            rows.begin,
            rows.length,
            rows.neighbour,
            rows.edge,
            bound,
            self.owned,
            *self._found[:, 0],
            again,
        )
        return np.flatnonzero(again).astype(np.int32)

    def evaluate(self, bound: IntArray, active: IntArray, by_one: bool) -> IntArray:
        """Evaluate `active` once, in place in `bound`; gives the edges to look at again, ascending."""
        rows = self.rows
        again = np.zeros(self.topology.edges, np.bool_)
        self._cursor[0] = 0
        _evaluate(
            active,
            self.topology.low,
            self.topology.high,
            rows.begin,
            rows.length,
            rows.neighbour,
            rows.edge,
            bound,
            self.owned,
            by_one,
            self._cursor,
            *self._found,
            self._tally,
            again,
        )
        return np.flatnonzero(again).astype(np.int32)
