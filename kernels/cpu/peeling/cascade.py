"""Cascades: remove edges with their triangles, until no edge loses its support.

These kernels serve peeling and filters (one band), and orders of edges whose λ is known (many bands). A round removes
the frontier in two passes, without atomics on counts: `_gather` lists the edges that lose a triangle, by the thread
that owns them; in `_apply` each thread lowers the counts that it owns and lists the edges to remove next. The
level-synchronous rounds and the tie-break (if two edges of a triangle are removed in one round, the edge with the lower
number removes the triangle) follow PKT (Kabir and Madduri, "Parallel k-truss decomposition on multicore systems", HPEC
2017).

Inner loops index with unsigned numbers: Numba tests whether each signed index is negative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import GONE, Adjacency, IntArray, LongArray, Topology
from ...runtime.cache import cached_njit
from ..adjacency import mark_row, probe, search_shorter, unmark_row
from ..arrays.intrinsics import fetch_add, prefetch
from ..arrays.sort import MANY, by_key

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
COUNTED, HIGHER, IN_FRONTIER, REMOVED = 0, 1, -1, -2
"""States of edges. A COUNTED edge remains. A HIGHER edge remains too, but its triangles are not counted, since it
belongs to a higher band. The present round removes an edge IN_FRONTIER. A REMOVED edge was removed in an earlier round.
"""
LARGE = 2**15
"""All threads sort and mark a frontier from this size on, if the graph has MANY edges."""
LINE = 6
"""log2 of the number of consecutive edges of one owner: at least a cache line, so owners do not share lines."""


@cached_njit
def _lose(e, hits, to_f, to_g, lost, state, band, loss, used, firsts):
    """List the edges that lose a triangle by the removal of e, each in its owner's list. Returns their number.

    If `firsts` is not None, writes to `firsts[e]` the number of triangles that the removal of e destroys.
    """
    owners = np.uintp(loss.shape[0] - 1)
    listed = np.uintp(0)
    destroyed = 0
    current = np.int8(IN_FRONTIER)
    for h in range(np.uintp(hits)):
        prefetch(state, to_f[h + np.uintp(COUNTS_AHEAD)])
        prefetch(state, to_g[h + np.uintp(COUNTS_AHEAD)])
        f = to_f[h]
        g = to_g[h]
        cf = state[f]
        cg = state[g]
        if band is None:
            f_remains = (cf >= 0) | ((cf == current) & (e < f))
            g_remains = (cg >= 0) | ((cg == current) & (e < g))
            f_loses = (cf == 0) & g_remains
            g_loses = (cg == 0) & f_remains
        else:
            # Edges in a higher band remain. A triangle with an edge in a lower band was not counted for e.
            here = band[e]
            f_here = band[f] == here
            g_here = band[g] == here
            f_remains = (band[f] > here) | (f_here & ((cf >= 0) | ((cf == current) & (e < f))))
            g_remains = (band[g] > here) | (g_here & ((cg >= 0) | ((cg == current) & (e < g))))
            f_loses = f_here & (cf >= 0) & g_remains
            g_loses = g_here & (cg >= 0) & f_remains
        if firsts is not None:
            destroyed += f_remains & g_remains
        # Without branches: the next edge overwrites an edge that loses nothing.
        lost[listed] = f
        listed += np.uintp(f_loses)
        lost[listed] = g
        listed += np.uintp(g_loses)
    for i in range(listed):
        owner = (np.uintp(lost[i]) >> np.uintp(LINE)) & owners
        at = used[owner]
        loss[owner, at] = lost[i]
        used[owner] = at + np.uint64(1)
    if firsts is not None:
        firsts[e] = destroyed
    return np.int64(listed)


class Scratch(NamedTuple):
    """Scratch memory of all threads for the passes of a cascade."""

    cursor: LongArray
    """[1] the first edge of the frontier that no thread has taken."""
    todo: LongArray
    """[threads, 2 or more] the rest of a thread's chunk: its first edge and its end."""
    marks: IntArray
    """[threads, vertices] the marked row."""
    found: NDArray[np.uint32]
    """[2, threads, widest + 1 or more] the other two edges of each triangle."""
    lost: NDArray[np.uint32]
    """[threads, 2 × widest or more] the edges that lose a triangle."""
    losses: NDArray[np.uint32]
    """[threads, owners, any length] the edges that lose a triangle, in one list for each owner."""
    fill: NDArray[np.uint64]
    """[threads, owners or more] lengths of the lists in `losses`."""


