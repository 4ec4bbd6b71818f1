"""Cascades: remove edges with their triangles, until no edge loses its support.

These kernels serve peeling (one band) and band filters (many bands at once). A round removes the frontier in two
passes, without atomics on counts: `_gather` lists the edges that lose a triangle, by the thread that owns them; in
`_apply` each thread lowers the counts that it owns and lists the edges to remove next. The level-synchronous rounds and
the tie-break (if two edges of a triangle are removed in one round, the edge with the lower number removes the triangle)
follow PKT (Kabir and Madduri, "Parallel k-truss decomposition on multicore systems", HPEC 2017).

Inner loops index with unsigned numbers: Numba tests whether each signed index is negative, which took a quarter of the
time.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange

from ..graph import CURRENT, GONE, Adjacency, IntArray, Topology
from ..runtime.cache import cached_njit
from .arrays.atomics import fetch_add, prefetch
from .arrays.sort import MANY, by_key
from .common_neighbours import mark_row, probe, search_shorter, unmark_row

CHUNK = 256
"""Frontier edges that a thread processes at a time."""
MARK_COST = 6
"""A row is marked if it is shorter than this times the number of entries to look up in it. From 4 to 8 equally fast."""
ROOM = 2**20
"""Minimum capacity of the loss lists of all threads together. A round that needs more takes several passes."""
AHEAD = 4
"""Rows are prefetched this many edges ahead. Saves a tenth of the time; from 4 to 8 equally fast."""
COUNTS_AHEAD = 16
"""Counts are prefetched this many entries ahead."""
LONE = 32
"""Width of the rows of int64 counters, each written by one thread, so that threads do not share cache lines."""
LINE = 6
"""log2 of the number of consecutive edges of one owner: at least a cache line, so owners do not share lines."""


@cached_njit
def _lose(e, hits, to_f, to_g, count, band, loss, used, firsts):
    """List the edges that lose a triangle by the removal of e, each in its owner's list. Returns their number.

    With `firsts`, its entry of e becomes the number of triangles that the removal of e destroys.
    """
    owners = np.uintp(loss.shape[0] - 1)
    listed = 0
    destroyed = 0
    for h in range(np.uintp(hits)):
        prefetch(count, to_f[h + np.uintp(COUNTS_AHEAD)])
        prefetch(count, to_g[h + np.uintp(COUNTS_AHEAD)])
        f = to_f[h]
        g = to_g[h]
        cf = count[f]
        cg = count[g]
        if band is None:
            f_remains = (cf >= 0) | ((cf == CURRENT) & (e < f))
            g_remains = (cg >= 0) | ((cg == CURRENT) & (e < g))
            f_loses = (cf >= 0) & g_remains
            g_loses = (cg >= 0) & f_remains
        else:
            # Edges in a higher band remain; an edge in a lower band did not count this triangle.
            here = band[e]
            f_here = band[f] == here
            g_here = band[g] == here
            f_remains = (band[f] > here) | (f_here & ((cf >= 0) | ((cf == CURRENT) & (e < f))))
            g_remains = (band[g] > here) | (g_here & ((cg >= 0) | ((cg == CURRENT) & (e < g))))
            f_loses = f_here & (cf >= 0) & g_remains
            g_loses = g_here & (cg >= 0) & f_remains
        if firsts is not None:
            destroyed += f_remains & g_remains
        owner = (np.uintp(f) >> np.uintp(LINE)) & owners
        loss[owner, used[owner]] = f
        used[owner] += np.uintp(f_loses)
        owner = (np.uintp(g) >> np.uintp(LINE)) & owners
        loss[owner, used[owner]] = g
        used[owner] += np.uintp(g_loses)
        listed += f_loses
        listed += g_loses
    if firsts is not None:
        firsts[e] = destroyed
    return listed


@cached_njit(parallel=True)
def _gather(
    frontier,
    low,
    high,
    begin,
    length,
    neighbour,
    edge,
    count,
    band,
    chunk,
    cursor,
    todo,
    marks,
    found_f,
    found_g,
    losses,
    fill,
    firsts,
):
    """List the edges that lose a triangle by the removal of the frontier.

    The frontier is sorted by high endpoint, and a row is marked once for all edges with that endpoint. A thread whose
    lists are full stores the rest of its chunk in `todo`.
    """
    room = losses.shape[2] - COUNTS_AHEAD
    for thread in prange(marks.shape[0]):
        mark = marks[thread]
        to_f = found_f[thread]
        to_g = found_g[thread]
        loss = losses[thread]
        used = fill[thread]
        used[:] = 0
        written = 0
        full = False
        while not full:
            i = todo[thread, 0]
            stop = todo[thread, 1]
            if i >= stop:
                i = fetch_add(cursor, 0, np.int64(chunk))
                stop = min(i + chunk, frontier.size)
                if i >= stop:
                    break
            while i < stop and not full:
                hub = high[frontier[i]]
                end = i
                work = 0
                while end < stop and high[frontier[end]] == hub:
                    work += length[low[frontier[end]]]
                    end += 1
                row = begin[hub]
                row_stop = row + length[hub]
                marked = length[hub] < work * MARK_COST
                if marked:
                    mark_row(mark, neighbour, edge, row, row_stop)
                while i < end:
                    if i + AHEAD < frontier.size:
                        ahead = begin[low[frontier[i + AHEAD]]]
                        prefetch(neighbour, ahead)
                        prefetch(edge, ahead)
                    e = frontier[i]
                    other = begin[low[e]]
                    other_stop = other + length[low[e]]
                    if written + 2 * (other_stop - other) > room:
                        full = True
                        break
                    if marked:
                        hits = probe(mark, neighbour, edge, other, other_stop, to_f, to_g)
                    elif other_stop - other <= row_stop - row:
                        hits = search_shorter(neighbour, edge, other, other_stop, row, row_stop, to_f, to_g)
                    else:
                        hits = search_shorter(neighbour, edge, row, row_stop, other, other_stop, to_f, to_g)
                    written += _lose(e, hits, to_f, to_g, count, band, loss, used, firsts)
                    i += 1
                if marked:
                    unmark_row(mark, neighbour, row, row_stop)
            todo[thread, 0] = i
            todo[thread, 1] = stop


@cached_njit(parallel=True)
def _apply(losses, fill, count, band, threshold, next_edges, next_count):
    """Each owner lowers its counts and lists the edges whose count drops below the threshold."""
    for owner in prange(next_edges.shape[0]):
        own = next_edges[owner]
        n = np.uintp(next_count[owner])
        for thread in range(losses.shape[0]):
            loss = losses[thread, owner]
            for i in range(np.uintp(fill[thread, owner])):
                # Beyond the list there are earlier numbers, which are as good to fetch as any.
                prefetch(count, loss[i + np.uintp(COUNTS_AHEAD)])
                e = loss[i]
                c = count[e]
                count[e] = c - 1
                limit = threshold[0] if band is None else threshold[np.uintp(band[e])]
                own[n] = e
                n += np.uintp(c == limit)
        next_count[owner] = n


@cached_njit
def _set_few(values, edges, value):
    for i in range(edges.size):
        values[edges[i]] = value


@cached_njit(parallel=True)
def _set_many(values, edges, value):
    for i in prange(edges.size):
        values[edges[i]] = value


def set_to(values: IntArray, edges: IntArray, value: int) -> None:
    """Set the entries of the distinct `edges` to `value`; changes `values` [edges of the graph]."""
    (_set_many if len(edges) >= MANY else _set_few)(values, edges, np.int32(value))


class Cascade:
    """Scratch memory for one subgraph's cascades, for repeated use; see `kernels.cascade`. Not thread-safe."""

    def __init__(self, topology: Topology, rows: Adjacency) -> None:
        low, vertices, widest = topology.low, topology.vertices, rows.widest
        self.low, self.high = low, topology.high
        self._edge_bits, self._vertices = len(low).bit_length(), vertices
        threads = get_num_threads()
        owners = 1 << (threads - 1).bit_length()
        room = max(2 * widest + 2, ROOM // threads)
        self._marks = np.zeros((threads, vertices), np.int32)
        self._found = np.zeros((2, threads, widest + 1 + COUNTS_AHEAD), np.uint32)
        self._losses = np.zeros((threads, owners, room + COUNTS_AHEAD), np.uint32)
        # Without this width two threads share a cache line, and gather a fifth slower.
        self._fill = np.zeros((threads, max(owners, LONE)), np.uint64)
        self._todo = np.zeros((threads, LONE), np.int64)
        self._cursor = np.zeros(1, np.int64)
        span = owners << LINE
        self._next = np.empty((owners, (-(-len(low) // span) << LINE) + 1), np.int32)
        self._next_count = np.zeros(owners, np.int64)
        self.firsts: IntArray | None = None
        """[edges] if it is set, `run` stores the number of triangles that the removal of each edge destroys: those in
        which no other edge is removed before it. Edges that `run` returns are then in order of their removal, those of
        one round by number.
        """

    def run(
        self, rows: Adjacency, count: IntArray, frontier: IntArray, threshold: IntArray, band: IntArray | None
    ) -> tuple[IntArray, int]:
        """Remove `frontier` and all edges that lose their support by it; changes `count`.

        Returns the removed edges and the number of rounds.
        """
        removed = []
        rounds = 0
        while len(frontier):
            frontier = self._by_hub(frontier)
            self._round(rows, count, frontier, threshold, band)
            removed.append(frontier if self.firsts is None else np.sort(frontier))
            rounds += 1
            frontier = np.concatenate([self._next[o, :n] for o, n in enumerate(self._next_count)])
        return (np.concatenate(removed) if removed else np.empty(0, np.int32)), rounds

    def _by_hub(self, frontier: IntArray) -> IntArray:
        """The frontier, sorted by high endpoint. All threads sort a large one."""
        if len(frontier) >= MANY:
            return by_key(self.high, frontier, self._vertices)
        key = self.high[frontier].astype(np.int64)
        key <<= self._edge_bits
        key |= frontier
        key.sort()
        key &= (1 << self._edge_bits) - 1
        return key.astype(np.int32)

    def _round(
        self, rows: Adjacency, count: IntArray, frontier: IntArray, threshold: IntArray, band: IntArray | None
    ) -> None:
        set_to(count, frontier, CURRENT)
        threads = len(self._marks)
        chunk = max(1, min(CHUNK, len(frontier) // (threads * 8)))
        self._cursor[0] = 0
        self._todo[:] = 0
        self._next_count[:] = 0
        while self._cursor[0] < len(frontier) or (self._todo[:, 0] < self._todo[:, 1]).any():
            _gather(
                frontier,
                self.low,
                self.high,
                rows.begin,
                rows.length,
                rows.neighbour.view(np.uint32),
                rows.edge.view(np.uint32),
                count,
                band,
                chunk,
                self._cursor,
                self._todo,
                self._marks,
                *self._found,
                self._losses,
                self._fill,
                self.firsts,
            )
            _apply(self._losses, self._fill, count, band, threshold, self._next, self._next_count)
        set_to(count, frontier, GONE)
