"""The base of all searches for λ: their context, their steps and their result.

A search runs tasks until λ is known or a checkpoint is due; after the checkpoint, new tasks continue the search.
`PeelAlone`, the simplest search, peels a single partition by one task.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from threading import Lock
from typing import Any, NamedTuple, NoReturn

from ...tasks.bound.peel import Peeled, peel, peel_intervals
from ...tasks.errors import StateLost
from ...tasks.graph import PartitionCounts, Subgraph, WholeGraph
from ..cluster.engine import Engine, Future
from ..cluster.this_worker import leave_pool, progress_reporter
from ..events import Events
from ..output.manifest import BandsRecord, BoundingRecord, ShardsRecord
from ..settings.models import BoundingSettings


@dataclass(frozen=True)
class BoundingResult:
    """The result of a schedule."""

    intervals: list[Future]
    """[partitions] Intervals of the owned edges."""
    record: BoundingRecord
    converged: bool
    peeled: Future | None = None
    """Peeled of the only partition, if its order was to be recorded."""


@dataclass(frozen=True)
class BoundingContext:
    """The engine, graph and settings of a schedule."""

    engine: Engine
    events: Events
    subgraphs: list[Future]
    counts: Sequence[PartitionCounts]
    settings: BoundingSettings
    record_order: bool = False
    """Whether a peeling of the only partition records its order."""
    beside: Callable[[], None] = lambda: None
    """Starts tasks in the background. Called after the tasks of the search have started, since a busy worker takes long
    to start a task.
    """


class Schedule(ABC):
    """The state of a search between two tasks. A task of peeling is not counted as an exchange."""

    name = "peel"
    """The method, which is the name of its tasks."""
    shards: ShardsRecord | None = None
    """The record of peeling in shards, once it is finished."""
    bands: BandsRecord | None = None
    """The record of peeling in bands, once it is finished."""
    compact_rows = False
    """Whether rows take less of a GPU's memory, at the cost of time."""
    states: list[Future] | None = None
    """[partitions] the state of each; None before the first task."""
    exchanges = 0
    """Exchanges made so far."""
    stop_seconds = 0.0
    """Seconds that it takes to stop between two tasks and to start again."""

    def __init__(self, context: BoundingContext) -> None:
        self.context = context
        self._topic = f"edgemill-{context.engine.run_id}"
        self._records: list[_Record] = []
        self._seconds = 0.0

    def resume(self, facts: Mapping[str, Any], states: list[Future]) -> None:
        """Resume from a checkpoint. The context's events hold the exchanges until then."""
        self.states, self._seconds = states, facts["seconds"]
        self._records = self.context.engine.peek(states, _record, self.context.engine.partition_workers)

    @property
    def facts(self) -> dict[str, Any]:
        """The driver's state for a checkpoint, as JSON values: seconds so far."""
        return {"seconds": self._seconds}

    @property
    def reached(self) -> dict[str, int]:
        """The progress, as events report it: the next level."""
        return {"level": max((record.level for record in self._records), default=0)}

    @property
    def done(self) -> bool:
        """Whether λ is known for all edges."""
        return self.states is not None and not any(record.left for record in self._records)

    def exchange(self, seconds: float | None, most: int | None = None) -> None:
        """Search for at most `seconds` and the rest of a level; a method with iterations makes at most `most`."""
        context, started = self.context, time.perf_counter()
        listener = _ProgressListener(context.events, context.counts, self._edges_left())
        self._listener = listener
        with context.engine.subscribed(self._topic, listener):
            states = self._search(self.states, seconds, most)
            # This waits for the tasks.
            self._records = context.engine.peek(states, _record, context.engine.partition_workers)
        passed = time.perf_counter() - started
        self._seconds += passed
        self.stop_seconds = passed - listener.seconds
        self.states = states

    def _edges_left(self) -> dict[int, int]:
        """Part that reports progress → edges left there, as last reported"""
        return {0: sum(c.owned for c in self.context.counts)}

    def end(self) -> BoundingResult:
        """End the search, with λ or an interval for each edge. Edges whose λ is not known are unsettled."""
        if self.states is None:
            self.exchange(0)
        states = self.states or []
        ends = self._intervals(states)
        unsettled = sum(self.context.engine.peek(ends, attrgetter("unsettled"), self.context.engine.partition_workers))
        levels = max(record.levels for record in self._records)
        evaluations = sum(record.evaluations for record in self._records)
        self._report_exchanges(levels, evaluations, unsettled)
        record = BoundingRecord(
            method=self.name,
            steps=levels,
            exchanges=self.exchanges,
            evaluations=evaluations,
            shards=self.shards,
            bands=self.bands,
            compact_rows=self.compact_rows,
        )
        return BoundingResult(ends, record, not unsettled)

    @abstractmethod
    def _intervals(self, states: Sequence[Future]) -> list[Future]:
        """[partitions] Intervals of the owned edges."""

    @abstractmethod
    def _search(self, before: Sequence[Future] | None, seconds: float | None, most: int | None) -> list[Future]:
        """[partitions] the state after at most `seconds` or `most` iterations, from the states `before`"""

    def _report_exchanges(self, levels: int, evaluations: int, unsettled: int) -> None:  # noqa: B027
        """Report the exchanges that were not reported before."""


