"""The carrier between groups with GPUs of one machine: content for one group stays in GPU memory until it is read.

A second carrier, the base, sends content in host memory, and the location of content in GPU memory. A group copies its
content for the others into one of two areas of its outbox, in turn. A receiver reads the content there, over NVLink or
PCIe. Before an exchange each group waits for its own kernels. So once all groups have made the next exchange, nobody
reads the area any more, and the group may write to it again.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from .... import kernels
from ....kernels.gpu_shards import Address
from ....kernels.runtime.device import synchronize
from ...device import place_like
from ...errors import ClusterLost
from .carrier import EMPTY, Carrier, GroupPacket, Words, all_gather, lost

if TYPE_CHECKING:
    from ....kernels.gpu.shards.shared_memory import OpenOutbox, Outbox

_ALIGNED = 4
"""Content starts at a multiple of this number of words."""
_PIECE_WORDS = 2**25
"""Words that `send_all` sends at a time."""
_START, _WORDS = 0, 1
"""Indices in a message that says where content lies: its start, in units of _ALIGNED words, and its length in words."""


@contextmanager
def between_gpus(carrier: Carrier, direct: bool = True) -> Iterator[Carrier]:
    """Context with a carrier over `carrier` that also takes `own` words in GPU memory.

    The packets that it returns have their `own` words in GPU memory if `direct` is true and each group reaches the GPU
    memory of all others, and otherwise in host memory. All groups must enter and leave the context at the same time,
    each with its GPU current.
    """
    if carrier.groups == 1:
        yield carrier
        return
    with ExitStack() as stack:
        found = GpuMemoryCarrier.open(carrier) if direct else None
        if found is None:
            yield _HostCarrier(carrier)
            return
        stack.callback(found.close)
        yield found
        found.finish()


def send_all(carrier: Carrier, own: Any, receivers: Container[int]) -> list[Any]:
    """[groups] on `receivers` the words of all groups; elsewhere only this group's own words, the other arrays are
    empty.

    `own`, words of one dimension, may be in GPU memory if the carrier is one of `between_gpus`; the words of other
    groups are then in GPU memory as well. All groups call this with the same receivers. Raises as `Carrier.exchange`.
    """
    groups, rank = carrier.groups, carrier.rank
    lengths = [int.from_bytes(text, "little") for text in all_gather(carrier, len(own).to_bytes(8, "little"))]
    sizes = lengths if rank in receivers else [0] * groups
    found = [own if q == rank else np.empty_like(own, shape=(size,)) for q, size in enumerate(sizes)]
    for at in range(0, max(lengths), _PIECE_WORDS):
        piece = own[at : at + _PIECE_WORDS]
        goes_to = [q in receivers and q != rank and len(piece) > 0 for q in range(groups)]
        packets = carrier.exchange(EMPTY, [piece if goes else EMPTY for goes in goes_to])
        for q, packet in enumerate(packets):
            if q != rank:
                found[q][at : at + len(packet.own)] = place_like(own, packet.own)
    return found


class _HostCarrier:
    """Sends words in GPU memory through host memory."""

    def __init__(self, base: Carrier) -> None:
        self._base = base
        self.rank, self.groups, self.name = base.rank, base.groups, base.name

    def exchange(self, common: Words, own: Sequence[Any]) -> list[GroupPacket]:
        moved = {id(words): kernels.to_host(words) for words in own}  # words that several groups get are copied once
        return self._base.exchange(common, [moved[id(words)] for words in own])

    def abandon(self) -> None:
        self._base.abandon()

    def close(self) -> None:
        """Nothing to close: the other carrier belongs to the caller."""


class GpuMemoryCarrier:
    """See the module. `open` makes it; packets received are valid until the next exchange."""

    def __init__(self, base: Carrier, outbox: Outbox, others: list[OpenOutbox | None]) -> None:
        """`others` [groups] is None for this group."""
        self._base, self._outbox, self._others = base, outbox, others
        self.rank, self.groups, self.name = base.rank, base.groups, base.name
        self._exchange = 0
        self._replaced: list[tuple[int, Outbox]] = []
        """Smaller outboxes, with the exchange in which a larger one took their place."""

    @classmethod
    def open(cls, base: Carrier) -> GpuMemoryCarrier | None:
        """The carrier over `base`; None in all groups if one cannot reach the memory of another."""
        from ....kernels.gpu.shards.shared_memory import Outbox

        outbox = Outbox(0)
        found = cls(base, outbox, [None] * base.groups)
        why = ""
        try:
            for rank, text in enumerate(all_gather(base, outbox.address.encode())):
                found._open(rank, text, outbox.words)
        except ConnectionError as error:
            why = str(error)
        if any(all_gather(base, why.encode())):
            found.close()
            return None
        return found

    def exchange(self, common: Words, own: Sequence[Any]) -> list[GroupPacket]:
        """See `Carrier.exchange`. `own[g]` may be words in host or in GPU memory."""
        self._exchange += 1
        turn = self._exchange % 2
        moved, places = self._place(turn, own)
        synchronize()  # also for kernels that read words of the exchange before
        packets = self._base.exchange(np.concatenate([_head(moved), common]), places)
        # Memory must not be released while others have it open: they close it in the exchange that replaces it.
        self._replaced = [(exchange, outbox) for exchange, outbox in self._replaced if exchange == self._exchange]
        found = []
        for rank, packet in enumerate(packets):
            length, size = map(int, packet.common[:2])
            text, rest = np.split(packet.common[2:], [-(-length // 4)])
            if length and rank != self.rank:
                self._reopen(rank, text.tobytes()[:length], size)
            found.append(GroupPacket(rest, self._read(rank, turn, packet.own)))
        return found

    def finish(self) -> None:
        """Wait until all groups have read what was sent, and close the memory of the others once they have.

        A group that is lost meanwhile does not matter: nothing more comes from it.
        """
        nothing = [EMPTY] * self.groups
        synchronize()
        with suppress(ClusterLost):
            self._base.exchange(EMPTY, nothing)
            self.close()
            self._base.exchange(EMPTY, nothing)

    def abandon(self) -> None:
        self._base.abandon()

    def close(self) -> None:
        """Close the memory of the others. May be called again."""
        for other in filter(None, self._others):
            other.close()
        self._others = [None] * self.groups

    def _place(self, turn: int, own: Sequence[Any]) -> tuple[tuple[bytes, int], list[Words]]:
        """Copy words to the outbox. Returns the address and size of the outbox if it is new, and [groups] the message
        to each receiver: 1 and the location of the words in the outbox, or 0 and the words themselves, if they are in
        host memory.
        """
        starts: dict[int, int] = {}  # words that several groups get are copied once
        needed = 0
        for words in own:
            if not kernels.on_host(words) and id(words) not in starts:
                starts[id(words)] = needed
                needed += -(-len(words) // _ALIGNED)
        moved = b"", 0
        if _ALIGNED * needed > self._outbox.words:
            from ....kernels.gpu.shards.shared_memory import Outbox

            self._replaced.append((self._exchange, self._outbox))
            self._outbox = Outbox(_ALIGNED * (needed + needed // 4))
            moved = self._outbox.address.encode(), self._outbox.words // _ALIGNED
        copied: dict[int, Words] = {}
        places = []
        for words in own:
            start = starts.get(id(words))
            if start is None:
                places.append(np.concatenate([np.zeros(1, np.uint32), words]) if len(words) else EMPTY)
                continue
            if id(words) not in copied:
                self._outbox.view(turn, _ALIGNED * start, len(words))[:] = words
                copied[id(words)] = np.array([1, start, len(words)], np.uint32)
            places.append(copied[id(words)])
        return moved, places

    def _read(self, rank: int, turn: int, message: Words) -> Any:
        if not len(message) or not message[0]:
            return message[1:]
        start, count = int(message[1 + _START]), int(message[1 + _WORDS])
        outbox = self._others[rank] if rank != self.rank else self._outbox
        assert outbox is not None
        return outbox.view(turn, _ALIGNED * start, count)

    def _reopen(self, rank: int, text: bytes, size: int) -> None:
        """Raises ClusterLost if the new memory cannot be reached."""
        other = self._others[rank]
        assert other is not None
        other.close()
        try:
            self._open(rank, text, _ALIGNED * size)
        except ConnectionError as error:
            raise lost(rank, f"has GPU memory that cannot be reached: {error}") from error

    def _open(self, rank: int, text: bytes, words: int) -> None:
        from ....kernels.gpu.shards.shared_memory import OpenOutbox

        if rank != self.rank:
            self._others[rank] = OpenOutbox(Address.decode(text), words)


def _head(moved: tuple[bytes, int]) -> Words:
    """The length of an address in bytes and the size of its outbox, then the address; zeros if it has not moved."""
    text, size = moved
    padded = text + bytes(-len(text) % 4)
    return np.concatenate([np.array([len(text), size], np.uint32), np.frombuffer(padded, np.uint32)])
