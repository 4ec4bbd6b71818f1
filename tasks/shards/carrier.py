"""What takes letters from each group of shards to the others, and how groups meet. Between threads of one process here.

Other carriers: `shared_memory`, between processes of a host; `pipeline.worker_carrier`, between Dask workers.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import ClusterLost, InternalError

__all__ = ["Carrier", "Letter", "MemoryCarrier", "Words", "check_words", "lost"]

Words: TypeAlias = NDArray[np.uint32]
"""[any number] what letters hold: one dimension, C-contiguous."""


class Letter(NamedTuple):
    """What one group sends another in one exchange."""

    common: Words
    """The same for all groups."""
    own: Words
    """For the receiver alone."""


class Carrier(Protocol):
    """One group's way to the others. Groups meet in each exchange; all must call it the same number of times."""

    rank: int
    """Which group this is."""
    groups: int
    """How many there are."""
    name: str
    """What carries: "memory", "shared memory" or "Dask"."""

    def exchange(self, common: Words, own: Sequence[Words]) -> list[Letter]:
        """Send `common` to every group, this one included, and `own[g]` to group g; gives the letters of all, by rank.

        What is given may change after the call. What is received must not be written to, and is valid until the next
        call. Raises ClusterLost when another group failed, ended or is lost, within 30 s of that; InternalError when a
        letter is of another run or exchange; ValueError for other arrays than words, one of `own` for each group.
        """
        ...

    def abandon(self) -> None:
        """Make the exchanges of all other groups fail, since this one does."""
        ...

    def close(self) -> None:
        """Let go of files, connections and threads. May be called again. Letters received last stay valid."""
        ...


def check_words(common: Words, own: Sequence[Words], groups: int) -> None:
    """Raises ValueError unless these can be sent."""
    if len(own) != groups:
        raise ValueError(f"{len(own)} letters for {groups} groups")
    for words in (common, *own):
        if words.dtype != np.uint32 or words.ndim != 1 or not words.flags.c_contiguous:
            raise ValueError(f"a letter has to be contiguous words, not {words.dtype} of shape {words.shape}")


def lost(rank: int, why: str) -> ClusterLost:
    """The error for a group that others wait for in vain."""
    return ClusterLost(f"group {rank} of the shards {why}; run again")


class _Sent(NamedTuple):
    exchange: int
    common: Words
    own: list[Words]


class _Place:
    """Where the groups of one run meet."""

    def __init__(self, groups: int) -> None:
        self.changed = threading.Condition()
        # Two places for each group: it may write its next letters while another one still reads the last, but not those
        # after, since these wait until all have written the next.
        self.sent: list[list[_Sent | None]] = [[None, None] for _ in range(groups)]
        self.exchanges = [0] * groups
        """[groups] the last exchange that each has written its letters for."""
        self.gone: dict[int, str] = {}
        """Why a group comes no more."""


class MemoryCarrier:
    """Carries between threads of one process. `MemoryCarrier.open(groups)` gives one for each."""

    name = "memory"

    def __init__(self, rank: int, place: _Place) -> None:
        self.rank, self.groups = rank, len(place.sent)
        self._place, self._exchange = place, 0

    @classmethod
    def open(cls, groups: int) -> list[MemoryCarrier]:
        """The carriers of so many groups."""
        place = _Place(groups)
        return [cls(rank, place) for rank in range(groups)]

    def exchange(self, common: Words, own: Sequence[Words]) -> list[Letter]:
        """See `Carrier.exchange`."""
        check_words(common, own, self.groups)
        place, self._exchange = self._place, self._exchange + 1
        number, turn = self._exchange, self._exchange % 2
        sent = _Sent(number, common.copy(), [words.copy() for words in own])
        with place.changed:
            if self.rank in place.gone:
                raise lost(self.rank, place.gone[self.rank])
            place.sent[self.rank][turn] = sent
            before, place.exchanges[self.rank] = min(place.exchanges), number
            if min(place.exchanges) > before:
                place.changed.notify_all()
            place.changed.wait_for(lambda: min(place.exchanges) >= number or self._missing() is not None)
            if min(place.exchanges) < number and (missing := self._missing()) is not None:
                raise lost(missing, place.gone[missing])
            given = [board[turn] for board in place.sent]
        return [_letter(sent, number, self.rank) for sent in given]

    def _missing(self) -> int | None:
        """A group that will not write its letters of this exchange."""
        place = self._place
        return next((g for g in place.gone if place.exchanges[g] < self._exchange), None)

    def abandon(self) -> None:
        """See `Carrier.abandon`."""
        self._leave("failed")

    def close(self) -> None:
        """See `Carrier.close`."""
        self._leave("ended before the others")

    def _leave(self, why: str) -> None:
        with self._place.changed:
            self._place.gone.setdefault(self.rank, why)
            self._place.changed.notify_all()


def _letter(sent: _Sent | None, exchange: int, rank: int) -> Letter:
    if sent is None or sent.exchange != exchange:
        raise InternalError(f"a letter of exchange {sent and sent.exchange} came in exchange {exchange} of the shards")
    return Letter(sent.common, sent.own[rank])
