"""Delivery of bundles: who has mail gets it; rows sent are rows received, and they are of this run and exchange."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from ..tasks.errors import InternalError
from ..tasks.messages import Bundle, collect
from .engine import Engine, Future
from .transport import register

__all__ = ["Mail", "exchange", "receive", "send", "stamp", "stamped"]

register()  # here, as every worker that gets mail imports this

_rows = attrgetter("rows")


def stamp(engine: Engine, name: str) -> str:
    """What the bundles of the exchange `name` of this run bear."""
    return f"{engine.run_id} {name}"


def send(
    engine: Engine,
    name: str,
    to: str,
    function: Callable[..., Bundle[Any]],
    arguments: Sequence[Sequence[Any]],
    at: Sequence[int] | None = None,
) -> list[Future]:
    """Start a task `name` for each of `arguments`, which gives a bundle for the exchange `to`."""
    return engine.map(name, stamped, [(stamp(engine, to), function, *own) for own in arguments], at)


def stamped(stamp: str, function: Callable[..., Bundle[Any]], *arguments: Any) -> Bundle[Any]:
    """Task: the bundle `function(*arguments)`, with its stamp."""
    return replace(function(*arguments), stamp=stamp)


class Mail:
    """Bundles of one exchange on their way, known to the driver by their row counts only."""

    def __init__(self, engine: Engine, name: str, bundles: Sequence[Future], rows: Sequence[Mapping[int, int]]) -> None:
        self._engine, self._name, self._bundles = engine, name, bundles
        self._senders: dict[int, list[int]] = {}
        self.parts = 0
        """Tasks that it took to deliver."""
        self.expected: Counter[int] = Counter()
        """Rows for each receiver."""
        for sender, counts in enumerate(rows):
            for receiver, count in counts.items():
                self._senders.setdefault(receiver, []).append(sender)
                self.expected[receiver] += count

    def to(self, receivers: Sequence[int], at: Sequence[int] | None = None) -> list[list[Future]]:
        """For each receiver the bundles with mail for it: whole ones in shared memory, else only its parts travel, or
        together those for all receivers of one worker, if `at` says where they are.
        """
        senders = [self._senders.get(receiver, []) for receiver in receivers]
        if self._engine.shares_memory:
            return [[self._bundles[s] for s in own] for own in senders]
        wanted: dict[tuple[int, int], list[int]] = {}
        for receiver, place, own in zip(receivers, at or receivers, senders, strict=True):
            for s in own:
                wanted.setdefault((s, place), []).append(receiver)
        self.parts += len(wanted)
        ordered = sorted(wanted)  # a bundle after the other: one that was spilled is read once
        # Under the same name, as in `Engine.peek`.
        cuts = self._engine.map(self._name, cut, [(self._bundles[s], wanted[s, w]) for s, w in ordered], soon=True)
        part = dict(zip(ordered, cuts, strict=True))
        return [[part[s, w] for s in own] for w, own in zip(at or receivers, senders, strict=True)]


def cut(sent: Any, receivers: Sequence[int]) -> Bundle[Any]:
    """The parts that some receivers get of a bundle, or of an outcome that holds one as its `mail`."""
    bundle: Bundle[Any] = getattr(sent, "mail", sent)
    rows = {receiver: bundle.rows[receiver] for receiver in receivers}
    return replace(bundle, parts={receiver: bundle.parts[receiver] for receiver in receivers}, rows=rows)


def receive(
    function: Callable[..., Any],
    receiver: int,
    stamp: str,
    expected: int,
    bundles: Sequence[Bundle[Any]],
    *arguments: Any,
) -> Any:
    """Call `function(*arguments, mail)`. Raises InternalError if other rows arrived than were sent, or rows of another
    run or exchange than `stamp` tells.
    """
    for bundle in bundles:
        if bundle.stamp != stamp:
            raise InternalError(f"{receiver} got rows of {bundle.stamp or 'no exchange'!r}, sent to it in {stamp!r}")
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
    forward: str | None = None,
) -> list[Future]:
    """Deliver one bundle from each sender; receiver i runs `function(*arguments[i], mail by sender)`, also without
    mail, on the worker `at[i]` if these are given. With `forward` it gives a bundle itself, for that exchange.
    """
    receivers = range(len(arguments))
    at = at or engine.places(receivers)
    mail = Mail(engine, name, bundles, engine.peek(bundles, _rows))
    delivered, own_stamp = mail.to(receivers, at), stamp(engine, name)
    tasks = [
        (function, to, own_stamp, mail.expected[to], parts, *own)
        for to, parts, own in zip(receivers, delivered, arguments, strict=True)
    ]
    return engine.map(name, receive, tasks, at) if forward is None else send(engine, name, forward, receive, tasks, at)
