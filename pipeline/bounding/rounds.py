"""Exchanges of a schedule: each active partition runs a task, and its mail goes to the next exchange."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

from ...tasks.errors import StateLost
from ...tasks.graph.subgraph import Subgraph
from ...tasks.messages import Bundle
from ..cluster.engine import Engine, Future
from ..stages.exchange import Delivery, receive, stamp


class Outcome(NamedTuple):
    """The result of a partition's task in an exchange."""

    state: Any
    mail: Bundle[Any]
    report: Any


MOST_TASKS = 16
"""Tasks of lineage for each partition, at most. Dask would remember 3 for each exchange."""


class Round:
    """The states of all partitions and the mail between them, after an exchange.

    The lineage of the states is cut from time to time, because Dask remembers every task of thousands of exchanges. A
    state that is lost with its worker after that cannot be computed again: StateLost is raised.
    """

    def __init__(
        self,
        engine: Engine,
        name: str,
        states: list[Future],
        mailed: Mapping[int, Mapping[int, int]] | None = None,
        number: int = 0,
    ) -> None:
        self._engine, self.name = engine, name
        self.number = number
        """Exchanges so far."""
        self.states = states
        """[partitions] Outcome with the state of each"""
        self.mailed: Mapping[int, Mapping[int, int]] = mailed or {}
        """Partitions that ran in the last exchange → rows that each sent, by receiver"""
        self._mail = Delivery(engine, name, [states[p] for p in self.mailed], list(self.mailed.values()))
        self._tasks = 0  # since the lineage was cut

    @property
    def stamp(self) -> str:
        """The stamp of the mail between this exchange and the next."""
        return stamp(self._engine, f"{self.name} {self.number}")

    def receivers(self) -> set[int]:
        """Partitions that have mail."""
        return set(self._mail.expected)

    def run(
        self, partitions: set[int], function: Callable[..., Any], arguments: Mapping[int, Sequence[Any]]
    ) -> dict[int, Any]:
        """Run `function(*arguments[p], mail) -> (state, bundle, report)` in each of `partitions`; gives the reports."""
        # In alternating order: the last states of the previous exchange are still in memory.
        active = sorted(partitions, reverse=self.number % 2 == 1)
        workers = self._engine.partition_workers
        at = workers and [workers[p] for p in active]
        expected, received_stamp = self._mail.expected, self.stamp
        self.number += 1
        tasks = self._engine.map(
            self.name,
            _step,
            [
                (function, p, received_stamp, self.stamp, expected[p], mail, *arguments[p])
                for p, mail in zip(active, self._mail.parts_for(active, at), strict=True)
            ],
            at,
        )
        found = self._engine.peek(tasks, _report)
        for p, task in zip(active, tasks, strict=True):
            self.states[p] = task
        self._tasks += len(tasks) + self._mail.parts
        self.mailed = {p: rows for p, (_, rows) in zip(active, found, strict=True)}
        if self._tasks > MOST_TASKS * len(self.states):
            self._cut_lineage()
        self._mail = Delivery(self._engine, self.name, [self.states[p] for p in active], list(self.mailed.values()))
        return {p: report for p, (report, _) in zip(active, found, strict=True)}

    def _cut_lineage(self) -> None:
        try:
            self.states[:] = self._engine.cut_lineage(f"{self.name}-held", self.states, _lost, [()] * len(self.states))
            self._tasks = 0
        except StateLost as error:  # a worker was lost or too busy: the old states are still valid
            error.__traceback__ = None  # Dask keeps the error, and its frames would keep the futures


def _lost() -> NoReturn:
    raise StateLost("a worker died with unsaved bounding state; run again to resume from the last checkpoint")


def _step(
    function: Callable[..., tuple[Any, Bundle[Any], Any]],
    partition: int,
    received_stamp: str,
    sent_stamp: str,
    expected: int,
    mail: Sequence[Bundle[Any] | Outcome],
    subgraph: Subgraph,
    before: Outcome,
    *arguments: Any,
) -> Outcome:
    bundles = [part.mail if isinstance(part, Outcome) else part for part in mail]
    state, sent, report = receive(
        function, partition, received_stamp, expected, bundles, subgraph, before.state, *arguments
    )
    return Outcome(state, replace(sent, stamp=sent_stamp), report)


def start(function: Callable[..., Any], subgraph: Subgraph, *arguments: Any) -> Outcome:
    """Task: the state `function(subgraph, *arguments)` before the first exchange."""
    return Outcome(function(subgraph, *arguments), Bundle(subgraph.partition, {}, {}), None)


def _report(outcome: Outcome) -> tuple[Any, Mapping[int, int]]:
    return outcome.report, outcome.mail.rows


def end(function: Callable[..., Any], subgraph: Subgraph, outcome: Outcome, *arguments: Any) -> Any:
    """Task: `function(subgraph, state, *arguments)` on the state after the last exchange."""
    return function(subgraph, outcome.state, *arguments)
