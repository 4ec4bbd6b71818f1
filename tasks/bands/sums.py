"""Sums over all workers: each lowers the counts of some edges, and all of them get the sums.

Worker w adds up what concerns the w-th range of edges, and sends the sums to all: two exchanges of packets.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from ... import kernels
from ...kernels.cpu.peeling.changes import lower, pack_list, pack_range
from ...kernels.graph import IntArray
from ..shards.carriers.carrier import Carrier, Words

DENSE = 16
"""Lowered counts are sent as bits for all edges if at least one in so many is expected to be lowered."""


class Sums:
    """Adds up over all workers. Mutable: it counts the exchanges and bytes."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self.exchanges = 0
        """Sums so far."""
        self.bytes = 0
        """Bytes that this worker has received."""

    @property
    def rank(self) -> int:
        """Number of this worker."""
        return self._carrier.rank

    @property
    def workers(self) -> int:
        """Number of workers."""
        return self._carrier.groups

    def facts(self, values: Sequence[int]) -> list[list[int]]:
        """[workers] the values of each worker, each below 2^64."""
        packets = self._carrier.exchange(_words(values), [_EMPTY] * self.workers)
        return [packet.common.view(np.uint64).tolist() for packet in packets]

    def add(
        self, delta: IntArray, lowered: IntArray, dense: bool, values: Sequence[int]
    ) -> tuple[list[tuple[Words, int]], list[list[int]]]:
        """The sums of `delta` [edges] over all workers, which clears it, and the `values` of each worker.

        `lowered` are the edges whose entries are not 0. All workers pass the same `dense`: whether these are many.
        Gives for each range of edges the packed sums and its first edge. They are valid until the next call. Raises
        InternalError unless all amounts arrive.
        """
        cuts = np.linspace(0, len(delta), self.workers + 1).astype(np.int64)
        firsts = cuts[:-1].tolist()
        first, stop = cuts[self.rank : self.rank + 2].tolist()
        self.exchanges += 1
        if dense:
            packed = [pack_range(delta, a, b) for a, b in pairwise(cuts.tolist())]
        else:
            lowered.sort()
            packed = [pack_list(delta, own) for own in np.split(lowered, np.searchsorted(lowered, cuts[1:-1]))]
        sent = sum(amount for _, amount in packed)
        packets = self._carrier.exchange(_words([*values, sent]), [words for words, _ in packed])
        facts = [packet.common.view(np.uint64).tolist() for packet in packets]
        self._count(packet.own for packet in packets)
        touched = [lower(packet.own, first, delta, 0)[0] for packet in packets]
        total, _ = pack_range(delta, first, stop) if dense else pack_list(delta, kernels.join(touched))
        packets = self._carrier.exchange(total, [_EMPTY] * self.workers)
        self._count(packet.common for packet in packets)
        return [(packet.common, a) for packet, a in zip(packets, firsts, strict=True)], facts

    def _count(self, received: Iterable[Words]) -> None:
        self.bytes += sum(words.nbytes for w, words in enumerate(received) if w != self.rank)

    def seconds(self) -> float:
        """The time of a small sum, the same on all workers: the longest of any. The sums are not counted."""
        none, times, before = np.zeros(0, np.int32), [], (self.exchanges, self.bytes)
        for _ in range(3):
            started = time.perf_counter()
            self.add(none, none, False, ())
            times.append(time.perf_counter() - started)
        self.exchanges, self.bytes = before
        return max(own[0] for own in self.facts([int(1e9 * min(times))])) / 1e9


_EMPTY: Words = np.empty(0, np.uint32)


def _words(values: Sequence[int]) -> Words:
    return np.array(values, np.uint64).view(np.uint32)