def state_lost() -> NoReturn:
    """Task: takes the place of a task whose lost state cannot be computed again. Raises StateLost."""
    raise StateLost("a worker died with unsaved bounding state; run again to resume from the last checkpoint")


class _ProgressListener:
    """Emits the event `level` for each progress report; `left` has the edges left by part.

    Dask may keep a listener after its subscription has ended, so this class refers to no futures.
    """

    def __init__(self, events: Events, counts: Sequence[PartitionCounts], left: dict[int, int]) -> None:
        self._events, self._edges, self._left = events, sum(c.owned for c in counts), left
        self._first: float | None = None
        self._lock = Lock()
        self.seconds = 0.0
        """Time between the first report, when the search begins, and the last one."""

    def __call__(self, fields: Mapping[str, int]) -> None:
        now = time.perf_counter()
        with self._lock:
            self._first = self._first or now
            self.seconds = now - self._first
            self._left[fields["part"]] = fields["unsettled"]
            unsettled = sum(self._left.values())
        self._events.emit("level", level=fields["level"], unsettled=unsettled, edges=self._edges)


class _Record(NamedTuple):
    """Figures of one partition's search."""

    level: int
    levels: int
    evaluations: int
    left: int
    exchanges: int


def _record(state: Any) -> _Record:
    return _Record(state.level, state.levels, state.evaluations, state.left, state.exchanges)


class PeelAlone(Schedule):
    """Peels the only partition. `compact_rows` is whether a plan for a GPU expects that other rows do not fit."""

    def __init__(self, context: BoundingContext, compact_rows: bool = False) -> None:
        super().__init__(context)
        self.compact_rows = compact_rows

    @property
    def reached(self) -> dict[str, int]:
        """The next level, and the edges that are left."""
        return super().reached | {"unsettled": self._records[0].left} if self._records else super().reached

    def _search(self, before: Sequence[Future] | None, seconds: float | None, most: int | None) -> list[Future]:
        context = self.context
        how = None if before is None else before[0], seconds, self._topic, context.record_order
        states = [context.engine.submit("peel", _peel_alone, context.subgraphs[0], *how)]
        context.beside()
        return states

    def _intervals(self, states: Sequence[Future]) -> list[Future]:
        return self.context.engine.map("intervals", peel_intervals, [(self.context.subgraphs[0], states[0])])

    def end(self) -> BoundingResult:
        """End the search, with the peeling if its order was to be recorded."""
        found = super().end()
        if not self.context.record_order or self.states is None:
            return found
        return replace(found, peeled=self.states[0])


def _peel_alone(
    graph: Subgraph | WholeGraph, before: Peeled | None, seconds: float | None, topic: str, record: bool
) -> Peeled:
    leave_pool()
    return peel(graph, before, seconds, progress_reporter(topic), record=record)
