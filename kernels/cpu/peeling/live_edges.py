"""The edges that remain while others are removed: their rows, and the passes that find the next edges to remove.

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
from ..arrays.indexing import join, numbers
from ..arrays.intrinsics import fetch_add


@cached_njit(parallel=True)
def _below(live, first, stop, count, threshold, weak, found, least, start):
    """Each thread scans its own run of `live` and drops removed edges from it."""
    for thread in prange(first.size):
        to = first[thread]
        hits = first[thread]
        smallest = np.int32(2147483647)
        for i in range(first[thread], stop[thread]):
            e = live[i]
            c = count[e]
            if c >= 0:
                live[to] = e
                to += 1
                if start is not None:
                    start[e] = c
                if c < threshold:
                    weak[hits] = e
                    hits += 1
                elif c < smallest:
                    smallest = c
        stop[thread] = to
        found[thread] = hits
        least[thread] = smallest


class Live:
    """The remaining edges of one peeling, in one run for each thread. Mutable."""

    def __init__(self, edges: int, own: IntArray | None = None) -> None:
        """All edges, or the edges `own`."""
        self.live = numbers(edges) if own is None else own
        self._cut(len(self.live))
        self.weak = np.empty(len(self.live), np.int32)
        self.start: IntArray | None = None
        """[edges] if it is set, `below` stores the counts of the remaining edges in it."""

    def share_out(self) -> None:
        """Make the runs equally long again, since one run may lose its edges long before another."""
        self.live = join([self.live[a:b] for a, b in zip(self.first, self.stop, strict=True)])
        self._cut(len(self.live))

    def _cut(self, edges: int) -> None:
        cuts = np.linspace(0, edges, get_num_threads() + 1).astype(np.int64)
        self.first, self.stop = cuts[:-1].copy(), cuts[1:].copy()


@cached_njit(parallel=True)
def _not_removed(state, live):
    for e in prange(state.size):
        live[e] = state[e] >= 0


def not_removed(state: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Whether each edge remains, bool [edges]. `state` [edges] has the states of a cascade."""
    live = np.empty(len(state), np.bool_)
    _not_removed(state, live)
    return live


def below(live: Live, count: IntArray, threshold: int) -> tuple[IntArray, int]:
    """The edges with 0 ≤ count < threshold, ascending, and the least count ≥ threshold (2^31 - 1 if there is none)."""
    found = np.empty(len(live.first), np.int64)
    least = np.empty(len(live.first), np.int32)
    _below(live.live, live.first, live.stop, count, np.int32(threshold), live.weak, found, least, live.start)
    runs = [live.weak[a:b] for a, b in zip(live.first, found, strict=True)]
    return join(runs), int(least.min())


CLEAN_AT = 16
"""Rows are cleaned when the edges removed since the last time are more than the remaining edges divided by this."""
STALE = 8
"""A row is cleaned if more than one in this many of its entries is removed."""
PARTS = 16
"""Parts of the rows for each thread: several, as they differ in the number of stale rows."""
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
        """Record that `edges` are removed, and that `left` edges remain. Returns the rows, cleaned if this pays."""
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
