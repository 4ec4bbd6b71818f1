"""Sums over all workers: each lowers the counts of some edges, and all of them apply the sums.

Worker w adds up what concerns the w-th range of edges, and sends the sums to all: two exchanges of packets.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import pairwise
from zlib import crc32

import numpy as np

from ...kernels.filters import AMOUNTS, Changes
from ..errors import InternalError
from ..shards.carriers.carrier import Carrier, Words


class Sums:
    """Adds up over all workers. Mutable: it counts the exchanges and bytes."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self.exchanges = 0
        """Sums so far."""
        self.bytes = 0
        """Bytes that this worker has received."""
        self.messages = 0
        """Lowered counts that the workers sent to those who add them up: the same on all workers."""

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

    def add(self, changes: Changes, values: Sequence[int] = ()) -> list[list[int]]:
        """Lower the counts of `changes` by the sums over all workers. Returns the `values` of each worker.

        Raises InternalError unless all packets arrive as they were sent, with all amounts; as `Carrier.exchange`.
        """
        cuts = np.linspace(0, len(changes.count), self.workers + 1).astype(np.int64).tolist()
        first, stop = cuts[self.rank : self.rank + 2]
        self.exchanges += 1
        packed = [changes.pack(a, b) for a, b in pairwise(cuts)]
        sent = sum(amount for _, amount in packed)
        told = sum(int(words[AMOUNTS]) for words, _ in packed)
        packets = self._carrier.exchange(_words([*values, sent, told]), [sealed(words) for words, _ in packed])
        facts = [packet.common.view(np.uint64).tolist() for packet in packets]
        self._count(packet.own for packet in packets)
        for sender, packet in enumerate(packets):
            changes.collect(_opened(packet.own, sender), first)
        packets = self._carrier.exchange(sealed(changes.pack(first, stop)[0]), [_EMPTY] * self.workers)
        self._count(packet.common for packet in packets)
        own_ranges = enumerate(zip(packets, cuts, strict=False))
        arrived = sum(changes.apply(_opened(packet.common, sender), a) for sender, (packet, a) in own_ranges)
        self.messages += sum(own.pop() for own in facts)
        sent = sum(own.pop() for own in facts)
        if arrived != sent:
            raise InternalError(f"the workers lowered counts by {sent:,}, and {arrived:,} arrived")
        return facts

    def _count(self, received: Iterable[Words]) -> None:
        self.bytes += sum(words.nbytes for w, words in enumerate(received) if w != self.rank)

    def seconds(self) -> float:
        """The time of a small sum, the same on all workers: the longest of any. It is not counted."""
        times = []
        for _ in range(3):
            started = time.perf_counter()
            self.facts([])
            self.facts([])
            times.append(time.perf_counter() - started)
        return max(own[0] for own in self.facts([int(1e9 * min(times))])) / 1e9


def sealed(words: Words) -> Words:
    """The words of a packet, and their CRC-32: sums do not tell an amount that reaches another edge than its own."""
    return np.append(words, np.uint32(crc32(words.data)))


def _opened(words: Words, sender: int) -> Words:
    """The words of a packet without their checksum. Raises InternalError if they were changed on their way."""
    if not len(words) or crc32(words[:-1].data) != words[-1]:
        raise InternalError(f"a packet of lowered counts from worker {sender} was changed on its way")
    return words[:-1]


_EMPTY: Words = np.empty(0, np.uint32)


def _words(values: Sequence[int]) -> Words:
    return np.array(values, np.uint64).view(np.uint32)
