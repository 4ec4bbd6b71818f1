"""Edges that fall take their triangles along, until nothing more falls.

The one kernel family under peeling (one band) and band filters (many bands side by side). A round takes the frontier,
the edges that fall now, and works in two passes without atomics on counts: `_gather` lists the edges that lose a
triangle, by the thread that owns them; `_apply` lets each thread lower the counts it owns and note who falls next. The
level-synchronous rounds and the tie-break (of two edges of one triangle that fall together, the lower number takes it)
follow PKT (Kabir and Madduri, "Parallel k-truss decomposition on multicore systems", HPEC 2017).

Inner loops index with unsigned numbers: Numba tests every signed index for being negative, which cost a quarter.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, njit, prange

from ..graph import CURRENT, GONE, Adjacency, IntArray, Topology
from .atomics import fetch_add, prefetch
from .common_neighbours import mark_row, probe, search_shorter, unmark_row
from .sort import sort_keys

CHUNK = 256
"""Frontier edges that a thread takes at a time."""
MARK_COST = 6
"""A row is marked when it is shorter than this times the entries to be looked up in it; measured, 4 to 8 are alike."""
ROOM = 2**20
"""Entries of the loss lists of all threads together, at least; a round that needs more takes several passes."""
AHEAD = 4
"""How many edges ahead of its turn a row is fetched: a tenth less time, from 4 to 8 alike."""
LONE = 32
"""Width of rows of int64 counters that one thread writes."""
RADIX_FROM = 2**16
"""Frontiers from this size on are sorted by radix; for smaller ones its digit counts cost more than they save."""
LINE = 6
"""log2 of the edges that go to one owner in turn: a cache line or more, so owners do not share lines."""


@njit(cache=True, nogil=True)
def _lose(e, hits, to_f, to_g, count, band, loss, used):
    """List which edges of e's triangles lose one by its fall, each at its owner; gives how many."""
    owners = np.uintp(loss.shape[0] - 1)
    listed = 0
    for h in range(np.uintp(hits)):
        f = to_f[h]
        g = to_g[h]
        cf = count[f]
        cg = count[g]
        if band is None:
            f_falls = (cf >= 0) & ((cg >= 0) | ((cg == CURRENT) & (e < g)))
            g_falls = (cg >= 0) & ((cf >= 0) | ((cf == CURRENT) & (e < f)))
        else:
            # An edge of a higher band stands; one of a lower band never held this triangle.
            here = band[e]
            f_here = band[f] == here
            g_here = band[g] == here
            f_stands = (band[f] > here) | (f_here & ((cf >= 0) | ((cf == CURRENT) & (e < f))))
            g_stands = (band[g] > here) | (g_here & ((cg >= 0) | ((cg == CURRENT) & (e < g))))
            f_falls = f_here & (cf >= 0) & g_stands
            g_falls = g_here & (cg >= 0) & f_stands
        owner = (np.uintp(f) >> np.uintp(LINE)) & owners
        loss[owner, used[owner]] = f
        used[owner] += np.uintp(f_falls)
        owner = (np.uintp(g) >> np.uintp(LINE)) & owners
        loss[owner, used[owner]] = g
        used[owner] += np.uintp(g_falls)
        listed += f_falls
        listed += g_falls
    return listed


@njit(parallel=True, cache=True, nogil=True)
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
):
    """List who loses a triangle to the frontier, which is sorted by high endpoint: its row is marked once a run.

    A thread whose lists are full leaves the rest of its chunk in `todo`.
    """
    room = losses.shape[2]
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
                    written += _lose(e, hits, to_f, to_g, count, band, loss, used)
                    i += 1
                if marked:
                    unmark_row(mark, neighbour, row, row_stop)
            todo[thread, 0] = i
            todo[thread, 1] = stop


@njit(parallel=True, cache=True, nogil=True)
def _apply(losses, fill, count, band, threshold, falling, fallen):
    """Every owner lowers its counts and lists the edges that drop below their threshold."""
    for owner in prange(falling.shape[0]):
        fall = falling[owner]
        n = np.uintp(fallen[owner])
        for thread in range(losses.shape[0]):
            loss = losses[thread, owner]
            for i in range(np.uintp(fill[thread, owner])):
                e = loss[i]
                c = count[e]
                count[e] = c - 1
                limit = threshold[0] if band is None else threshold[np.uintp(band[e])]
                fall[n] = e
                n += np.uintp(c == limit)
        fallen[owner] = n


@njit(cache=True, nogil=True)
def _set(count, edges, value):
    """Give many edges one count."""
    for i in range(edges.size):
        count[edges[i]] = value


class Cascade:
    """Scratch of one subgraph's cascades, reused from call to call. Not for several threads at once."""

    def __init__(self, topology: Topology, rows: Adjacency) -> None:
        low, vertices, widest = topology.low, topology.vertices, rows.widest
        self.low, self.high = low, topology.high
        self._edge_bits, self._vertex_bits = len(low).bit_length(), vertices.bit_length()
        threads = get_num_threads()
        owners = 1 << (threads - 1).bit_length()
        room = max(2 * widest + 2, ROOM // threads)
        self._marks = np.zeros((threads, vertices), np.int32)
        self._found = np.empty((2, threads, widest + 1), np.uint32)
        self._losses = np.empty((threads, owners, room), np.uint32)
        # Rows wide enough that no two threads count in one cache line: else two threads gather a fifth slower.
        self._fill = np.zeros((threads, max(owners, LONE)), np.uint64)
        self._todo = np.zeros((threads, LONE), np.int64)
        self._cursor = np.zeros(1, np.int64)
        span = owners << LINE
        self._falling = np.empty((owners, (-(-len(low) // span) << LINE) + 1), np.int32)
        self._fallen = np.zeros(owners, np.int64)

    def run(
        self, rows: Adjacency, count: IntArray, frontier: IntArray, threshold: IntArray, band: IntArray | None
    ) -> tuple[IntArray, int]:
        """Let `frontier` fall and all that follows; `count` is changed in place. Gives the fallen and the rounds."""
        gone = []
        rounds = 0
        while len(frontier):
            frontier = self._by_hub(frontier)
            self._round(rows, count, frontier, threshold, band)
            gone.append(frontier)
            rounds += 1
            frontier = np.concatenate([self._falling[o, :n] for o, n in enumerate(self._fallen)])
        return (np.concatenate(gone) if gone else np.empty(0, np.int32)), rounds

    def _by_hub(self, frontier: IntArray) -> IntArray:
        """The frontier sorted by high endpoint, then by number."""
        key = self.high[frontier].astype(np.int64)
        key <<= self._edge_bits
        key |= frontier
        if len(key) < RADIX_FROM:
            key.sort()
        else:
            key = sort_keys(key, self._edge_bits + self._vertex_bits)
        key &= (1 << self._edge_bits) - 1
        return key.astype(np.int32)

    def _round(
        self, rows: Adjacency, count: IntArray, frontier: IntArray, threshold: IntArray, band: IntArray | None
    ) -> None:
        _set(count, frontier, np.int32(CURRENT))
        threads = len(self._marks)
        chunk = max(1, min(CHUNK, len(frontier) // (threads * 8)))
        self._cursor[0] = 0
        self._todo[:] = 0
        self._fallen[:] = 0
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
            )
            _apply(self._losses, self._fill, count, band, threshold, self._falling, self._fallen)
        _set(count, frontier, np.int32(GONE))
