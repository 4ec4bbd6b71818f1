"""What carries parcels between groups of shards, all at once: no group goes on before every parcel has arrived."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from ..errors import ClusterLost

Parcel = tuple[NDArray[Any], ...]
"""Arrays from one group for another."""


class Carrier(Protocol):
    """Takes the parcels of one group to the others."""

    rank: int
    """Which of the groups this one is."""
    groups: int
    """How many there are."""

    def exchange(self, parcels: Sequence[Parcel]) -> list[Parcel]:
        """Send a parcel to each group, this one included; gives what each group sent here, in their order.

        The arrays of a parcel may be the same objects as those of another, and must not change any more. Raises
        ClusterLost when another group has failed or cannot be reached.
        """
        ...

    def abandon(self) -> None:
        """Make all other groups fail, since this one does."""
        ...


class MemoryCarrier:
    """Carries between threads of one process. `MemoryCarrier.open(groups)` gives one for each."""

    def __init__(self, rank: int, boards: Sequence[list[list[Parcel]]], meeting: threading.Barrier) -> None:
        self.rank, self.groups = rank, meeting.parties
        self._boards, self._meeting, self._turn = boards, meeting, 0

    @classmethod
    def open(cls, groups: int) -> list[MemoryCarrier]:
        """The carriers of so many groups."""
        # Two boards: a group may write its next parcels while another one still reads the last ones, but not those
        # after, since that takes another meeting.
        boards: list[list[list[Parcel]]] = [[[] for _ in range(groups)] for _ in range(2)]
        meeting = threading.Barrier(groups)
        return [cls(rank, boards, meeting) for rank in range(groups)]

    def exchange(self, parcels: Sequence[Parcel]) -> list[Parcel]:
        """See `Carrier.exchange`."""
        board, self._turn = self._boards[self._turn], 1 - self._turn
        board[self.rank] = list(parcels)
        try:
            self._meeting.wait()
        except threading.BrokenBarrierError as error:
            raise ClusterLost("another group of shards failed while edges were peeled") from error
        return [sent[self.rank] for sent in board]

    def abandon(self) -> None:
        """See `Carrier.abandon`."""
        self._meeting.abort()
