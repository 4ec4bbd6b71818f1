"""By how much the counts of edges are lowered, as words that workers send each other.

Lowered counts are negative entries of an array over all edges. Few of them are packed as a list of edges, many as one
bit for each edge of a range; then follows the amount of each, in one byte if all amounts are below 256.
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
from ..arrays.gather import count_bits, join, take
from .cascade import set_to

DENSE = 16
"""Lowered counts are sent as bits for all edges if at least one in so many is expected to be lowered."""


@cached_njit(parallel=True)
def _write(delta, cuts, words, amounts, found, most):
    """A bit for each lowered count, and the amounts at the beginning of each part; clears `delta`.

    Parts begin at multiples of 64.
    """
    for part in prange(found.size):
        to = cuts[part]
        least = np.int32(0)
        for at in range(cuts[part] >> 6, (cuts[part + 1] + 63) >> 6):
            word = np.uint64(0)
            for i in range(64 * at, min(64 * at + 64, cuts[part + 1])):
                d = delta[i]
                if d != 0:
                    word |= np.uint64(1) << np.uint64(i & 63)
                    amounts[to] = -d
                    to += 1
                    delta[i] = 0
                    least = min(least, d)
            words[at] = word
        found[part] = to
        most[part] = -least


@cached_njit(parallel=True)
def _lower_bits(words, amounts, first, cuts, starts, values, threshold, weak, found):
    """Lower the values of edges whose bit is set, and list those that fall below the threshold."""
    for part in prange(starts.size):
        at = starts[part]
        to = at
        for w in range(cuts[part], cuts[part + 1]):
            word = words[w]
            while word:
                e = first + 64 * w + np.int64(lowest_bit(word))
                word &= word - np.uint64(1)
                before = values[e]
                after = before - np.int32(amounts[at])
                at += 1
                values[e] = after
                weak[to] = e
                to += (before >= threshold) & (after < threshold)
        found[part] = to


@cached_njit(parallel=True)
def _lower_list(edges, amounts, cuts, values, threshold, weak, found):
    for part in prange(found.size):
        to = cuts[part]
        for i in range(cuts[part], cuts[part + 1]):
            e = edges[i]
            before = values[e]
            after = before - np.int32(amounts[i])
            values[e] = after
            weak[to] = e
            to += (before >= threshold) & (after < threshold)
        found[part] = to


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
        touched, amount = lower(words, first, self.delta, 0)
        self._touched.append(touched)
        return amount

    def apply(self, words: Words, first: int) -> int:
        """See `kernels.filters.Changes`."""
        weak, amount = lower(words, first, self.count, self._limit)
        self._weak.append(weak)
        return amount


def pack_range(delta: IntArray, first: int, stop: int) -> tuple[Words, int]:
    """The lowered counts of edges `first` … `stop` - 1, and their sum; clears these entries of `delta` [edges]."""
    own = delta[first:stop]
    cuts = even_cuts(-(-len(own) // 64)) * 64
    cuts[-1] = len(own)
    found, most = np.zeros((2, len(cuts) - 1), np.int64)
    bits, amounts = np.zeros(-(-len(own) // 64), np.uint64), np.empty(len(own), np.int32)
    _write(own, cuts, bits, amounts, found, most)
    kind = _kind(int(most.max(initial=0)))
    parts = [amounts[a:b].astype(kind) for a, b in zip(cuts, found, strict=False)]
    amounts = np.concatenate(parts)
    return _joined(bits.view(np.uint32), amounts, dense=True), int(amounts.sum(dtype=np.int64))


def pack_list(delta: IntArray, edges: IntArray) -> tuple[Words, int]:
    """The lowered counts of distinct `edges`, and their sum; clears their entries of `delta`."""
    amounts = -take(delta, edges)
    set_to(delta, edges, 0)
    own = amounts.astype(_kind(int(amounts.max(initial=0))))
    return _joined(edges.view(np.uint32), own, dense=False), int(amounts.sum(dtype=np.int64))


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

    Gives the edges whose values fall below the threshold, and the sum of the amounts. Raises ValueError for words that
    are no packet of these edges.
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
        starts, found = np.cumsum(counted) - counted, np.empty(len(cuts) - 1, np.int64)
        _lower_bits(bits, amounts, first, cuts, starts, values, limit, weak, found)
    else:
        starts = even_cuts(size)
        found = np.empty(len(starts) - 1, np.int64)
        _lower_list(places.view(np.int32), amounts, starts, values, limit, weak, found)
    runs = [weak[a:b] for a, b in zip(starts, found, strict=False)]
    return join(runs), int(amounts.sum(dtype=np.int64))


def owned(array: NDArray[Any]) -> NDArray[Any]:
    """The array, copied if it cannot be written to: kernels would be compiled again for such arrays."""
    return array if array.flags.writeable else array.copy()


def even_cuts(size: int) -> LongArray:
    """Where the parts of `size` elements begin, one for each thread, and where the last one ends."""
    return np.linspace(0, size, get_num_threads() + 1).astype(np.int64)
