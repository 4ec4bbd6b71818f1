"""Delivery of bundles from senders to receivers.

Where tasks share memory, a receiver takes the bundles of all senders. Between worker processes, parcels are sent: for
each pair of workers, a task takes the rows for the receivers on one worker from the bundles on the other. So the number
of tasks grows with the pairs of workers, and not with the pairs of senders and receivers.

The driver sees no rows, and waits for no task: it starts all tasks of an exchange at once. A receiver checks that it
gets a bundle of every sender, with all rows that the sender counted, and that the bundles belong to this run and this
exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from ...tasks.errors import InternalError
from ...tasks.messages import Bundle, Parcel, collect
from ..cluster.execution import together
from .task_engine import Future, TaskEngine


@dataclass(frozen=True)
class Sent:
    """The bundles of one exchange."""

    bundles: Sequence[Future]
    """[senders]"""
    at: Sequence[int] | None
    """[senders] index of the worker that makes each; None where tasks share memory."""


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
) -> Sent:
    """Start a task `name` for each element of `arguments`. Each task returns a bundle for the exchange `to`.

    Sender i runs on the worker `at[i]`; without `at`, on the worker of bucket i.
    """
    at = at or engine.bucket_workers(len(arguments))
    return Sent(engine.map(name, stamped, [(stamp(engine, to), function, *own) for own in arguments], at), at)


def stamped(stamp: str, function: Callable[..., Bundle[Any]], *arguments: Any) -> Bundle[Any]:
    """Task: the bundle `function(*arguments)` with a stamp."""
    return replace(function(*arguments), stamp=stamp)


def make_parcel(bundles: Sequence[Bundle[Any]], receivers: Sequence[int]) -> Parcel[Any]:
    """Task: the parts of bundles for some receivers."""
    return Parcel({own.sender: _part(own, receivers) for own in bundles})


def _part(bundle: Bundle[Any], receivers: Iterable[int]) -> Bundle[Any]:
    parts, rows = ({to: own[to] for to in receivers if to in own} for own in (bundle.parts, bundle.rows))
    return replace(bundle, parts=parts, rows=rows)


def _parcels(engine: TaskEngine, name: str, sent: Sent, at: Sequence[int]) -> list[list[Future]]:
    """[receivers] the parcels with the rows for a receiver. The receivers are on the workers `at`.

    A parcel is for at most as many receivers as a worker runs at once: a running receiver keeps the rows of others in
    its parcels in memory.
    """
    senders = together(sent.at or [0] * len(sent.bundles), engine.results_together)
    receivers = together(at, engine.capacity.threads)
    tasks = [([sent.bundles[s] for s in own], to) for own in senders for to in receivers]
    # Under the name of the exchange, for the reason given in `Engine.peek`.
    made = engine.map(name, make_parcel, tasks, soon=True)
    group = {receiver: place for place, own in enumerate(receivers) for receiver in own}
    return [made[group[receiver] :: len(receivers)] for receiver in range(len(at))]


def receive(
    function: Callable[..., Any],
    receiver: int,
    stamp: str,
    senders: int,
    mail: Sequence[Bundle[Any] | Parcel[Any]],
    *arguments: Any,
) -> Any:
    """Task: `function(*arguments, payloads)`, with the payloads for `receiver` by sender, in the senders' order.

    Raises InternalError unless `mail` has exactly one bundle of each of the `senders` senders, all with this `stamp`,
    and all rows that the senders counted.
    """
    bundles = sorted(_bundles(mail), key=attrgetter("sender"))
    for bundle in bundles:
        if bundle.stamp != stamp:
            raise InternalError(
                f"receiver {receiver} of the exchange {stamp!r} got rows of {bundle.stamp or 'no exchange'!r}"
            )
    if len({bundle.sender for bundle in bundles}) != senders or len(bundles) != senders:
        raise InternalError(f"receiver {receiver} of the exchange {stamp!r} got {len(bundles)} bundles of {senders}")
    payloads = collect(receiver, bundles)
    sent, arrived = sum(bundle.rows.get(receiver, 0) for bundle in bundles), sum(map(len, payloads.values()))
    if arrived != sent:
        raise InternalError(f"{sent} rows were sent to receiver {receiver}, and {arrived} arrived")
    return function(*arguments, payloads)


def _bundles(mail: Iterable[Bundle[Any] | Parcel[Any]]) -> Iterator[Bundle[Any]]:
    for own in mail:
        if isinstance(own, Parcel):
            yield from own.bundles.values()
        else:
            yield own


def exchange(
    engine: TaskEngine,
    name: str,
    sent: Sent,
    function: Callable[..., Any],
    arguments: Sequence[Sequence[Any]],
    at: Sequence[int] | None = None,
) -> list[Future]:
    """Deliver one bundle from each sender.

    Receiver i runs `function(*arguments[i], payloads)`. `payloads` has its payloads by sender and may be empty.
    Receiver i runs on the worker `at[i]`; without `at`, on the worker of bucket i.
    """
    at, tasks = _receivers(engine, name, sent, function, arguments, at)
    return engine.map(name, receive, tasks, at)


def forward(
    engine: TaskEngine,
    name: str,
    sent: Sent,
    to: str,
    function: Callable[..., Bundle[Any]],
    arguments: Sequence[Sequence[Any]],
    at: Sequence[int] | None = None,
) -> Sent:
    """As `exchange`, but `function` returns a bundle for the exchange `to`."""
    at, tasks = _receivers(engine, name, sent, function, arguments, at)
    return send(engine, name, to, receive, tasks, at)


def _receivers(
    engine: TaskEngine,
    name: str,
    sent: Sent,
    function: Callable[..., Any],
    arguments: Sequence[Sequence[Any]],
    at: Sequence[int] | None,
) -> tuple[Sequence[int] | None, list[tuple[Any, ...]]]:
    """The workers of the receivers, and the arguments of `receive` for each."""
    at = at or engine.bucket_workers(len(arguments))
    shared = engine.shares_memory or at is None
    mail = [sent.bundles] * len(arguments) if shared or at is None else _parcels(engine, name, sent, at)
    own_stamp, senders = stamp(engine, name), len(sent.bundles)
    tasks = [
        (function, to, own_stamp, senders, list(parts), *own)
        for to, (parts, own) in enumerate(zip(mail, arguments, strict=True))
    ]
    return at, tasks
