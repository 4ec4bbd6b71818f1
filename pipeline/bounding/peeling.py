"""Peeling of a single partition, and what it has in common with peeling in shards (`shard_peeling`).

One task peels from the first level to the last, or until a checkpoint is due; the next task resumes from there.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from threading import Lock
from typing import Any, NamedTuple

from ...tasks.bound.peel import peel, peel_intervals
from ...tasks.graph.subgraph import PartitionCounts, Subgraph
from ...tasks.graph.whole_graph import WholeGraph
from ...tasks.messages import bundle
from ..cluster.engine import Future
from ..cluster.this_worker import leave_pool, progress_reporter
from ..monitor.events import Events
from ..output.manifest import BandsRecord, BoundingRecord, ShardsRecord
from .rounds import Outcome, Round, end
from .schedule import BoundingContext, BoundingResult, Schedule


class Peeling(Schedule):
    """The state of peeling between two tasks. A task is not counted as an exchange."""

    name = "peel"
    shards: ShardsRecord | None = None
    """The record of peeling in shards, once it is finished."""
    bands: BandsRecord | None = None
    """The record of peeling in bands, once it is finished."""
    compact_rows = False
    """Whether rows take less of a GPU's memory, at the cost of time."""

    def __init__(self, context: BoundingContext) -> None:
        super().__init__(context)
        self._topic = f"edgemill-{context.engine.run_id}"
        self._records: list[_PeelRecord] = []
        self._seconds = 0.0

    def start(self) -> None:
        """Nothing to do: the first task does it."""
        pass

    def resume(self, facts: Mapping[str, Any], round_: Round) -> None:
        self.round, self._seconds = round_, facts["seconds"]
        self._records = self.context.engine.peek(round_.states, _record, self.context.engine.partition_workers)

    @property
    def facts(self) -> dict[str, Any]:
        """Seconds so far."""
        return {"seconds": self._seconds}

    @property
    def reached(self) -> dict[str, int]:
        """The next level."""
        return {"level": max((record.level for record in self._records), default=0)}

    @property
    def done(self) -> bool:
        """Whether no edge is left."""
        return self.round is not None and not any(record.left for record in self._records)

    def exchange(self, seconds: float | None) -> None:
        """Peel for at most `seconds` and the rest of a level."""
        context, started = self.context, time.perf_counter()
        before = None if self.round is None else self.round.states
        listener = _ProgressListener(context.events, context.counts, self._edges_left())
        self._listener = listener
        with context.engine.subscribed(self._topic, listener):
            states = self._peel(before, seconds)
            # This waits for the tasks.
            self._records = context.engine.peek(states, _record, context.engine.partition_workers)
        passed = time.perf_counter() - started
        self._seconds += passed
        self.stop_seconds = passed - listener.seconds
        self.round = Round(context.engine, self.name, states)

    def _edges_left(self) -> dict[int, int]:
        """Part that reports progress → edges left there, as last reported"""
        return {0: sum(c.owned for c in self.context.counts)}

    def end(self) -> BoundingResult:
        """Intervals of all edges. Edges that are left are unsettled."""
        if self.round is None:
            self.exchange(0)
        states = [] if self.round is None else self.round.states
        ends = self._intervals(states)
        unsettled = sum(self.context.engine.peek(ends, attrgetter("unsettled"), self.context.engine.partition_workers))
        levels = max(record.levels for record in self._records)
        evaluations = sum(record.evaluations for record in self._records)
        self._report_exchanges(levels, evaluations, unsettled)
        record = BoundingRecord(
            method="peel",
            steps=levels,
            exchanges=self.exchanges,
            evaluations=evaluations,
            shards=self.shards,
            bands=self.bands,
            compact_rows=self.compact_rows,
        )
        return BoundingResult(ends, record, not unsettled)

    def _intervals(self, states: Sequence[Future]) -> list[Future]:
        """[partitions] Intervals of the owned edges."""
        both = zip(self.context.subgraphs, states, strict=True)
        return self.context.engine.map("intervals", end, [(peel_intervals, s, state) for s, state in both])

    @abstractmethod
    def _peel(self, before: Sequence[Future] | None, seconds: float | None) -> list[Future]:
        """[partitions] Outcome, after at most `seconds`"""

    @abstractmethod
    def _report_exchanges(self, levels: int, evaluations: int, unsettled: int) -> None:
        """Report the exchanges between groups."""


class PeelAlone(Peeling):
    """Peels the only partition. `compact_rows` is whether a plan for a GPU expects that other rows do not fit."""

    def __init__(self, context: BoundingContext, compact_rows: bool = False) -> None:
        super().__init__(context)
        self.compact_rows = compact_rows

    @property
    def reached(self) -> dict[str, int]:
        """The next level, and the edges that are left."""
        return super().reached | {"unsettled": self._records[0].left} if self._records else super().reached

    def _peel(self, before: Sequence[Future] | None, seconds: float | None) -> list[Future]:
        context = self.context
        how = None if before is None else before[0], seconds, self._topic, context.record_order
        states = [context.engine.submit("peel", _peel_alone, context.subgraphs[0], *how)]
        context.beside()
        return states

    def end(self) -> BoundingResult:
        found = super().end()
        if not self.context.record_order or self.round is None:
            return found
        return replace(found, peeled=self.round.states[0])

    def _report_exchanges(self, levels: int, evaluations: int, unsettled: int) -> None:
        pass


def _peel_alone(
    graph: Subgraph | WholeGraph, before: Outcome | None, seconds: float | None, topic: str, record: bool
) -> Outcome:
    leave_pool()
    peeled = peel(graph, before and before.state, seconds, progress_reporter(topic), record=record)
    return Outcome(peeled, bundle(graph.partition, {}), None)


class _ProgressListener:
    """Emits the event `level` for each progress report; `left` has the edges left by part.

    Dask may keep it after it has unsubscribed, so it refers to no futures.
    """

    def __init__(self, events: Events, counts: Sequence[PartitionCounts], left: dict[int, int]) -> None:
        self._events, self._edges, self._left = events, sum(c.owned for c in counts), left
        self._first: float | None = None
        self._lock = Lock()
        self.seconds = 0.0
        """Time between the first report, when peeling begins, and the last one."""

    def __call__(self, fields: Mapping[str, int]) -> None:
        now = time.perf_counter()
        with self._lock:
            self._first = self._first or now
            self.seconds = now - self._first
            self._left[fields["part"]] = fields["unsettled"]
            unsettled = sum(self._left.values())
        self._events.emit("level", level=fields["level"], unsettled=unsettled, edges=self._edges)


class _PeelRecord(NamedTuple):
    """Figures of one partition's peeling."""

    level: int
    levels: int
    evaluations: int
    left: int
    exchanges: int


def _record(outcome: Outcome) -> _PeelRecord:
    peeled = outcome.state
    return _PeelRecord(peeled.level, peeled.levels, peeled.evaluations, peeled.left, peeled.exchanges)
