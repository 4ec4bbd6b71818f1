"""Packets as messages of Dask's connections.

A long packet is cut into pieces. Dask sends larger messages through another thread, and a long one would delay the
heartbeats that follow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from distributed.protocol.serialize import to_serialize

from ....tasks.errors import InternalError
from ....tasks.shards.carriers.carrier import Packet, Words

PIECE_WORDS = 2**21
_SMALL_BYTES = 2**16
"""Packets up to this size travel as one byte string."""
PACKET, MORE, ABANDONED, ENDED = range(4)
"""Kinds of messages: the first piece of a packet, a later piece, a group that fails, a group that ends."""
HEARTBEAT = b""

Message: TypeAlias = Sequence[Any]
"""A list: kind, run, exchange; then for PACKET the numbers of common and own words and a piece, for MORE a piece."""


def messages_of(run: str, exchange: int, common: Words, own: Sequence[Words], rank: int) -> list[list[Message]]:
    """[groups] the messages to each group; none to the group `rank`. The caller must not change `common` later."""
    found: list[list[Message]] = []
    text = common.tobytes() if common.nbytes <= _SMALL_BYTES else None
    for group, words in enumerate(own):
        if group == rank:
            found.append([])
        elif text is not None and common.nbytes + words.nbytes <= _SMALL_BYTES:
            found.append([[PACKET, run, exchange, len(common), len(words), text + words.tobytes()]])
        else:
            first, *others = [*_pieces(common), *_pieces(words.copy())]
            found.append([[PACKET, run, exchange, len(common), len(words), to_serialize(first)]])
            found[group] += [[MORE, run, exchange, to_serialize(piece)] for piece in others]
    return found


def _pieces(words: Words) -> list[Words]:
    return [words[start : start + PIECE_WORDS] for start in range(0, len(words), PIECE_WORDS)]


class _Partial(NamedTuple):
    common: int
    words: Words
    """Both parts of the packet; the first `filled` words have arrived."""
    filled: int


class Inbox:
    """Puts the packets of one group together, from the messages of all other groups."""

    def __init__(self, run: str, groups: int) -> None:
        self.run = run
        self._groups = groups
        self.received = [0] * groups
        """[groups] the last exchange whose packet has arrived whole."""
        self._partial: dict[int, _Partial] = {}
        self._packets: dict[int, list[Packet | None]] = {}
        self._missing: dict[int, int] = {}

    def take(self, sender: int, message: Message) -> tuple[int, list[Packet | None]] | None:
        """Take a message of kind PACKET or MORE. Gives an exchange and its packets by sender when the last has arrived.

        Raises InternalError for a message of another run or exchange.
        """
        kind, run, exchange, *rest = message
        due = self.received[sender] + 1
        if run != self.run or exchange != due:
            raise InternalError(f"a packet of {run}, exchange {exchange}, came in {self.run}, exchange {due}")
        if kind == PACKET:
            common, own, piece = rest
            words = _words(piece)
            if len(words) == common + own:
                return self._arrived(sender, exchange, Packet(words[:common], words[common:]))
            partial = _Partial(common, np.empty(common + own, np.uint32), 0)
        else:
            partial, words = self._partial.pop(sender), _words(rest[0])
        filled = partial.filled + len(words)
        partial.words[partial.filled : filled] = words
        if filled < len(partial.words):
            self._partial[sender] = partial._replace(filled=filled)
            return None
        return self._arrived(sender, exchange, Packet(partial.words[: partial.common], partial.words[partial.common :]))

    def _arrived(self, sender: int, exchange: int, packet: Packet) -> tuple[int, list[Packet | None]] | None:
        self.received[sender] = exchange
        packets = self._packets.setdefault(exchange, [None] * self._groups)
        packets[sender] = packet
        missing = self._missing[exchange] = self._missing.get(exchange, self._groups - 1) - 1
        if missing:
            return None
        del self._missing[exchange]
        return exchange, self._packets.pop(exchange)


def _words(piece: bytes | Words) -> Words:
    return np.frombuffer(piece, np.uint32) if isinstance(piece, bytes) else piece
