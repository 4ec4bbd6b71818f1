"""Peeling: one partition alone, or several in step."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import methodcaller
from typing import Any, NamedTuple

from distributed import get_worker

from ..kernels.peers import Address
from ..tasks.bound.intervals import Intervals
from ..tasks.bound.peel import Peeled, peel
from ..tasks.bound.step import PeeledInStep, open_mailbox, peel_in_step
from ..tasks.errors import ClusterLost
from ..tasks.subgraph import Subgraph
from .bounded import Bounded
from .engine import Engine, Future
from .manifest import BoundingRecord, ExchangeRecord
from .telemetry import Events

__all__ = ["peel_alone", "peel_together", "wait_for_all"]

_PROGRESS_SECONDS = 0.2
"""How often peeling tells its level."""


def peel_alone(engine: Engine, events: Events, subgraphs: Sequence[Future], max_seconds: float | None) -> Bounded:
    """Peel the only partition."""
    topic = f"edgemill-{engine.run_id}"
    with engine.listening(topic, lambda fields: events.emit("level", **fields)):
        task = engine.submit("peel", _peel_task, subgraphs[0], max_seconds, topic)
        (found,) = engine.peek([task], _peel_record)
    record = BoundingRecord(method="peel", steps=found.levels, exchanges=0, evaluations=found.evaluations)
    return Bounded([engine.submit("intervals", _intervals, task)], record, found.unsettled == 0)


def _peel_task(subgraph: Subgraph, max_seconds: float | None, topic: str) -> Peeled:
    return peel(subgraph, max_seconds, _teller(topic))


def peel_together(engine: Engine, events: Events, subgraphs: Sequence[Future], max_seconds: float | None) -> Bounded:
    """Peel several partitions in step: each by a worker of its own, all at once; in one process by one task.

    What the partitions tell each other while they run is counted as one exchange.
    """
    started = time.perf_counter()
    topic = f"edgemill-{engine.run_id}"
    homes = engine.homes
    mailboxes = engine.map("mailbox", open_mailbox, [(s,) for s in subgraphs], homes)
    addresses = engine.peek(mailboxes, methodcaller("address"), homes)
    groups = [[p] for p in range(len(subgraphs))] if homes else [list(range(len(subgraphs)))]
    own = [([subgraphs[p] for p in group], [mailboxes[p] for p in group]) for group in groups]
    # Tasks of two runs in the way of each other would wait until both give up.
    with engine.alone("peeling"), engine.listening(topic, lambda fields: events.emit("level", **fields)):
        tasks = engine.map(
            "peel",
            _peel_in_step,
            [(*both, addresses, max_seconds, topic if i == 0 else None) for i, both in enumerate(own)],
            homes,
        )
        wait_for_all(engine, tasks)
    found = [record for group in engine.peek(tasks, _peel_records) for record in group]
    unsettled = sum(record.unsettled for record in found)
    messages = sum(record.messages for record in found)
    evaluations = sum(record.evaluations for record in found)
    levels = max(record.levels for record in found)
    total = sum(record.edges for record in found)
    events.exchange(
        ExchangeRecord(
            exchange=1,
            step=levels,
            open_bands=0,
            settled=total - unsettled,
            unsettled=unsettled,
            messages=messages,
            bytes=4 * messages,
            evaluations=evaluations,
            seconds=time.perf_counter() - started,
        )
    )
    places = [(task, place) for task, group in zip(tasks, groups, strict=True) for place in range(len(group))]
    ends = engine.map("intervals", _intervals_of, places)
    return Bounded(
        ends, BoundingRecord(method="peel", steps=levels, exchanges=1, evaluations=evaluations), unsettled == 0
    )


def wait_for_all(engine: Engine, tasks: Sequence[Future]) -> None:
    """Wait for all; when one fails the others are lost to each other, and the one that failed first says why."""
    try:
        engine.wait(tasks)
    except ClusterLost:
        for task in tasks:
            with suppress(ClusterLost):
                engine.wait([task])
        raise


def _peel_in_step(
    subgraphs: Sequence[Subgraph],
    mailboxes: Sequence[Any],
    addresses: Sequence[Address],
    max_seconds: float | None,
    topic: str | None,
) -> list[PeeledInStep]:
    return peel_in_step(subgraphs, mailboxes, addresses, max_seconds, _teller(topic) if topic else None)


def _teller(topic: str) -> Callable[[int, int], None]:
    """Tells the driver of levels, from a task, now and then."""
    told = time.monotonic()

    def tell(level: int, left: int) -> None:
        nonlocal told
        if time.monotonic() - told > _PROGRESS_SECONDS:
            told = time.monotonic()
            get_worker().log_event(topic, {"level": level, "unsettled": left})

    return tell


class _PeelRecord(NamedTuple):
    levels: int
    evaluations: int
    unsettled: int
    edges: int
    messages: int


def _peel_record(peeled: Peeled, messages: int = 0) -> _PeelRecord:
    ends = peeled.intervals
    return _PeelRecord(peeled.levels, peeled.evaluations, ends.unsettled, len(ends.low), messages)


def _peel_records(found: Sequence[PeeledInStep]) -> list[_PeelRecord]:
    return [_peel_record(own.peeled, own.messages) for own in found]


def _intervals(peeled: Peeled) -> Intervals:
    return peeled.intervals


def _intervals_of(found: Sequence[PeeledInStep], place: int) -> Intervals:
    return found[place].peeled.intervals
