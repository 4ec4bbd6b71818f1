"""Carriers exchange packets between groups of shards: the protocol, a carrier between threads, and all-gather of texts.

Other carriers: `shared_memory`, between processes of one host; `pipeline.cluster.worker_carrier`, between
Dask workers.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import ClusterLost, InternalError

Words: TypeAlias = NDArray[np.uint32]
"""[any length] the content of a packet: one dimension, C-contiguous."""


class GroupPacket(NamedTuple):
    """What one group sends another in one exchange."""

    common: Words
    """The part that is the same for all groups."""
    own: Words
    """The part for the receiver alone."""


class Carrier(Protocol):
    """The connection of one group to the others. All groups must call `exchange` the same number of times."""

    rank: int
    """Number of this group."""
    groups: int
    """Number of groups."""
    name: str
    """Kind of carrier: "memory", "shared memory", "Dask" or "nccl"."""

    def exchange(self, common: Words, own: Sequence[Words]) -> list[GroupPacket]:
        """Send `common` to every group, this one included, and `own[g]` to group g; returns the packets of all, by
        rank.

        The caller may change its arrays after the call. It must not write to the packets received, which are valid
        until the next call. Raises ClusterLost within 30 s when another group failed, ended or is lost; InternalError
        for a packet of another run or exchange; ValueError unless there is one array of words for each group.
        """
        ...

    def abandon(self) -> None:
        """Make the exchanges of all other groups fail, because this group fails."""
        ...

    def close(self) -> None:
        """Release files, connections and threads. May be called again. Packets received last stay valid."""
        ...


def check_words(common: Words, own: Sequence[Words], groups: int) -> None:
    """Raises ValueError unless these arrays can be sent."""
    if len(own) != groups:
        raise ValueError(f"{len(own)} packets for {groups} groups")
    for words in (common, *own):
        if words.dtype != np.uint32 or words.ndim != 1 or not words.flags.c_contiguous:
            raise ValueError(f"a packet has to be contiguous words, not {words.dtype} of shape {words.shape}")


def lost(rank: int, why: str) -> ClusterLost:
    """The error raised in groups that wait for group `rank` when it fails."""
    return ClusterLost(f"group {rank} of the shards {why}; run again")


class _Sent(NamedTuple):
    exchange: int
    common: Words
    own: list[Words]


class _Board:
    """The packets and states of all groups of one run."""

    def __init__(self, groups: int) -> None:
        self.changed = threading.Condition()
        # Two slots per group suffice: while one group still reads the packets of exchange n, another may write those of
        # exchange n + 1. No group writes the packets of exchange n + 2 before all groups have written those of n + 1.
        self.sent: list[list[_Sent | None]] = [[None, None] for _ in range(groups)]
        self.exchanges = [0] * groups
        """[groups] the last exchange whose packets each group has written."""
        self.ended: dict[int, str] = {}
        """By rank, why a group has left the run."""


class MemoryCarrier:
    """Exchanges packets between threads of one process. `MemoryCarrier.open(groups)` returns one for each group."""

    name = "memory"

    def __init__(self, rank: int, board: _Board) -> None:
        self.rank, self.groups = rank, len(board.sent)
        self._board, self._exchange = board, 0

    @classmethod
    def open(cls, groups: int) -> list[MemoryCarrier]:
        """The carriers of `groups` groups."""
        board = _Board(groups)
        return [cls(rank, board) for rank in range(groups)]

    def exchange(self, common: Words, own: Sequence[Words]) -> list[GroupPacket]:
        """See `Carrier.exchange`."""
        check_words(common, own, self.groups)
        board, self._exchange = self._board, self._exchange + 1
        number, slot = self._exchange, self._exchange % 2
        sent = _Sent(number, common.copy(), [words.copy() for words in own])
        with board.changed:
            if self.rank in board.ended:
                raise lost(self.rank, board.ended[self.rank])
            board.sent[self.rank][slot] = sent
            before, board.exchanges[self.rank] = min(board.exchanges), number
            if min(board.exchanges) > before:
                board.changed.notify_all()
            board.changed.wait_for(lambda: min(board.exchanges) >= number or self._missing() is not None)
            if min(board.exchanges) < number and (missing := self._missing()) is not None:
                raise lost(missing, board.ended[missing])
            received = [slots[slot] for slots in board.sent]
        return [_packet(sent, number, self.rank) for sent in received]

    def _missing(self) -> int | None:
        """A group that ended before it wrote its packets of this exchange."""
        board = self._board
        return next((g for g in board.ended if board.exchanges[g] < self._exchange), None)

    def abandon(self) -> None:
        """See `Carrier.abandon`."""
        self._end("failed")

    def close(self) -> None:
        """See `Carrier.close`."""
        self._end("ended before the others")

    def _end(self, why: str) -> None:
        with self._board.changed:
            self._board.ended.setdefault(self.rank, why)
            self._board.changed.notify_all()


def _packet(sent: _Sent | None, exchange: int, rank: int) -> GroupPacket:
    if sent is None or sent.exchange != exchange:
        raise InternalError(f"a packet of exchange {sent and sent.exchange} came in exchange {exchange} of the shards")
    return GroupPacket(sent.common, sent.own[rank])


EMPTY: Words = np.empty(0, np.uint32)


def all_gather(carrier: Carrier, text: bytes) -> list[bytes]:
    """[groups] the texts of all groups, by rank; takes one exchange."""
    padded = text + bytes(-len(text) % 4)
    words = np.concatenate([np.array([len(text)], np.uint32), np.frombuffer(padded, np.uint32)])
    packets = carrier.exchange(words, [EMPTY] * carrier.groups)
    return [packet.common[1:].tobytes()[: int(packet.common[0])] for packet in packets]
