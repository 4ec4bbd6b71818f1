"""By how much the counts of edges are lowered, as words that workers send each other.

Lowered counts are negative entries of an array over all edges. Few of them are packed as a list of edges, many as one
bit for each edge of a range; then follows the amount of each, in one byte if all amounts are below 256.

Loops index with unsigned numbers: Numba tests whether each signed index is negative, which takes up to half the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ...filters import HEADER, Packet, Words
from ...graph import IntArray, LongArray
from ...runtime.cache import cached_njit
from ..arrays.bits import lowest_bit
from ..arrays.gather import count_bits, join
from ..arrays.mix import mixed

DENSE = 16
"""Lowered counts are sent as bits for all edges if at least one in so many is expected to be lowered."""


@cached_njit(inline="always")
def _weight(edge):
    return mixed(edge) | np.uint64(1)


@cached_njit(parallel=True)
def _write_bits(delta, first, cuts, words, amounts, found, most, sums):
    """A bit for each lowered count of a range, and the amounts at the beginning of each part; clears `delta`.

    Parts begin at multiples of 64. The range begins at edge `first`.
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
    """The amounts of distinct edges; clears their entries of `delta`."""
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
        """[edges] what is lowered so far, as numbers below 0."""
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
    """The lowered counts of edges `first` … `stop` - 1, and their weighted sum (see `kernels.filters.Changes`).

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
    """The lowered counts of distinct `edges`, and their weighted sum; clears their entries of `delta`."""
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
    """Lower `values` [edges] by packed amounts; a packed range begins at edge `first`.

    Gives the edges whose values fall below the threshold, and the weighted sum of the amounts. Raises ValueError for
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
    """The array, copied if it cannot be written to: kernels would be compiled again for such arrays."""
    return array if array.flags.writeable else array.copy()


def even_cuts(size: int) -> LongArray:
    """Where the parts of `size` elements begin, one for each thread, and where the last one ends."""
    return np.linspace(0, size, get_num_threads() + 1).astype(np.int64)
