"""The rows of the remaining edges while edges are removed.

A removed edge stays in two rows until they are cleaned. A stale row costs time: its removed edges are marked, looked up
and found in triangles. So each row is cleaned on its own, once enough of its edges are removed.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import Adjacency, IntArray, Topology
from ...runtime.cache import cached_njit
from ..adjacency import compact, cuts_by_entries
from ..arrays.atomics import fetch_add
from .scan import not_removed

CLEAN_AT = 16
"""Rows are cleaned when more than one in so many remaining edges has been removed since the last time."""
STALE = 8
"""A row is cleaned if more than one in so many of its entries is removed."""
PARTS = 16
"""Parts of the rows for each thread. They differ in the number of stale rows."""
PACK_AT = 0.5
"""Rows are packed, so that they lie close together, when less than this share of their memory is in use."""


@cached_njit(parallel=True)
def _count_removed(removed, low, high, stale):
    """Add one to the counters of both ends of each removed edge."""
    for i in prange(removed.size):
        e = removed[i]
        fetch_add(stale, low[e], np.int32(1))
        fetch_add(stale, high[e], np.int32(1))


@cached_njit(parallel=True)
def _clean(begin, length, neighbour, edge, state, cuts, cursor, stale, threads):
    """Take the removed edges out of stale rows. Threads take parts of the rows in turn."""
    for _ in prange(threads):
        while True:
            part = fetch_add(cursor, 0, np.int64(1))
            if part >= cuts.size - 1:
                break
            for v in range(cuts[part], cuts[part + 1]):
                if stale[v] * STALE > length[v]:
                    start = np.uintp(begin[v])
                    target = start
                    for q in range(start, start + np.uintp(length[v])):
                        e = edge[q]
                        neighbour[target] = neighbour[q]
                        edge[target] = e
                        target += np.uintp(state[e] >= 0)
                    length[v] = target - start
                    stale[v] = 0


class LiveRows:
    """The rows of a peeling, and how many of their entries are removed edges. Mutable."""

    def __init__(self, topology: Topology, rows: Adjacency, state: NDArray[np.int8], left: int) -> None:
        self._low, self._high, self._state = topology.low, topology.high, state
        self._cursor = np.zeros(1, np.int64)
        self._pending: list[IntArray] = []
        self._use(rows, left)

    def _use(self, rows: Adjacency, left: int) -> None:
        self.rows, self._in_memory = rows, left
        self._cuts = cuts_by_entries(rows, PARTS * get_num_threads())
        self._stale = np.zeros(len(rows.begin), np.int32)
        self._pending.clear()
        self._waiting = 0

    def remove(self, edges: IntArray, left: int) -> Adjacency:
        """Note that `edges` are removed, and `left` edges remain. Returns the rows, cleaned if it is time."""
        self._pending.append(edges)
        self._waiting += len(edges)
        if left < PACK_AT * self._in_memory:
            self._use(compact(self.rows, not_removed(self._state)), left)
        elif self._waiting * CLEAN_AT > left:
            self._clean()
        return self.rows

    def _clean(self) -> None:
        rows = self.rows
        _count_removed(np.concatenate(self._pending), self._low, self._high, self._stale)
        self._cursor[0] = 0
        entries = rows.begin, rows.length, rows.neighbour, rows.edge.view(np.uint32)
        _clean(*entries, self._state, self._cuts, self._cursor, self._stale, get_num_threads())
        self._pending.clear()
        self._waiting = 0
