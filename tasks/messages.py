"""What travels between tasks: one bundle per sender and exchange, with a part for every receiver that has mail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..kernels.held import Held

T = TypeVar("T", bound=Sized)


@dataclass(frozen=True)
class Bundle(Held, Generic[T]):
    """The outgoing mail of one sender in one exchange."""

    sender: int
    """Number of the block, bucket or partition that sends."""

    parts: Mapping[int, T]
    """Receiver → payload, for the receivers that have mail only."""

    rows: Mapping[int, int]
    """Receiver → rows of its payload; what is sent and what is received must agree."""

    stamp: str = ""
    """The run and the exchange that it is for."""

    def part(self, receiver: int) -> T | None:
        """The payload for one receiver, or None without mail."""
        return self.parts.get(receiver)


def bundle(sender: int, parts: Mapping[int, T]) -> Bundle[T]:
    """A bundle of the non-empty payloads in `parts`, with their rows counted."""
    kept = {receiver: payload for receiver, payload in parts.items() if len(payload)}
    return Bundle(sender, kept, {receiver: len(payload) for receiver, payload in kept.items()})


def collect(receiver: int, bundles: Iterable[Bundle[T]]) -> dict[int, T]:
    """The mail of one receiver, by sender."""
    return {b.sender: b.parts[receiver] for b in bundles if receiver in b.parts}
