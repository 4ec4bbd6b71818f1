"""Messages between tasks: one bundle per sender and exchange, with one payload for each receiver that gets rows.

Between worker processes, parcels carry the bundles of several senders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..kernels.runtime.sizes import SizedArrays

T = TypeVar("T", bound=Sized)


class Payload(SizedArrays):
    """Base class of value types that tasks send to each other, alone or in a bundle.

    Between workers with GPUs they travel array by array, from one GPU's memory to the other's where the protocol can.
    """


@dataclass(frozen=True)
class Bundle(Payload, Generic[T]):
    """All messages of one sender in one exchange."""

    sender: int
    """Number of the block, bucket or partition that sends."""

    parts: Mapping[int, T]
    """Receiver → payload. Receivers without rows are left out."""

    rows: Mapping[int, int]
    """Receiver → rows of its payload. The rows sent must equal the rows received."""

    stamp: str = ""
    """The run and the exchange that this bundle belongs to."""

    def part(self, receiver: int) -> T | None:
        """The payload for one receiver, or None."""
        return self.parts.get(receiver)


@dataclass(frozen=True)
class Parcel(Payload, Generic[T]):
    """What some senders, all on one worker, send to some receivers, all on one worker."""

    bundles: Mapping[int, Bundle[T]]
    """Sender → its bundle, without the payloads for other receivers. Senders without rows are there, too."""


def bundle(sender: int, parts: Mapping[int, T]) -> Bundle[T]:
    """A bundle of the payloads in `parts` that are not empty, with their rows counted."""
    kept = {receiver: payload for receiver, payload in parts.items() if len(payload)}
    return Bundle(sender, kept, {receiver: len(payload) for receiver, payload in kept.items()})


def collect(receiver: int, bundles: Iterable[Bundle[T]]) -> dict[int, T]:
    """The payloads for one receiver, by sender."""
    return {b.sender: b.parts[receiver] for b in bundles if receiver in b.parts}
