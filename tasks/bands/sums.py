"""Sums over all workers: each lowers the counts of some edges, and all of them apply the sums.

Worker w adds up the amounts for the w-th range of edges, and sends the sums to all workers: two exchanges of packets.
In the first exchange each worker also tells the weighted sum of all amounts that it packed; see
`kernels.filters.Changes`. After the second one each worker compares the weighted sum of all amounts that it applied
with the sum of the weighted sums that the workers told. The comparison detects a packet that was changed on its way, in
either exchange, and a worker that adds up wrongly. GPUs that read each other's memory send plain arrays of amounts in
place of packets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import cast

import numpy as np

from ...kernels import on_host
from ...kernels.filters import AMOUNTS, Changes, PlainChanges
from ..errors import InternalError
from ..shards.carriers.carrier import Carrier, Words
from ..shards.carriers.gpu_memory import GpuMemoryCarrier

PART_EDGES = 2**26
"""Counts that are added up at a time. A GPU keeps two copies of them for other GPUs to read, 4 bytes each."""
_EMPTY: Words = np.empty(0, np.uint32)


class WorkerSums:
    """Adds up changes of counts over all workers. Mutable: it counts the exchanges and bytes."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self.exchanges = 0
        """Sums so far."""
        self.bytes = 0
        """Bytes that this worker has received."""
        self.messages = 0
        """Number of lowered counts that all workers sent to be added up. The same on all workers."""

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

        Raises InternalError unless each amount that a worker packed arrives at its edge, and the errors of
        `Carrier.exchange`.
        """
        edges = len(changes.count)
        parts = max(1, -(-edges // PART_EDGES))
        cuts = np.linspace(0, edges, parts * self.workers + 1).astype(np.int64).tolist()
        self.exchanges += 1
        found: list[list[int]] = [[] for _ in range(self.workers)]
        for part in range(parts):
            own = cuts[part * self.workers : (part + 1) * self.workers + 1]
            for facts, told in zip(found, self._add_part(changes, own, () if part else values), strict=True):
                facts += told
        return found

    def _add_part(self, changes: Changes, cuts: Sequence[int], values: Sequence[int]) -> list[list[int]]:
        """As `add`, for the edges from cuts[0] to cuts[-1]. Worker w adds up edges cuts[w] to cuts[w + 1]."""
        first, stop = cuts[self.rank : self.rank + 2]
        packed = [changes.pack(a, b) for a, b in pairwise(cuts)]
        sent = sum(weighted for _, weighted in packed) % 2**64
        told = sum(int(words[AMOUNTS]) for words, _ in packed)
        packets = self._carrier.exchange(_words([*values, sent, told]), [words for words, _ in packed])
        facts = [packet.common.view(np.uint64).tolist() for packet in packets]
        self._count(packet.own for packet in packets)
        for sender, packet in enumerate(packets):
            _take(changes.collect, packet.own, first, sender)
        received = self._to_all(changes.pack(first, stop)[0])
        self._count(received)
        arrived = sum(_take(changes.apply, received[w], cuts[w], w) for w in range(self.workers))
        self.messages += sum(own.pop() for own in facts)
        _compare(sum(own.pop() for own in facts), arrived)
        return facts

    def _to_all(self, words: Words) -> list[Words]:
        """[workers] the words that each worker sends to all. Only `own` words may be in GPU memory."""
        if on_host(words):
            return [packet.common for packet in self._carrier.exchange(words, [_EMPTY] * self.workers)]
        return [packet.own for packet in self._carrier.exchange(_EMPTY, [words] * self.workers)]

    def _count(self, received: Iterable[Words]) -> None:
        self.bytes += sum(words.nbytes for w, words in enumerate(received) if w != self.rank)

    def seconds(self) -> float:
        """The time in seconds that a small sum takes: the longest over all workers, so the same on each. `exchanges`
        and `bytes` do not include these sums.
        """
        times = []
        for _ in range(3):
            started = time.perf_counter()
            self.facts([])
            self.facts([])
            times.append(time.perf_counter() - started)
        return max(own[0] for own in self.facts([int(1e9 * min(times))])) / 1e9


class DirectSums(WorkerSums):
    """Sums of GPUs that read each other's memory. They read plain arrays of amounts, which takes less time than making
    packets.
    """

    def _add_part(self, changes: Changes, cuts: Sequence[int], values: Sequence[int]) -> list[list[int]]:
        plain = cast("PlainChanges", changes)
        sent = plain.weigh(cuts[0], cuts[-1])
        ranges = [plain.amounts[a:b].view(np.uint32) for a, b in pairwise(cuts)]
        packets = self._carrier.exchange(_words([*values, sent]), ranges)
        facts = [packet.common.view(np.uint64).tolist() for packet in packets]
        self._count(packet.own for packet in packets)
        total = packets[0].own.view(np.int32).copy()
        for packet in packets[1:]:
            total += packet.own.view(np.int32)
        packets = self._carrier.exchange(_EMPTY, [total.view(np.uint32)] * self.workers)
        self._count(packet.own for packet in packets)
        arrived = plain.subtract([(a, packet.own.view(np.int32)) for a, packet in zip(cuts, packets, strict=False)])
        plain.amounts[cuts[0] : cuts[-1]] = 0
        _compare(sum(own.pop() for own in facts), arrived)
        return facts


def sums_over(carrier: Carrier) -> WorkerSums:
    """Sums over the workers that a carrier connects, by the kind of carrier."""
    return DirectSums(carrier) if isinstance(carrier, GpuMemoryCarrier) else WorkerSums(carrier)


def _compare(sent: int, arrived: int) -> None:
    """Raises InternalError unless these weighted sums are the same, modulo 2^64."""
    if (sent - arrived) % 2**64:
        raise InternalError(
            f"lowered counts with weighted sum {sent % 2**64:x} were sent, and {arrived % 2**64:x} arrived"
        )


def _take(call: Callable[[Words, int], int], words: Words, first: int, sender: int) -> int:
    """Call `Changes.collect` or `Changes.apply`, and return its result. Raises InternalError for words that are not a
    packet.
    """
    try:
        return call(words, first)
    except ValueError as error:
        raise InternalError(f"from worker {sender} came no packet of lowered counts: {error}") from error


def _words(values: Sequence[int]) -> Words:
    return np.array(values, np.uint64).view(np.uint32)
