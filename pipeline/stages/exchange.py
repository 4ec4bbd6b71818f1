"""Delivery of bundles from senders to receivers.

The driver sees row counts only. A receiver checks that it gets all rows that were sent to it, and that they belong to
this run and this exchange.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from ...tasks.errors import InternalError
from ...tasks.messages import Bundle, collect
from .task_engine import Future, TaskEngine

_rows = attrgetter("rows")


def stamp(engine: TaskEngine, name: str) -> str:
    """The stamp of all bundles of the exchange `name` of this run."""
    return f"{engine.run_id} {name}"


def send(
    engine: TaskEngine,
    name: str,
    to: str,
    function: Callable[..., Bundle[Any]],
    arguments: Sequence[Sequence[Any]],
    at: Sequence[int] | None = None,
) -> list[Future]:
    """Start a task `name` for each element of `arguments`. Each task returns a bundle for the exchange `to`."""
    return engine.map(name, stamped, [(stamp(engine, to), function, *own) for own in arguments], at)


def stamped(stamp: str, function: Callable[..., Bundle[Any]], *arguments: Any) -> Bundle[Any]:
    """Task: the bundle `function(*arguments)` with a stamp."""
    return replace(function(*arguments), stamp=stamp)


class Delivery:
    """The bundles of one exchange. The driver knows their row counts only."""

    def __init__(
        self, engine: TaskEngine, name: str, bundles: Sequence[Future], rows: Sequence[Mapping[int, int]]
    ) -> None:
        """`rows` [bundles] maps each receiver of a bundle to the number of its rows."""
        self._engine, self._name, self._bundles = engine, name, bundles
        self._senders: dict[int, list[int]] = {}
        self.expected: Counter[int] = Counter()
        """Rows for each receiver."""
        for sender, counts in enumerate(rows):
            for receiver, count in counts.items():
                self._senders.setdefault(receiver, []).append(sender)
                self.expected[receiver] += count

    def parts_for(self, receivers: Sequence[int], at: Sequence[int] | None = None) -> list[list[Future]]:
        """[receivers] the bundles that have rows for the receiver.

        In shared memory these are whole bundles. Otherwise a task selects the part for one receiver or, if `at` gives
        the receivers' workers, the parts for all receivers of one worker.
        """
        senders = [self._senders.get(receiver, []) for receiver in receivers]
        if self._engine.shares_memory:
            return [[self._bundles[s] for s in own] for own in senders]
        targets = list(at or receivers)
        selections: dict[tuple[int, int], list[int]] = {}
        for receiver, target, own in zip(receivers, targets, senders, strict=True):
            for s in own:
                selections.setdefault((s, target), []).append(receiver)
        ordered = sorted(selections)  # bundle by bundle, so a spilled bundle is read once
        # Under the name of the exchange, for the reason given in `Engine.peek`.
        tasks = [(self._bundles[sender], selections[sender, target]) for sender, target in ordered]
        part = dict(zip(ordered, self._engine.map(self._name, select_parts, tasks, soon=True), strict=True))
        return [[part[s, target] for s in own] for target, own in zip(targets, senders, strict=True)]


def select_parts(bundle: Bundle[Any], receivers: Sequence[int]) -> Bundle[Any]:
    """Task: the parts of a bundle for some receivers."""
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
    """Task: `function(*arguments, mail)`, with the payloads for `receiver` by sender as `mail`.

    Raises InternalError if the number of rows is not `expected`, or if a bundle has another stamp than `stamp`.
    """
    for bundle in bundles:
        if bundle.stamp != stamp:
            raise InternalError(
                f"receiver {receiver} of the exchange {stamp!r} got rows of {bundle.stamp or 'no exchange'!r}"
            )
    mail = collect(receiver, bundles)
    arrived = sum(map(len, mail.values()))
    if arrived != expected:
        raise InternalError(f"{expected} rows were sent to receiver {receiver}, and {arrived} arrived")
    return function(*arguments, mail)


def exchange(
    engine: TaskEngine,
    name: str,
    bundles: Sequence[Future],
    function: Callable[..., Any],
    arguments: Sequence[Sequence[Any]],
    at: Sequence[int] | None = None,
    forward: str | None = None,
) -> list[Future]:
    """Deliver one bundle from each sender.

    Receiver i runs `function(*arguments[i], mail)`. `mail` has its payloads by sender and may be empty. It runs on the
    worker `at[i]` if `at` is given. With `forward`, `function` returns a bundle for the exchange of that name.
    """
    receivers = range(len(arguments))
    at = at or engine.receiver_workers(receivers)
    delivery = Delivery(engine, name, bundles, engine.peek(bundles, _rows))
    delivered, own_stamp = delivery.parts_for(receivers, at), stamp(engine, name)
    tasks = [
        (function, to, own_stamp, delivery.expected[to], parts, *own)
        for to, parts, own in zip(receivers, delivered, arguments, strict=True)
    ]
    return engine.map(name, receive, tasks, at) if forward is None else send(engine, name, forward, receive, tasks, at)
