"""Exchanges of a schedule: partitions with something to do run a step each, and their mail goes on to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

from ..tasks.errors import StateLost
from ..tasks.messages import Bundle
from ..tasks.subgraph import Subgraph
from .engine import Engine, Future
from .exchange import Mail, receive, stamp

__all__ = ["Outcome", "Round", "end", "start"]


class Outcome(NamedTuple):
    """What a partition's part in an exchange gives."""

    state: Any
    mail: Bundle[Any]
    report: Any


MOST_TASKS = 16
"""Tasks for each partition that Dask remembers, before it is made to forget them: all would be 3 for each exchange."""


class Round:
    """One exchange: the partitions that have something to do run; the others keep their state.

    What led there is forgotten now and then, as Dask would remember each task of thousands of exchanges. What a worker
    held that is lost after that cannot be found again: StateLost is raised.
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
        """Exchanges until now."""
        self.states = states
        """[partitions] the Outcome that holds the state of each."""
        self.mailed: Mapping[int, Mapping[int, int]] = mailed or {}
        """Partitions that ran in the last exchange → rows that they mailed, by receiver."""
        self._mail = Mail(engine, name, [states[p] for p in self.mailed], list(self.mailed.values()))
        self._tasks = 0  # since all was forgotten

    @property
    def stamp(self) -> str:
        """Of the mail under way."""
        return stamp(self._engine, f"{self.name} {self.number}")

    def receivers(self) -> set[int]:
        """Partitions with mail."""
        return set(self._mail.expected)

    def run(
        self, partitions: set[int], function: Callable[..., Any], arguments: Mapping[int, Sequence[Any]]
    ) -> dict[int, Any]:
        """Run `function(*arguments[p], mail) -> (state, bundle, report)` in each of `partitions`; gives the reports."""
        # Back and forth: what the last one looked at last is still in memory.
        active = sorted(partitions, reverse=self.number % 2 == 1)
        homes = self._engine.homes
        at = homes and [homes[p] for p in active]
        expected, came = self._mail.expected, self.stamp
        self.number += 1
        tasks = self._engine.map(
            self.name,
            _step,
            [
                (function, p, came, self.stamp, expected[p], mail, *arguments[p])
                for p, mail in zip(active, self._mail.to(active, at), strict=True)
            ],
            at,
        )
        found = self._engine.peek(tasks, _report)
        for p, task in zip(active, tasks, strict=True):
            self.states[p] = task
        self._tasks += len(tasks) + self._mail.parts
        self.mailed = {p: rows for p, (_, rows) in zip(active, found, strict=True)}
        if self._tasks > MOST_TASKS * len(self.states):
            self._forget()
        self._mail = Mail(self._engine, self.name, [self.states[p] for p in active], list(self.mailed.values()))
        return {p: report for p, (report, _) in zip(active, found, strict=True)}

    def _forget(self) -> None:
        try:
            self.states[:] = self._engine.detach(f"{self.name}-held", self.states, _lost, [()] * len(self.states))
            self._tasks = 0
        except StateLost as error:  # a worker went, or was too busy: all is still there, and the next time will do
            error.__traceback__ = None  # Dask keeps it, and it would keep what is in the frames


def _lost() -> NoReturn:
    raise StateLost("a worker is lost, and what it held of the search for λ with it; run again")


def _step(
    function: Callable[..., tuple[Any, Bundle[Any], Any]],
    partition: int,
    came: str,
    goes: str,
    expected: int,
    mail: Sequence[Bundle[Any] | Outcome],
    subgraph: Subgraph,
    before: Outcome,
    *arguments: Any,
) -> Outcome:
    bundles = [part.mail if isinstance(part, Outcome) else part for part in mail]
    state, sent, report = receive(function, partition, came, expected, bundles, subgraph, before.state, *arguments)
    return Outcome(state, replace(sent, stamp=goes), report)


def start(function: Callable[..., Any], subgraph: Subgraph, *arguments: Any) -> Outcome:
    """Task: the state `function(subgraph, *arguments)` before the first exchange."""
    return Outcome(function(subgraph, *arguments), Bundle(subgraph.partition, {}, {}), None)


def _report(outcome: Outcome) -> tuple[Any, Mapping[int, int]]:
    return outcome.report, outcome.mail.rows


def end(function: Callable[..., Any], subgraph: Subgraph, outcome: Outcome, *arguments: Any) -> Any:
    """Task: `function(subgraph, state, *arguments)` on the state after the last exchange."""
    return function(subgraph, outcome.state, *arguments)
