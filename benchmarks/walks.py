"""Loops over the triangles of a whole graph that a simulation of partitions is made of; one thread.

What partitions would do side by side is done here in one go, by what each of them would know: an edge is held once,
with the partitions that hold a copy of it as a set of bits.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from edgemill.kernels.graph import GONE, Adjacency, IntArray, LongArray, Topology

STANDS = 0
FALLS = 1
"""Fell; nobody has looked at its triangles yet."""
KNOWN_AT_OWNER = 2
"""Its owner has."""
KNOWN = 3
"""So have all that hold it as a ghost."""


@njit(cache=True, nogil=True)
def _mark_copies(offsets, high, part, first, listed, closed, position):
    one = np.uint64(1)
    crossing = 0
    for a in range(offsets.size - 1):
        start = offsets[a]
        stop = offsets[a + 1]
        p = np.int64(part[a]) - first
        bit_p = one << np.uint64(p) if 0 <= p < 64 else np.uint64(0)
        for i in range(start, stop):
            position[high[i]] = i + 1
        for i in range(start, stop):
            b = high[i]
            q = np.int64(part[b]) - first
            bit_q = one << np.uint64(q) if 0 <= q < 64 else np.uint64(0)
            if p == q or not (bit_p | bit_q | np.uint64(first == 0)):
                continue
            for j in range(offsets[b], offsets[b + 1]):
                k = position[high[j]]
                if k:
                    listed[i] |= bit_q
                    listed[k - 1] |= bit_q
                    closed[j] |= bit_p
                    crossing += 1
        for i in range(start, stop):
            position[high[i]] = 0
    return crossing


def mark_copies(
    offsets: LongArray, high: IntArray, part: NDArray[np.int16], partitions: int
) -> tuple[NDArray[np.uint64], int, int, int]:
    """Which partitions hold each edge as a ghost, as sets of bits [edges, partitions / 64].

    Also how many entries of lists are answered, how many ghosts the answers name, and how many triangles lie in two
    partitions. An edge is held by those it was sent to in a list, if it has a triangle there, and by those whose list
    it closed. `offsets`, `high` are the oriented CSR of the graph, `part` [vertices] says where each vertex belongs. 64
    partitions at a time, to save memory.
    """
    copies = np.empty((len(high), -(-partitions // 64)), np.uint64)
    answered = named = crossing = 0
    for word in range(copies.shape[1]):
        listed, closed = np.zeros(len(high), np.uint64), np.zeros(len(high), np.uint64)
        position = np.zeros(len(offsets) - 1, np.int64)
        found = _mark_copies(offsets, high, part, 64 * word, listed, closed, position)
        crossing = max(crossing, int(found))  # the first counts all
        answered += int(np.bitwise_count(listed).sum(dtype=np.int64))
        named += int(np.bitwise_count(closed).sum(dtype=np.int64))
        np.bitwise_or(listed, closed, out=copies[:, word])
    return copies, answered, named, crossing


@njit(cache=True, nogil=True)
def _count_middles(offsets, high, marked, middles):
    for a in range(offsets.size - 1):
        start = offsets[a]
        stop = offsets[a + 1]
        for i in range(start, stop):
            marked[high[i]] = 1
        for i in range(start, stop):
            b = high[i]
            for j in range(offsets[b], offsets[b + 1]):
                middles[b] += marked[high[j]]
        for i in range(start, stop):
            marked[high[i]] = 0


def count_middles(offsets: LongArray, high: IntArray) -> LongArray:
    """Triangles in which each vertex is the second in degree order [vertices]: its owner holds all their edges."""
    middles = np.zeros(len(offsets) - 1, np.int64)
    _count_middles(offsets, high, np.zeros(len(middles), np.int64), middles)
    return middles


@njit(cache=True, nogil=True)
def _measure_lists(offsets, high, part, seen, lists, sent, received):
    for a in range(offsets.size - 1):
        stop = offsets[a + 1]
        p = part[a]
        for i in range(offsets[a], stop - 1):
            q = part[high[i]]
            if q != p and seen[q] != a:
                seen[q] = a
                lists[p] += 1
                sent[p] += stop - i
                received[q] += stop - i


def measure_lists(
    offsets: LongArray, high: IntArray, part: NDArray[np.int16], partitions: int
) -> tuple[int, LongArray, LongArray]:
    """What `triangulate.send_lists` would send: lists, and entries by sender and by receiver [partitions]."""
    lists, sent, received = (np.zeros(partitions, np.int64) for _ in range(3))
    _measure_lists(offsets, high, part, np.full(partitions, -1, np.int64), lists, sent, received)
    return int(lists.sum()), sent, received


@njit(cache=True, nogil=True)
def _tally_mail(edges, owner, copies, pairs):
    for i in range(edges.size):
        e = edges[i]
        p = owner[e]
        for word in range(copies.shape[1]):
            rest = copies[e, word]
            q = word * 64
            while rest:
                if rest & np.uint64(1):
                    pairs[p, q] += 1
                rest >>= np.uint64(1)
                q += 1


def tally_mail(
    edges: IntArray, owner: NDArray[np.int16], copies: NDArray[np.uint64], partitions: int
) -> NDArray[np.int64]:
    """How many of `edges` each partition tells each other one [partitions, partitions]."""
    pairs = np.zeros((partitions, partitions), np.int64)
    _tally_mail(edges, owner, copies, pairs)
    return pairs


@njit(cache=True, nogil=True)
def _fall(events, at_owner, low, high, begin, length, neighbour, edge, owner, state, count, band, threshold, mark, out):
    """Let triangles of `events`, sorted by high end, be lost; gives how many more fall, listed in `out`."""
    fell = 0
    i = 0
    while i < events.size:
        hub = high[events[i]]
        row = begin[hub]
        for k in range(row, row + length[hub]):
            mark[neighbour[k]] = edge[k] + 1
        while i < events.size and high[events[i]] == hub:
            e = events[i]
            b = band[e]
            p = owner[e]
            first = begin[low[e]]
            for k in range(first, first + length[low[e]]):
                g = mark[neighbour[k]] - 1
                if g < 0:
                    continue
                f = edge[k]
                if band[f] < b or band[g] < b:
                    continue
                for turn in range(2):
                    if turn:
                        f, g = g, f
                    if band[f] > b or count[f] < 0 or (owner[f] == p) != at_owner:
                        continue
                    if band[g] == b and (state[g] == KNOWN or (state[g] == KNOWN_AT_OWNER and owner[g] == owner[f])):
                        continue
                    count[f] -= 1
                    if count[f] < threshold[b]:
                        count[f] = GONE
                        state[f] = FALLS
                        out[fell] = f
                        fell += 1
            state[e] = KNOWN_AT_OWNER if at_owner else KNOWN
            i += 1
        for k in range(row, row + length[hub]):
            mark[neighbour[k]] = 0
    return fell


class Falls:
    """What is known where of edges that fell. An owner lets an edge fall by what it knows itself; others hear later.

    A triangle has at most two owners, so an edge that falls is looked at twice: for the edges of its own owner
    (`at_owners`), and, when these have been told, for those of the others (`elsewhere`).
    """

    def __init__(self, topology: Topology, owner: NDArray[np.int16]) -> None:
        self._topology, self._owner = topology, owner
        self._mark = np.zeros(topology.vertices, np.int32)
        self._out = np.empty(topology.edges, np.int32)
        self.state = np.zeros(topology.edges, np.int8)

    def begin(self, count: IntArray, falling: IntArray) -> None:
        """These edges start to fall; all with a count stand."""
        self.state[count >= 0] = STANDS
        self.state[falling] = FALLS
        count[falling] = GONE

    def at_owners(
        self, rows: Adjacency, edges: IntArray, count: IntArray, band: IntArray, threshold: IntArray
    ) -> IntArray:
        """Edges of the same owner lose the triangles of `edges`; changes `count`, gives those that fall by it."""
        return self._fall(True, rows, edges, count, band, threshold)

    def elsewhere(
        self, rows: Adjacency, edges: IntArray, count: IntArray, band: IntArray, threshold: IntArray
    ) -> IntArray:
        """Edges of other owners lose them."""
        return self._fall(False, rows, edges, count, band, threshold)

    def _fall(
        self, at_owner: bool, rows: Adjacency, edges: IntArray, count: IntArray, band: IntArray, threshold: IntArray
    ) -> IntArray:
        low, high = self._topology.low, self._topology.high
        fell = _fall(
            edges[np.argsort(high[edges], kind="stable")],
            at_owner,
            low,
            high,
            rows.begin,
            rows.length,
            rows.neighbour,
            rows.edge,
            self._owner,
            self.state,
            count,
            band,
            threshold,
            self._mark,
            self._out,
        )
        return self._out[:fell].copy()