@cached_njit
def _gather_some(thread, frontier, chunk, rows, state, band, scratch, firsts):
    """List the edges that lose a triangle by the removal of the chunks of the frontier that a thread takes.

    The frontier is sorted by high endpoint, and a row is marked once for all edges with that endpoint. A thread whose
    lists are full stores the rest of its chunk in `todo`.
    """
    low, high, begin, length, neighbour, edge = rows
    cursor, todo, mark = scratch.cursor, scratch.todo[thread], scratch.marks[thread]
    to_f, to_g, lost = scratch.found[0, thread], scratch.found[1, thread], scratch.lost[thread]
    loss, used = scratch.losses[thread], scratch.fill[thread]
    room = loss.shape[1] - COUNTS_AHEAD
    used[:] = 0
    written = 0
    full = False
    while not full:
        i = todo[0]
        stop = todo[1]
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
                written += _lose(e, hits, to_f, to_g, lost, state, band, loss, used, firsts)
                i += 1
            if marked:
                unmark_row(mark, neighbour, row, row_stop)
        todo[0] = i
        todo[1] = stop


@cached_njit(parallel=True)
def _gather(frontier, chunk, rows, state, band, scratch, firsts):
    """List the edges that lose a triangle by the removal of the frontier. Threads take `chunk` edges at a time.

    `rows` are the ends of edges, and the begin, length, neighbours and edges of the rows of vertices.
    """
    for thread in prange(scratch.marks.shape[0]):
        _gather_some(np.int64(thread), frontier, chunk, rows, state, band, scratch, firsts)


