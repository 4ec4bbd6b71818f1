"""The methods for study, `fixpoint` and `band`: on one worker, or on several that each hold a copy of the graph.

A gang of one task on each worker iterates until λ is known, or until a checkpoint or limit is due. If a worker is lost,
the next attempt resumes from the last checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from ...tasks.bands.copies import GraphCopy, graph_copy
from ...tasks.bands.sums import WorkerSums
from ...tasks.bound.bisection import Halves, bisection_intervals, halve_bands, start_halves
from ...tasks.bound.fixpoint import Bounds, Operator, fixpoint_intervals, lower_bounds, start_bounds
from ...tasks.bound.intervals import Intervals
from ...tasks.bound.iterations import Iteration
from ...tasks.graph import Subgraph
from ..cluster.carriers import Communicator
from ..cluster.engine import Future
from ..cluster.this_worker import leave_pool, progress_reporter
from ..output.manifest import ExchangeRecord
from .peel_bands import gang_of, one_carrier
from .schedule import BoundingContext, Schedule, state_lost

State: TypeAlias = Bounds | Halves


class OnCopies(Schedule):
    """Narrows bounds in iterations, each of which is recorded as an exchange."""

    def __init__(self, context: BoundingContext, method: str, most_workers: int) -> None:
        """Search by the method `band` or `fixpoint`, on at most `most_workers` workers."""
        super().__init__(context)
        self.name, self._most_workers = method, most_workers
        self._operator: Operator = "tridn" if context.settings.operator == "tridn" else "hindex"

    def resume(self, facts: Mapping[str, Any], states: list[Future]) -> None:
        """Resume from a checkpoint, after the iterations that the context's events hold."""
        super().resume(facts, states)
        self.exchanges = len(self.context.events.exchanges)

    @property
    def reached(self) -> dict[str, int]:
        """Iterations so far, and the edges whose λ is not known."""
        known = {"unsettled": self._records[0].left} if self._records else {}
        return {"exchange": self.exchanges, **known}

    def exchange(self, seconds: float | None, most: int | None = None) -> None:
        """Iterate for at most `seconds` and the rest of an iteration, and at most `most` times."""
        super().exchange(seconds, most)
        events, total = self.context.events, sum(c.owned for c in self.context.counts)
        assert self.states is not None
        (rows,) = self.context.engine.peek(self.states, partial(_iterations, len(events.exchanges)))
        for row in rows:
            own = Iteration(*row)
            self.exchanges += 1
            events.exchange(
                ExchangeRecord(
                    exchange=self.exchanges,
                    step=self.exchanges,
                    open_bands=own.open_bands,
                    settled=total - own.unsettled,
                    unsettled=own.unsettled,
                    messages=own.messages,
                    bytes=own.bytes,
                    evaluations=own.evaluations,
                    seconds=own.microseconds / 1e6,
                )
            )

    def _search(self, before: Sequence[Future] | None, seconds: float | None, most: int | None) -> list[Future]:
        context, engine = self.context, self.context.engine
        deadline = None if seconds is None else time.monotonic() + seconds
        state = None if before is None else before[0]
        how = self.name, self._operator, most, seconds
        if self._most_workers == 1:
            states = [engine.submit(self.name, _search_alone, context.subgraphs[0], state, *how, self._topic)]
            context.beside()
            return states
        engine.refresh_workers()
        with engine.exclusive("peeling"):
            addresses, communicator = gang_of(engine, context.settings.carrier, self._most_workers)
            graph = engine.submit("graph-copy", graph_copy, context.subgraphs[0])
            how = *how[:-1], None if deadline is None else deadline - time.monotonic()
            arguments = [
                (communicator, w, graph, state, *how, self._topic if w == 0 else None) for w in range(len(addresses))
            ]
            tasks = engine.start_on(self.name, _search_on_worker, arguments, addresses)
            context.beside()
            engine.wait_for_gang(tasks, addresses)
            # The task could not run again alone: it waits for the others of its gang.
            return engine.cut_lineage(f"{self.name}-held", tasks[:1], state_lost, [()])

    def _intervals(self, states: Sequence[Future]) -> list[Future]:
        return self.context.engine.map("intervals", _intervals_of, [(self.context.subgraphs[0], states[0])])


def _iterations(first: int, state: State) -> list[list[int]]:
    rows: list[list[int]] = state.iterations[first:].tolist()
    return rows


def _intervals_of(subgraph: Subgraph, state: State) -> Intervals:
    """Task: the interval of each edge."""
    if isinstance(state, Halves):
        return bisection_intervals(subgraph, state)
    return fixpoint_intervals(subgraph, state)


def _search_alone(subgraph: Subgraph, before: State | None, method: str, operator: Operator, *how: Any) -> State:
    """Task: the search of one worker, where its graph is."""
    leave_pool()
    graph = subgraph.topology, subgraph.first_counts()
    return _iterate(*graph, before, method, operator, None, *how)


def _search_on_worker(
    communicator: Communicator,
    worker: int,
    graph: GraphCopy,
    before: State | None,
    method: str,
    operator: Operator,
    *how: Any,
) -> State:
    """Task: the search on one of several workers."""
    leave_pool()
    with one_carrier(communicator, worker) as carrier:
        return _iterate(graph.topology(), graph.support, before, method, operator, WorkerSums(carrier), *how)


def _iterate(
    topology: Any,
    support: Any,
    before: State | None,
    method: str,
    operator: Operator,
    sums: WorkerSums | None,
    most: int | None,
    seconds: float | None,
    topic: str | None,
) -> State:
    report: Callable[[int, int], None] = progress_reporter(topic)
    if method == "band":
        halves = before if isinstance(before, Halves) else start_halves(support)
        return halve_bands(topology, halves, sums, most, seconds, report)
    bounds = before if isinstance(before, Bounds) else start_bounds(support)
    return lower_bounds(topology, bounds, operator, sums, most, seconds, report)
