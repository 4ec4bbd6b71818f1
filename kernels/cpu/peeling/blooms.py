"""Bitruss peeling with an index of blooms, in memory that a plan bounds.

A bloom is the wedges with the same two ends, of which `butterflies` finds each butterfly from the first. In a bloom of
k wedges each edge lies in k - 1 butterflies. If an edge is removed, the other edge of its wedge loses these k - 1, and
every other edge of the bloom loses one. So a level is removed bloom by bloom, however many butterflies a bloom has.
This is the BE-index of Wang, Lin, Qin, Zhang and Zhang ("Towards efficient solutions of bitruss decomposition for large
bipartite graphs", VLDB Journal 2022), with the removals of one round taken together.

An index of hubs is larger than the graph by far. Then λ is found in bands, the highest first, as their progressive
compression does: edges with few butterflies are left out until the index of the others fits, and λ of those that stay
is found. In later bands these edges stand still, and wedges of two of them are only counted. So every wedge is in the
index of one band.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...graph import Adjacency, IntArray, LongArray, Topology
from ...runtime.cache import cached_njit
from ..adjacency import adjacency, compact
from ..arrays.intrinsics import fetch_add, prefetch
from ..butterflies import CHUNK, count_butterflies, count_ends

ENTRY_BYTES = 24
"""Memory of a wedge of the index: its two edges in the list of its bloom, and one entry in the list of each edge."""
BLOOM_BYTES = 16
"""Memory of a bloom of the index."""
COUNT, BUCKET, BEFORE, AFTER = 0, 1, 2, 3
"""Columns of the record of an edge: its butterflies, its bucket or state, and its neighbours in the list of the bucket.
"""
LIVE, KNOWN, REMOVED, FALLING = 0, -1, -2, -3
"""States of edges. A live edge is in the band, and has a bucket ≥ LIVE. λ of a KNOWN edge is above the band: it
remains. A REMOVED edge was removed in an earlier round. The present round removes a FALLING edge.
"""
START, LENGTH, WEDGES, FALLEN = 0, 1, 2, 3
"""Columns of the record of a bloom: where its list starts, as uint32, and its length; all its wedges, also those of two
known edges; those that fall in the present round.
"""
KEYS = 32
"""Buckets of a radix heap of int32."""
AHEAD = 8
"""Records are prefetched this many entries ahead."""
MOST_ENTRIES = 2**32 - 1
"""Most wedges of an index, which are numbered by uint32."""


class Index(NamedTuple):
    """The blooms of a band."""

    first: LongArray
    """[edges + 1] where the list of each edge starts."""
    bloom: NDArray[np.uint32]
    """[entries of edges] the bloom of a wedge of the edge."""
    twin: NDArray[np.uint32]
    """[entries of edges] the other edge of this wedge."""
    wedge: NDArray[np.uint32]
    """[wedges, 2] the two edges of each wedge that has a live edge, bloom by bloom."""
    record: IntArray
    """[blooms, 4] the record of each bloom."""


@cached_njit(parallel=True)
def _measure(begin, length, neighbour, edge, state, paths, ends, cursor, entries, blooms, of_edge):
    """Set `entries` and `blooms` [vertices] to what the index of a band holds of butterflies that are found from a
    vertex, and count the entries of each edge in `of_edge`.
    """
    vertices = begin.size
    for thread in prange(paths.shape[0]):
        own, found = paths[thread], ends[thread]
        while True:
            taken = fetch_add(cursor, 0, np.int64(CHUNK))
            if taken >= vertices:
                break
            for u in range(max(vertices - taken - CHUNK, 0), vertices - taken):
                if entries[u] == 0:
                    continue
                ends_of_u = count_ends(u, begin, length, neighbour, own, found)
                listed = np.int64(0)
                pairs = np.int64(0)
                row = np.uintp(begin[u])
                for q in range(row, row + np.uintp(length[u])):
                    v = neighbour[q]
                    if v >= u:
                        break
                    first_known = state[edge[q]] == KNOWN
                    of_first = np.int32(0)
                    start = np.uintp(begin[v])
                    for r in range(start, start + np.uintp(length[v])):
                        w = neighbour[r]
                        if w >= u:
                            break
                        c = own[w]
                        if (c > 1) | (c < 0):
                            second_known = state[edge[r]] == KNOWN
                            if first_known & second_known:
                                continue
                            listed += 1
                            if c > 0:
                                pairs += 1
                                own[w] = -1
                            if not first_known:
                                of_first += np.int32(1)
                            if not second_known:
                                fetch_add(of_edge, edge[r], np.int32(1))
                    if of_first:
                        fetch_add(of_edge, edge[q], of_first)
                entries[u] = listed
                blooms[u] = pairs
                for i in range(ends_of_u):
                    own[found[i]] = 0


@cached_njit(parallel=True)
def _build(
    begin, length, neighbour, edge, state, paths, ends, places, cursor, entry_at, bloom_at, next_of_edge, blooms, twins,
    wedge, record, any_known,
):  # fmt: skip
    """Write the index of a band; `places` [threads, vertices + 1] is scratch memory."""
    vertices = begin.size
    for thread in prange(paths.shape[0]):
        own, found, place = paths[thread], ends[thread], places[thread]
        while True:
            taken = fetch_add(cursor, 0, np.int64(CHUNK))
            if taken >= vertices:
                break
            for u in range(max(vertices - taken - CHUNK, 0), vertices - taken):
                if entry_at[u] == entry_at[u + 1]:
                    continue
                ends_of_u = count_ends(u, begin, length, neighbour, own, found)
                # First the wedges of each bloom that will be listed, as -1 - their number, then their places.
                row = np.uintp(begin[u])
                for i in range(ends_of_u):
                    c = own[found[i]]
                    place[found[i]] = 0 if any_known or c < 2 else c
                for q in range(row, row + np.uintp(length[u] if any_known else 0)):
                    v = neighbour[q]
                    if v >= u:
                        break
                    first_known = state[edge[q]] == KNOWN
                    from_v = np.uintp(begin[v])
                    for r in range(from_v, from_v + np.uintp(length[v])):
                        w = neighbour[r]
                        if w >= u:
                            break
                        if own[w] > 1 and not (first_known and state[edge[r]] == KNOWN):
                            place[w] += 1
                b = bloom_at[u]
                at = entry_at[u]
                for i in range(ends_of_u):
                    w = found[i]
                    if place[w]:
                        record[b, START] = np.int32(np.uint32(at))
                        record[b, LENGTH] = place[w]
                        record[b, WEDGES] = own[w]
                        record[b, FALLEN] = 0
                        at += place[w]
                        place[w] = at - place[w]
                        own[w] = -1 - b + bloom_at[u]
                        b += 1
                for q in range(row, row + np.uintp(length[u])):
                    v = neighbour[q]
                    if v >= u:
                        break
                    e = edge[q]
                    first_known = state[e] == KNOWN
                    from_v = np.uintp(begin[v])
                    for r in range(from_v, from_v + np.uintp(length[v])):
                        w = neighbour[r]
                        if w >= u:
                            break
                        if own[w] < 0:
                            f = edge[r]
                            second_known = state[f] == KNOWN
                            if first_known & second_known:
                                continue
                            to = place[w]
                            place[w] = to + 1
                            wedge[to, 0] = e
                            wedge[to, 1] = f
                            bloom = bloom_at[u] - 1 - own[w]
                            if not first_known:
                                to = fetch_add(next_of_edge, e, np.int64(1))
                                blooms[to] = bloom
                                twins[to] = f
                            if not second_known:
                                to = fetch_add(next_of_edge, f, np.int64(1))
                                blooms[to] = bloom
                                twins[to] = e
                for i in range(ends_of_u):
                    own[found[i]] = 0


@cached_njit
def _bucket(key, level):
    """The bucket of a key ≥ level: 0 if they are equal, else one more than the highest bit in which they differ."""
    differing = np.int64(key) ^ np.int64(level)
    bits = np.int64(0)
    for step in (16, 8, 4, 2, 1):
        if differing >> step:
            differing >>= step
            bits += step
    return bits + differing


@cached_njit
def _unlink(e, edges, heads):
    p, n = edges[e, BEFORE], edges[e, AFTER]
    if p >= 0:
        edges[p, AFTER] = n
    else:
        heads[edges[e, BUCKET]] = n
    if n >= 0:
        edges[n, BEFORE] = p


@cached_njit
def _link(e, to, edges, heads):
    n = heads[to]
    heads[to] = e
    edges[e, BEFORE] = -1
    edges[e, AFTER] = n
    edges[e, BUCKET] = to
    if n >= 0:
        edges[n, BEFORE] = e


@cached_njit
def _move(e, edges, level, heads):
    """Move a live edge, whose count is below those of its bucket, to another bucket."""
    _unlink(e, edges, heads)
    _link(e, _bucket(max(np.int64(edges[e, COUNT]), level), level), edges, heads)


@cached_njit
def _set_floors(level, floor):
    """The least key of each bucket. A bucket that no key can have has a lower one."""
    floor[0] = -(2**31)
    for b in range(1, KEYS):
        floor[b] = ((level >> (b - 1)) | 1) << (b - 1)


@cached_njit
def _next_level(edges, heads, floor):
    """Move the edges of the first bucket that has some to those that they have at the least of their counts.

    Returns this level, or -1 if there are no edges.
    """
    b = 1
    while b < KEYS and heads[b] < 0:
        b += 1
    if b == KEYS:
        return np.int64(-1)
    e = heads[b]
    level = np.int64(edges[e, COUNT])
    while e >= 0:
        level = min(level, np.int64(edges[e, COUNT]))
        e = edges[e, AFTER]
    _set_floors(level, floor)
    e = heads[b]
    heads[b] = -1
    while e >= 0:
        following = edges[e, AFTER]
        _link(e, _bucket(edges[e, COUNT], level), edges, heads)
        e = following
    return level


@cached_njit
def _take_first(edges, heads, removed):
    """Move the edges of the first bucket to `removed`. Returns their number."""
    falling = 0
    e = heads[0]
    while e >= 0:
        removed[falling] = e
        falling += 1
        edges[e, BUCKET] = FALLING
        e = edges[e, AFTER]
    heads[0] = -1
    return falling


@cached_njit
def peel_band(first, bloom, twin, wedge, blooms, edges, low, lowest, removed, touched, heads, floor):
    """Remove the live edges level by level, from the level `lowest` on, and set `low` [edges] to their λ.

    `edges` int32 [edges, 4] has their butterflies with live and known edges, and LIVE, KNOWN or REMOVED. Edges with
    fewer than `lowest` are removed first and get λ `lowest` - 1, which only says that λ is below `lowest`. `removed`
    [edges], `touched` [blooms], and `heads` (all -1) and `floor`, both int64 [KEYS], are scratch memory. Returns the
    number of levels.

    A monotone radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, Journal of the ACM 1990) has the live edges by their
    counts, in lists that are linked in both directions. Removals of one round are taken together.
    """
    flat_edges, flat_blooms = edges.reshape(edges.size), blooms.reshape(blooms.size)
    flat_wedges = wedge.reshape(wedge.size)
    level = np.int64(max(lowest - 1, 0))
    _set_floors(level, floor)
    for i in range(edges.shape[0] - 1, -1, -1):
        if edges[i, BUCKET] >= 0:
            _link(i, _bucket(max(np.int64(edges[i, COUNT]), level), level), edges, heads)
    levels = 0
    while True:
        if heads[0] < 0:
            level = _next_level(edges, heads, floor)
            if level < 0:
                return levels
        levels += 1
        while heads[0] >= 0:
            falling = _take_first(edges, heads, removed)
            changed = 0
            for i in range(falling):
                e = np.int64(removed[i])
                prefetch(first, removed[min(i + 2 * AHEAD, falling - 1)])
                prefetch(bloom, first[removed[min(i + AHEAD, falling - 1)]])
                prefetch(twin, first[removed[min(i + AHEAD, falling - 1)]])
                low[e] = level
                stop = first[e + 1]
                for q in range(first[e], stop):
                    ahead = min(q + AHEAD, stop - 1)
                    prefetch(flat_blooms, 4 * np.int64(bloom[ahead]))
                    prefetch(flat_edges, 4 * np.int64(twin[ahead]))
                for q in range(first[e], stop):
                    b = np.int64(bloom[q])
                    k = blooms[b, WEDGES]
                    if k < 2:
                        continue
                    f = np.int64(twin[q])
                    s = edges[f, BUCKET]
                    if s == REMOVED or (s == FALLING and f < e):
                        continue
                    if blooms[b, FALLEN] == 0:
                        touched[changed] = b
                        changed += 1
                    blooms[b, FALLEN] += 1
                    if s >= 0:
                        edges[f, COUNT] -= k - 1
                        if edges[f, COUNT] < floor[edges[f, BUCKET]]:
                            _move(f, edges, level, heads)
            for i in range(changed):
                ahead = np.int64(touched[min(i + AHEAD, changed - 1)])
                prefetch(flat_blooms, 4 * np.int64(touched[min(i + 2 * AHEAD, changed - 1)]))
                prefetch(flat_wedges, 2 * np.int64(np.uint32(blooms[ahead, START])))
                b = np.int64(touched[i])
                lost = blooms[b, FALLEN]
                blooms[b, FALLEN] = 0
                blooms[b, WEDGES] -= lost
                start = np.int64(np.uint32(blooms[b, START]))
                kept = start
                stop = start + blooms[b, LENGTH]
                for q in range(start, stop):
                    ahead = min(q + AHEAD, stop - 1)
                    prefetch(flat_edges, 4 * np.int64(wedge[ahead, 0]))
                    prefetch(flat_edges, 4 * np.int64(wedge[ahead, 1]))
                    e = np.int64(wedge[q, 0])
                    f = np.int64(wedge[q, 1])
                    s = edges[e, BUCKET]
                    t = edges[f, BUCKET]
                    if (s < KNOWN) | (t < KNOWN):
                        continue
                    wedge[kept, 0] = e
                    wedge[kept, 1] = f
                    kept += 1
                    if s >= 0:
                        edges[e, COUNT] -= lost
                        if edges[e, COUNT] < floor[edges[e, BUCKET]]:
                            _move(e, edges, level, heads)
                    if t >= 0:
                        edges[f, COUNT] -= lost
                        if edges[f, COUNT] < floor[edges[f, BUCKET]]:
                            _move(f, edges, level, heads)
                blooms[b, LENGTH] = kept - start
            for i in range(falling):
                edges[removed[i], BUCKET] = REMOVED


class ButterflyPeeling:
    """Finds λ of the edges of a graph by butterflies, band by band; see `kernels.peeling`. Not thread-safe.

    `count` int32 [edges] is the number of butterflies of each edge, none of them 0. An index takes at most `most_bytes`
    of memory. What else this takes is about 40 bytes an edge, and 12 a vertex for each thread.
    """

    def __init__(self, topology: Topology, count: IntArray, most_bytes: int) -> None:
        self.low = np.zeros(topology.edges, np.int32)
        """[edges] λ of the edges that were removed, 0 for the others."""
        self.count = count.copy()
        """[edges] the most that λ of each other edge can be, negative for edges that were removed."""
        self.left, self.level, self.levels = topology.edges, 0, 0
        self.bands = 0
        """Number of indexes that were built."""
        self.entries = 0
        """Wedges in all of them."""
        self._rows, self._most_bytes, self._first_count = adjacency(topology), most_bytes, count
        self._known = np.zeros(topology.edges, np.bool_)
        self._above = int(count.max(initial=0)) + 1
        """λ of all edges that are not known is below this."""

    def advance(self) -> None:
        """Find λ of the edges of the highest band of those that are left."""
        lowest, band = self._highest_band()
        if band is None:
            self._settle(self._survivors(lowest), np.full(len(self.low), lowest, np.int32))
            self.levels += 1
        else:
            low, removed = np.zeros_like(self.low), np.empty(len(self.low), np.int32)
            index, edges = band.index(), band.records()
            touched = np.empty(len(index.record), np.uint32)
            self.levels += peel_band(*index, edges, low, lowest, removed, touched, *_heap())
            self.bands += 1
            self.entries += len(index.wedge)
            self._settle(low >= lowest, low)
        self.level = lowest
        self._above = lowest
        np.minimum(self.count, max(lowest - 1, 0), out=self.count, where=~self._known)

    def _settle(self, found: NDArray[np.bool_], low: IntArray) -> None:
        self.low[found] = low[found]
        self.count[found] = -1
        self._known |= found
        self.left -= int(np.count_nonzero(found))

    def _highest_band(self) -> tuple[int, Band | None]:
        """The lowest level of the next band, and the band; None if even a band of one level has too large an index."""
        band = self._band(1)
        if band.bytes <= self._most_bytes:
            return 1, band
        below, above = 1, self._above
        best: tuple[int, Band | None] = above, None
        step = self._start()
        while above - below > 1:
            middle = step if below < step < above else below + (above - below) // 2
            band = self._band(middle)
            if band.bytes <= self._most_bytes:
                best, above = (middle, band), middle
                if band.bytes >= self._most_bytes // 4:
                    break
                step = middle // 2
            else:
                below = middle
                step = 2 * middle
        return best if best[1] is not None else (self._above - 1, None)

    def _start(self) -> int:
        """A level to begin with: half of the unknown edges have fewer butterflies, or half the last lowest level."""
        return int(np.median(self.count[~self._known])) if not self.bands else self._above // 2

    def _band(self, lowest: int) -> Band:
        """The edges that are known or may have λ ≥ `lowest`."""
        return Band.of(*self._filtered(lowest, PASSES), self._known)

    def _survivors(self, lowest: int) -> NDArray[np.bool_]:
        """The unknown edges with λ ≥ `lowest`."""
        _, count = self._filtered(lowest, None)
        return ~self._known & (count >= lowest)

    def _filtered(self, lowest: int, passes: int | None) -> tuple[Adjacency, IntArray]:
        """The rows without edges whose λ is below `lowest`, and counts in these rows; -1 for an edge without an entry.

        Counts anew after each pass, at most `passes` times: without a limit all such edges are left out.
        """
        rows, count = self._rows, self._first_count
        stays = np.ones(len(count), np.bool_)
        while True:
            falls = stays & ~self._known & (count < lowest)
            if not falls.any():
                return rows, np.where(stays, count, np.int32(-1))
            stays &= ~falls
            rows = compact(rows, stays)
            count = count_butterflies(rows, len(count)).support
            if passes is not None:
                passes -= 1
                if not passes:
                    return rows, np.where(stays, count, np.int32(-1))


PASSES = 4
"""Passes of a filter before a band is measured. Edges of lower λ that stay make its index larger, not λ different."""


@dataclass(frozen=True)
class Band:
    """The edges of a band, those that are known to be above it, and the size of an index of its blooms."""

    rows: Adjacency
    count: IntArray
    """[edges] butterflies in these rows, -1 for an edge that is left out."""
    state: NDArray[np.int8]
    """[edges]"""
    entry_at: LongArray
    """[vertices + 1] where the wedges of each vertex start in the index."""
    bloom_at: LongArray
    """[vertices + 1] where its blooms start."""
    first: LongArray
    """[edges + 1] where the entries of each edge start."""

    @classmethod
    def of(cls, rows: Adjacency, count: IntArray, known: NDArray[np.bool_]) -> Band:
        """Measure the index of the edges with a count ≥ 0."""
        vertices, threads = len(rows.begin), get_num_threads()
        state = np.where(known, np.int8(KNOWN), np.where(count < 0, np.int8(REMOVED), np.int8(LIVE)))
        entries, blooms = np.ones((2, vertices), np.int64)
        of_edge = np.zeros(len(count), np.int32)
        scratch = np.zeros((threads, vertices + 1), np.int32), np.empty((threads, vertices + 1), np.int32)
        cursor = np.zeros(1, np.int64)
        _measure(
            rows.begin, rows.length, rows.neighbour, rows.edge, state, *scratch, cursor, entries, blooms, of_edge
        )  # fmt: skip
        return cls(rows, count, state, *(_starts(sizes) for sizes in (entries, blooms, of_edge)))

    @property
    def bytes(self) -> int:
        """Memory of the index."""
        return ENTRY_BYTES * int(self.entry_at[-1]) + BLOOM_BYTES * int(self.bloom_at[-1])

    def index(self) -> Index:
        """Build the index."""
        vertices, threads, rows = len(self.rows.begin), get_num_threads(), self.rows
        blooms, twins = np.empty((2, int(self.first[-1])), np.uint32)
        wedge = np.empty((int(self.entry_at[-1]), 2), np.uint32)
        record = np.empty((int(self.bloom_at[-1]), 4), np.int32)
        any_known = bool((self.state == KNOWN).any())
        paths = np.zeros((threads, vertices + 1), np.int32)
        ends = np.empty((threads, vertices + 1), np.int32)
        places = np.empty((threads, vertices + 1), np.int64)
        _build(
            rows.begin, rows.length, rows.neighbour, rows.edge, self.state, paths, ends, places, np.zeros(1, np.int64),
            self.entry_at, self.bloom_at, self.first.copy(), blooms, twins, wedge, record, any_known,
        )  # fmt: skip
        return Index(self.first, blooms, twins, wedge, record)

    def records(self) -> IntArray:
        """[edges, 4] the record of each edge."""
        edges = np.empty((len(self.count), 4), np.int32)
        edges[:, COUNT], edges[:, BUCKET] = self.count, self.state
        return edges


def _starts(sizes: NDArray[np.integer]) -> LongArray:
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def _heap() -> tuple[LongArray, LongArray]:
    """The first edge of each bucket of an empty heap, and scratch memory for the least key of each."""
    return np.full(KEYS, -1, np.int64), np.zeros(KEYS, np.int64)
