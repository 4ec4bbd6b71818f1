"""Removal of all edges with fewer triangles than a threshold, where each of several workers removes a share of a pass.

Each worker has all edges. In a pass a worker computes by how much the removal of its share lowers each count. The sums
over all workers are then subtracted from the counts, so all workers have the same counts. Methods with the same
arguments have the same results on all workers, for any number of threads.

Workers send each other the amounts by which counts are lowered. On a worker, amounts are negative entries of an array
over all edges. A packet of few amounts has a list of edges, a packet of many amounts one bit for each edge of a range.
Then the amounts follow, in one byte each if all are below 256.

Loops index with unsigned numbers: Numba tests whether each signed index is negative, which takes up to half the time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...filters import EDGE_WORK, HEADER, LEAST_BINS, Frontier, Packet, Removed, Survey, Words
from ...graph import GONE, Adjacency, IntArray, LongArray, Topology
from ...runtime.cache import cached_njit
from ..adjacency import adjacency, compact
from ..arrays.indexing import count_bits, join, nonzero, number_marked, take
from ..arrays.intrinsics import lowest_bit, mixed
from .cascade import REMOVED, Cascade, set_to
from .live_edges import Live, LiveRows, below, not_removed

DENSE = 16
"""Lowered counts are sent as bits for all edges if at least one edge in this many is expected to be lowered."""


@cached_njit(inline="always")
def _weight(edge):
    return mixed(edge) | np.uint64(1)


@cached_njit(parallel=True)
def _write_bits(delta, first, cuts, words, amounts, found, most, sums):
    """Write a bit for each lowered count of a range to `words`, and the amounts to `amounts`, and clear `delta`.

    The range begins at edge `first`. Its parts begin at multiples of 64. The amounts of a part are at the beginning of
    the part; `found` is where they end, `most` the largest amount, and `sums` the weighted sum.
    """
    for part in prange(found.size):
        to = np.uint64(cuts[part])
        least = np.int32(0)
        total = np.uint64(0)
        for at in range(cuts[part] >> 6, (cuts[part + 1] + 63) >> 6):
            start = np.uint64(64 * at)
            word = np.uint64(0)
            for bit in range(np.uint64(min(64, cuts[part + 1] - 64 * at))):
                word |= np.uint64(delta[start + bit] != 0) << bit
            words[at] = word
            while word:
                i = start + np.uint64(lowest_bit(word))
                word &= word - np.uint64(1)
                d = delta[i]
                delta[i] = 0
                amounts[to] = -d
                to += np.uint64(1)
                least = min(least, d)
                total += np.uint64(-d) * _weight(np.uint64(first) + i)
        found[part] = to
        most[part] = -least
        sums[part] = total


@cached_njit(parallel=True)
def _write_list(delta, edges, cuts, amounts, most, sums):
    """Write the amounts of distinct edges, and clear the entries of these edges in `delta`."""
    for part in prange(sums.size):
        least = np.int32(0)
        total = np.uint64(0)
        for i in range(np.uint64(cuts[part]), np.uint64(cuts[part + 1])):
            e = np.uint64(edges[i])
            d = delta[e]
            delta[e] = 0
            amounts[i] = -d
            least = min(least, d)
            total += np.uint64(-d) * _weight(e)
        most[part] = -least
        sums[part] = total


@cached_njit(parallel=True)
def _lower_bits(words, amounts, first, cuts, starts, values, threshold, weak, found, sums):
    """Lower the values of edges whose bit is set, and list those that fall below the threshold."""
    for part in prange(starts.size):
        at = np.uint64(starts[part])
        to = at
        total = np.uint64(0)
        for w in range(cuts[part], cuts[part + 1]):
            word = words[w]
            while word:
                e = np.uint64(first + 64 * w) + np.uint64(lowest_bit(word))
                word &= word - np.uint64(1)
                amount = np.int32(amounts[at])
                at += np.uint64(1)
                before = values[e]
                after = before - amount
                values[e] = after
                weak[to] = e
                to += np.uint64((before >= threshold) & (after < threshold))
                total += np.uint64(amount) * _weight(e)
        found[part] = to
        sums[part] = total


@cached_njit(parallel=True)
def _lower_list(edges, amounts, cuts, values, threshold, weak, found, sums):
    for part in prange(found.size):
        to = np.uint64(cuts[part])
        total = np.uint64(0)
        for i in range(np.uint64(cuts[part]), np.uint64(cuts[part + 1])):
            e = np.uint64(edges[i])
            amount = np.int32(amounts[i])
            before = values[e]
            after = before - amount
            values[e] = after
            weak[to] = e
            to += np.uint64((before >= threshold) & (after < threshold))
            total += np.uint64(amount) * _weight(e)
        found[part] = to
        sums[part] = total


class Changes:
    """See `kernels.changes`."""

    def __init__(self, count: IntArray, amounts: IntArray) -> None:
        self.count = count
        self.delta = -amounts
        """[edges] by how much each count is lowered so far, as a number ≤ 0."""
        self._dense = True
        self._lowered = amounts[:0]
        """The edges whose entries of `delta` are not 0, ascending, unless `_dense`."""
        self._touched: list[IntArray] = []
        self._limit = 0
        self._weak: list[IntArray] = []
        """Edges whose counts fell below `_limit`."""

    def pack(self, first: int, stop: int) -> tuple[Words, int]:
        """See `kernels.filters.Changes`."""
        touched, self._touched = self._touched, []
        if self._dense:
            return pack_range(self.delta, first, stop)
        own = self._lowered[slice(*np.searchsorted(self._lowered, [first, stop]))]
        return pack_list(self.delta, join(touched) if touched else own)

    def collect(self, words: Words, first: int) -> int:
        """See `kernels.filters.Changes`."""
        touched, total = lower(words, first, self.delta, 0)
        self._touched.append(touched)
        return total

    def apply(self, words: Words, first: int) -> int:
        """See `kernels.filters.Changes`."""
        weak, total = lower(words, first, self.count, self._limit)
        self._weak.append(weak)
        return total


def pack_range(delta: IntArray, first: int, stop: int) -> tuple[Words, int]:
    """The packet of lowered counts of edges `first` … `stop` - 1, and the weighted sum; see `kernels.filters.Changes`.

    Clears these entries of `delta` [edges].
    """
    own = delta[first:stop]
    cuts = even_cuts(-(-len(own) // 64)) * 64
    cuts[-1] = len(own)
    found, most = np.zeros((2, len(cuts) - 1), np.int64)
    bits, amounts = np.zeros(-(-len(own) // 64), np.uint64), np.empty(len(own), np.int32)
    sums = np.zeros(len(found), np.uint64)
    _write_bits(own, first, cuts, bits, amounts, found, most, sums)
    kind = _kind(int(most.max(initial=0)))
    parts = [amounts[a:b].astype(kind) for a, b in zip(cuts, found, strict=False)]
    return _joined(bits.view(np.uint32), np.concatenate(parts), dense=True), _total(sums)


def pack_list(delta: IntArray, edges: IntArray) -> tuple[Words, int]:
    """The packet of lowered counts of distinct `edges`, and their weighted sum. Clears their entries of `delta`."""
    cuts, amounts = even_cuts(len(edges)), np.empty(len(edges), np.int32)
    most, sums = np.zeros(len(cuts) - 1, np.int64), np.zeros(len(cuts) - 1, np.uint64)
    _write_list(delta, edges, cuts, amounts, most, sums)
    own = amounts.astype(_kind(int(most.max(initial=0))))
    return _joined(edges.view(np.uint32), own, dense=False), _total(sums)


def _total(sums: NDArray[np.uint64]) -> int:
    return int(sums.sum(dtype=np.uint64))


def _kind(most: int) -> Any:
    return np.uint8 if most < 256 else np.int32


def _joined(places: Words, amounts: NDArray[Any], dense: bool) -> Words:
    packed = np.zeros(HEADER + len(places) + -(-amounts.nbytes // 4), np.uint32)
    packed[:HEADER] = dense, amounts.itemsize, len(amounts), len(places)
    packed[HEADER : HEADER + len(places)] = places
    packed[HEADER + len(places) :].view(np.uint8)[: amounts.nbytes] = amounts.view(np.uint8)
    return packed


def lower(packed: Words, first: int, values: IntArray, threshold: int) -> tuple[IntArray, int]:
    """Lower `values` [edges] by the amounts of a packet. If the packet is of a range, the range begins at edge `first`.

    Returns the edges whose values fall below the threshold, and the weighted sum of the amounts. Raises ValueError for
    words that are no packet of these edges.
    """
    dense, width, size, places, words = Packet.of(owned(packed), first, len(values))
    amounts = words.view(np.uint8 if width == 1 else np.int32)[:size]
    weak, limit = np.empty(size, np.int32), np.int32(threshold)
    if dense:
        bits = places.view(np.uint64)
        cuts = even_cuts(len(bits))
        counted = np.zeros(len(cuts) - 1, np.int64)
        count_bits(bits, cuts, counted)
        if counted.sum() != size:
            raise ValueError(f"{counted.sum()} edges are marked in a packet of {size} lowered counts")
        starts, found, sums = np.cumsum(counted) - counted, np.empty_like(counted), np.zeros(len(counted), np.uint64)
        _lower_bits(bits, amounts, first, cuts, starts, values, limit, weak, found, sums)
    else:
        starts = even_cuts(size)
        found, sums = np.empty(len(starts) - 1, np.int64), np.zeros(len(starts) - 1, np.uint64)
        _lower_list(places.view(np.int32), amounts, starts, values, limit, weak, found, sums)
    runs = [weak[a:b] for a, b in zip(starts, found, strict=False)]
    return join(runs), _total(sums)


def owned(array: NDArray[Any]) -> NDArray[Any]:
    """The array, copied if it is read-only, since Numba would compile kernels again for read-only arrays."""
    return array if array.flags.writeable else array.copy()


def even_cuts(size: int) -> LongArray:
    """Where the parts of `size` elements begin, one for each thread, and where the last one ends."""
    return np.linspace(0, size, get_num_threads() + 1).astype(np.int64)


RENUMBER_AT = 0.7
"""Edges are numbered anew when less than this share of them is left."""


@cached_njit(parallel=True)
def _survey(count, cuts, histogram, sums, digests, least):
    """For each thread's part of the edges that are left: the sum, the digest and the least of their counts, and how
    often each count occurs.
    """
    for part in prange(sums.size):
        total = np.int64(0)
        digest = np.uint64(0)
        smallest = np.int32(2147483647)
        own = histogram[part]
        for e in range(np.uint64(cuts[part]), np.uint64(cuts[part + 1])):
            c = count[e]
            if c >= 0:
                total += c
                digest += mixed((e << np.uint64(32)) | np.uint64(c))
                smallest = min(smallest, c)
                if c < own.size:
                    own[c] += 1
        sums[part] = total
        digests[part] = digest
        least[part] = smallest


class Filtering(Changes):
    """See `kernels.filtering`. Mutable, not thread-safe."""

    def __init__(self, topology: Topology, count: IntArray, rows: Adjacency | None = None) -> None:
        super().__init__(count, np.zeros(topology.edges, np.int32))
        self.topology, self.left = topology, topology.edges
        self._state = np.zeros(topology.edges, np.int8)
        self._destroyed = np.zeros(topology.edges, np.int32)
        """[edges] triangles that the removal of each edge destroyed, on the worker that removed it."""
        rows = adjacency(topology) if rows is None else rows
        self._rows = LiveRows(topology, rows, self._state, self.left)
        self._cascade = Cascade(topology, rows)
        self._cascade.firsts = self._destroyed
        self._live = Live(topology.edges)
        self._frontier: IntArray = np.zeros(0, np.int32)
        self._work: LongArray = np.zeros(0, np.int64)
        """[frontier] prefix sums of the work of its edges."""

    def survey(self, threshold: int) -> Survey:
        """See `kernels.filters.Filtering`."""
        limit = max(LEAST_BINS, 2 * threshold)
        while True:
            parts = get_num_threads()
            histogram, sums = np.zeros((parts, limit), np.int64), np.zeros(parts, np.int64)
            digests, least = np.zeros(parts, np.uint64), np.zeros(parts, np.int32)
            _survey(self.count, even_cuts(self.topology.edges), histogram, sums, digests, least)
            if least.min() < limit // 2 or not self.left:
                break
            limit = 4 * int(least.min())
        return Survey.of(histogram.sum(0), int(least.min()), int(sums.sum()), int(digests.sum(dtype=np.uint64)))

    def find(self, threshold: int) -> Frontier:
        """See `kernels.filters.Filtering`."""
        self._limit = threshold
        return self._enter(below(self._live, self.count, threshold)[0])

    def _enter(self, frontier: IntArray) -> Frontier:
        """Make these edges the frontier, in the order in which `remove_share` divides it."""
        self._frontier = self._cascade.enter(np.sort(frontier), self._state)
        self._work = np.cumsum(take(self.count, self._frontier) + np.int64(EDGE_WORK))
        edges = len(frontier)
        return Frontier(edges, int(self._work[-1]) - EDGE_WORK * edges if edges else 0)

    def remove_alone(self, enough: int) -> tuple[Removed, Frontier]:
        """See `kernels.filters.Filtering`."""
        frontier, limit = self._frontier, np.array([self._limit], np.int32)
        self._cascade.round(self._rows.rows, self.count, self._state, frontier, limit)
        self._remove(frontier)
        triangles = int(take(self._destroyed, frontier).sum(dtype=np.int64))
        return Removed(len(frontier), triangles, 1), self._enter(self._cascade.next_frontier())

    def remove_share(self, worker: int, workers: int) -> int:
        """See `kernels.filters.Filtering`."""
        edges, work = len(self._frontier), int(self._work[-1])
        cuts = np.searchsorted(self._work, np.linspace(0, work, workers + 1)[1:-1])
        share = self._frontier[slice(*[0, *cuts.tolist(), edges][worker : worker + 2])]
        self._lowered = self._lower(share)
        self._dense = (work - EDGE_WORK * edges) * DENSE > self.topology.edges
        if not self._dense:
            self._lowered.sort()
        self._weak = []
        return int(take(self._destroyed, share).sum(dtype=np.int64))

    def _lower(self, share: IntArray) -> IntArray:
        """Lower `delta` of the edges that lose triangles by the removal of `share`. Returns these edges."""
        cascade, none = self._cascade, share[:0]
        cascade.begin()
        done = False
        while not done:
            done = cascade.list_losses(self._rows.rows, self._state, share, None)
            cascade.lower(self.delta, self._state, _ZERO, None, none)
        return cascade.next_frontier()

    def end_pass(self) -> Frontier:
        """See `kernels.filters.Filtering`."""
        set_to(self.count, self._frontier, GONE)
        set_to(self._state, self._frontier, REMOVED)
        self._remove(self._frontier)
        return self._enter(join(self._weak))

    def _remove(self, frontier: IntArray) -> None:
        self.left -= len(frontier)
        self._rows.remove(frontier, self.left)

    def restore(self, count: IntArray, left: int) -> None:
        """See `kernels.filters.Filtering`."""
        self.count[:] = count
        self._state[:] = np.where(count < 0, np.int8(REMOVED), np.int8(0))
        self.delta[:] = 0
        self._touched = []
        self.left, self._live = left, Live(self.topology.edges)
        rows = compact(adjacency(self.topology), not_removed(self._state))
        self._rows = LiveRows(self.topology, rows, self._state, left)

    @property
    def wasteful(self) -> bool:
        """See `kernels.filters.Filtering`."""
        return 0 < self.left < RENUMBER_AT * self.topology.edges

    def smaller(self) -> tuple[IntArray, Filtering]:
        """See `kernels.filters.Filtering`."""
        remain = not_removed(self._state)
        kept, topology = nonzero(remain), self.topology
        rows = compact(self._rows.rows, remain)
        rows = replace(rows, edge=take(number_marked(remain), rows.edge))
        part = Topology(take(topology.low, kept), take(topology.high, kept), topology.vertices)
        return kept, Filtering(part, take(self.count, kept), rows)


_ZERO = np.zeros(1, np.int32)