@cached_njit(parallel=True)
def _apply(losses, fill, count, band, threshold, next_edges, next_count, removed, state):
    """Each owner lowers its counts and lists the edges whose count drops below the threshold.

    The edges `removed`, which lose nothing, are marked as gone.
    """
    owners = next_edges.shape[0]
    for owner in prange(owners):
        for i in range(owner * removed.size // owners, (owner + 1) * removed.size // owners):
            count[removed[i]] = GONE
            state[removed[i]] = np.int8(REMOVED)
        own = next_edges[owner]
        n = np.uintp(next_count[owner])
        for thread in range(losses.shape[0]):
            loss = losses[thread, owner]
            for i in range(np.uintp(fill[thread, owner])):
                # Beyond the end of the list are edges of earlier passes, whose prefetch does no harm.
                prefetch(count, loss[i + np.uintp(COUNTS_AHEAD)])
                e = loss[i]
                c = count[e]
                count[e] = c - 1
                limit = threshold[0] if band is None else threshold[np.uintp(band[e])]
                own[n] = e
                n += np.uintp(c == limit)
        next_count[owner] = n


@cached_njit
def _to_keys(edges, high, bits, state, keys):
    """Keys that sort edges by (high, edge). The edges enter the frontier."""
    for i in range(edges.size):
        e = edges[i]
        keys[i] = (np.int64(high[e]) << bits) | e
        state[e] = np.int8(IN_FRONTIER)


@cached_njit
def _set_few(values, edges, value):
    for i in range(edges.size):
        values[edges[i]] = value


@cached_njit(parallel=True)
def _set_many(values, edges, value):
    for i in prange(edges.size):
        values[edges[i]] = value


def _is_large(graph: IntArray, edges: IntArray) -> bool:
    """Whether all threads work on `edges` of a graph with one value in `graph` for each edge."""
    return len(edges) >= LARGE and len(graph) >= MANY


def set_to(values: NDArray[Any], edges: IntArray, value: int) -> None:
    """Set the entries of the distinct `edges` to `value`; changes `values` [edges of the graph]."""
    (_set_many if _is_large(values, edges) else _set_few)(values, edges, values.dtype.type(value))


class Cascade:
    """Scratch memory for the cascades of one graph, for repeated use. Not thread-safe."""

    def __init__(self, topology: Topology, rows: Adjacency) -> None:
        low, vertices, widest = topology.low, topology.vertices, rows.widest
        self.low, self.high = low, topology.high
        self._edge_bits, self._vertices = len(low).bit_length(), vertices
        threads = get_num_threads()
        owners = 1 << (threads - 1).bit_length()
        room = max(2 * widest + 2, ROOM // threads)
        self._threads = threads
        self._scratch = Scratch(
            cursor=np.zeros(1, np.int64),
            todo=np.zeros((threads, LONE), np.int64),
            marks=np.zeros((threads, vertices), np.int32),
            found=np.zeros((2, threads, widest + 1 + COUNTS_AHEAD), np.uint32),
            lost=np.zeros((threads, 2 * widest + LONE), np.uint32),
            losses=np.zeros((threads, owners, room + COUNTS_AHEAD), np.uint32),
            # Without this width two threads share a cache line, and gather a fifth slower.
            fill=np.zeros((threads, max(owners, LONE)), np.uint64),
        )
        span = owners << LINE
        self._next = np.empty((owners, (-(-len(low) // span) << LINE) + 1), np.int32)
        self._next_count = np.zeros(owners, np.int64)
        self.state: NDArray[np.int8] | None = None
        """[edges] COUNTED, HIGHER, IN_FRONTIER or REMOVED. If not set, `run` finds it by the counts."""
        self.after_round: Callable[[IntArray], Adjacency] | None = None
        """Takes the edges that a round removed, and returns the rows for the next round."""
        self.firsts: IntArray | None = None
        """[edges] if it is set, `run` stores in it the number of triangles that the removal of each edge destroys:
        those in which no other edge is removed before this edge. `run` then returns the edges in the order of their
        removal, and the edges of one round by number.
        """

    def run(
        self, rows: Adjacency, count: IntArray, frontier: IntArray, threshold: IntArray, band: IntArray | None
    ) -> tuple[IntArray, int]:
        """Remove the edges of `frontier`, whose counts are ≥ 0, and all edges that lose their support by this removal.

        Lowers the `count` int32 [edges] of each edge that loses a triangle, and removes each edge whose count drops
        below `threshold[band[e]]`, or `threshold[0]` without a band; the count of a removed edge is GONE. A triangle
        counts for e only if its other edges are in a higher `band` int32 [edges] or remain in e's band, and the removal
        of e lowers only counts of edges in e's band. `rows` contain the remaining edges, and may contain removed edges.
        Reads the shorter row of each removed edge and two states for each triangle. Returns the removed edges and the
        number of rounds.
        """
        removed = []
        rounds = 0
        state = np.where(count < 0, np.int8(REMOVED), np.int8(0)) if self.state is None else self.state
        while len(frontier):
            frontier = self.enter(frontier, state)
            self.round(rows, count, state, frontier, threshold, band)
            removed.append(frontier if self.firsts is None else np.sort(frontier))
            rounds += 1
            if self.after_round is not None:
                rows = self.after_round(frontier)
            frontier = self.next_frontier()
        return (np.concatenate(removed) if removed else np.empty(0, np.int32)), rounds

    def enter(self, edges: IntArray, state: NDArray[np.int8]) -> IntArray:
        """Sort `edges` by high endpoint to a frontier, and set their `state`. All threads sort a large frontier."""
        if _is_large(self.low, edges):
            set_to(state, edges, IN_FRONTIER)
            return by_key(self.high, edges, self._vertices)
        keys = np.empty(len(edges), np.int64)
        _to_keys(edges, self.high, self._edge_bits, state, keys)
        keys.sort()
        keys &= (1 << self._edge_bits) - 1
        return keys.astype(np.int32)

    def next_frontier(self) -> IntArray:
        """The edges whose counts fell below their thresholds since `begin`."""
        return np.concatenate([self._next[o, :n] for o, n in enumerate(self._next_count)])

    def begin(self) -> None:
        """Begin a round."""
        self._scratch.cursor[0] = 0
        self._scratch.todo[:] = 0
        self._next_count[:] = 0

    def round(
        self,
        rows: Adjacency,
        count: IntArray,
        state: NDArray[np.int8],
        frontier: IntArray,
        threshold: IntArray,
        band: IntArray | None = None,
    ) -> None:
        """Remove the edges of the `frontier`, which is a result of `enter`."""
        self.begin()
        done = False
        while not done:
            done = self.list_losses(rows, state, frontier, band)
            self.lower(count, state, threshold, band, frontier if done else frontier[:0])

    def list_losses(self, rows: Adjacency, state: NDArray[np.int8], frontier: IntArray, band: IntArray | None) -> bool:
        """List the edges that lose triangles, until a list is full; returns whether the frontier is done."""
        chunk = max(1, min(CHUNK, len(frontier) // (self._threads * 8)))
        lists = rows.begin, rows.length, rows.neighbour.view(np.uint32), rows.edge.view(np.uint32)
        _gather(frontier, chunk, (self.low, self.high, *lists), state, band, self._scratch, self.firsts)
        todo = self._scratch.todo
        return self._scratch.cursor[0] >= len(frontier) and bool((todo[:, 0] >= todo[:, 1]).all())

    def lower(
        self,
        count: IntArray,
        state: NDArray[np.int8],
        threshold: IntArray,
        band: IntArray | None,
        removed: IntArray,
    ) -> None:
        """Lower the counts of the listed edges, and mark the edges `removed`."""
        losses = self._scratch.losses, self._scratch.fill
        _apply(*losses, count, band, threshold, self._next, self._next_count, removed, state)
