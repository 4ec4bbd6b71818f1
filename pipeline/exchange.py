"""Delivery of bundles: who has mail gets it, and rows sent are rows received."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from ..tasks.errors import InternalError
from ..tasks.messages import Bundle, collect
from .engine import Engine, Future
from .transport import register

__all__ = ["Mail", "exchange", "receive"]

register()  # here, as every worker that gets mail imports this

_rows = attrgetter("rows")


class Mail:
    """Bundles of one exchange on their way, known to the driver by their row counts only."""

    def __init__(self, engine: Engine, name: str, bundles: Sequence[Future], rows: Sequence[Mapping[int, int]]) -> None:
        self._engine, self._name, self._bundles = engine, name, bundles
        self._senders: dict[int, list[int]] = {}
        self.expected: Counter[int] = Counter()
        """Rows for each receiver."""
        for sender, counts in enumerate(rows):
            for receiver, count in counts.items():
                self._senders.setdefault(receiver, []).append(sender)
                self.expected[receiver] += count

    def to(self, receivers: Sequence[int]) -> list[list[Future]]:
        """For each receiver the bundles with mail for it: whole ones in shared memory, else only its parts travel."""
        senders = [[self._bundles[s] for s in self._senders.get(receiver, [])] for receiver in receivers]
        if self._engine.shares_memory:
            return senders
        pairs = [(bundle, receiver) for receiver, own in zip(receivers, senders, strict=True) for bundle in own]
        parts = iter(self._engine.map(f"{self._name}-part", cut, pairs))
        return [[next(parts) for _ in own] for own in senders]


def cut(sent: Any, receiver: int) -> Bundle[Any]:
    """The part that one receiver gets of a bundle, or of an outcome that holds one as its `mail`."""
    bundle: Bundle[Any] = getattr(sent, "mail", sent)
    return Bundle(bundle.sender, {receiver: bundle.parts[receiver]}, {receiver: bundle.rows[receiver]})


def receive(
    function: Callable[..., Any], receiver: int, expected: int, bundles: Sequence[Bundle[Any]], *arguments: Any
) -> Any:
    """Call `function(*arguments, mail)`. Raises InternalError if other rows arrived than were sent."""
    mail = collect(receiver, bundles)
    arrived = sum(map(len, mail.values()))
    if arrived != expected:
        raise InternalError(f"{expected} rows were sent to {receiver}, {arrived} arrived")
    return function(*arguments, mail)


def exchange(
    engine: Engine,
    name: str,
    bundles: Sequence[Future],
    function: Callable[..., Any],
    arguments: Sequence[Sequence[Any]],
    at: Sequence[int] | None = None,
) -> list[Future]:
    """Deliver one bundle from each sender; receiver i runs `function(*arguments[i], mail by sender)`, also without
    mail, on the worker `at[i]` if these are given.
    """
    mail = Mail(engine, name, bundles, engine.peek(bundles, _rows))
    delivered = mail.to(range(len(arguments)))
    tasks = [(function, i, mail.expected[i], delivered[i], *own) for i, own in enumerate(arguments)]
    return engine.map(name, receive, tasks, at)
