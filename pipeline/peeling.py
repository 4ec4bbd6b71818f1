"""Peeling: one partition alone, or shards in step (`shard_peeling`). One task each from the first level to the last, or
until it is time to keep what it has come to; the next goes on from there.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from threading import Lock
from typing import Any, NamedTuple

from distributed import get_worker
from distributed.core import Status

from ..tasks.bound.peel import Peeled, peel, peel_intervals
from ..tasks.errors import ClusterLost
from ..tasks.messages import bundle
from ..tasks.subgraph import PartitionCounts, Subgraph
from .engine import Future
from .manifest import BoundingRecord, ShardsRecord
from .rounds import Outcome, Round, end
from .schedule import Bounded, Schedule, Search
from .telemetry import Events

__all__ = ["PeelAlone", "Peeling", "teller"]

_PROGRESS_SECONDS = 0.2
"""How often peeling tells its level."""
_GONE = (Status.closing, Status.closed, Status.failed)


class Peeling(Schedule):
    """Peeling between two tasks, which it counts as no exchanges."""

    name = "peel"
    shards: ShardsRecord | None = None
    """How shards were peeled, once they are."""
    compact_rows = False
    """Whether rows take less of a GPU's memory, and more time."""

    def __init__(self, search: Search) -> None:
        super().__init__(search)
        self._topic = f"edgemill-{search.engine.run_id}"
        self._records: list[_PeelRecord] = []
        self._seconds = 0.0

    def start(self) -> None:
        """Nothing to do: the first task does it."""
        pass

    def resume(self, facts: Mapping[str, Any], round_: Round) -> None:
        """Go on from there."""
        self.round, self._seconds = round_, facts["seconds"]
        self._records = self.search.engine.peek(round_.states, _record, self.search.engine.homes)

    @property
    def facts(self) -> dict[str, Any]:
        """The time it has taken."""
        return {"seconds": self._seconds}

    @property
    def reached(self) -> dict[str, int]:
        """The level that comes next."""
        return {"level": max((record.level for record in self._records), default=0)}

    @property
    def done(self) -> bool:
        """Whether no edge is left."""
        return self.round is not None and not any(record.left for record in self._records)

    def exchange(self, seconds: float | None) -> None:
        """Peel, at most for so many seconds and the rest of a level."""
        search, started = self.search, time.perf_counter()
        before = None if self.round is None else self.round.states
        with search.engine.listening(self._topic, _hearer(search.events, search.counts, self._left())):
            states = self._peel(before, seconds)
            self._records = search.engine.peek(states, _record, search.engine.homes)  # which waits for them
        self._seconds += time.perf_counter() - started
        self.round = Round(search.engine, self.name, states)

    def _left(self) -> dict[int, int]:
        """Who tells of its progress → edges that are left there, as far as that is known."""
        return {0: sum(c.owned for c in self.search.counts)}

    def end(self) -> Bounded:
        """Take those that are left as unsettled."""
        if self.round is None:
            self.exchange(0)
        states = [] if self.round is None else self.round.states
        ends = self._intervals(states)
        unsettled = sum(self.search.engine.peek(ends, attrgetter("unsettled"), self.search.engine.homes))
        levels = max(record.levels for record in self._records)
        evaluations = sum(record.evaluations for record in self._records)
        self._tell(levels, evaluations, unsettled)
        record = BoundingRecord(
            method="peel",
            steps=levels,
            exchanges=self.exchanges,
            evaluations=evaluations,
            shards=self.shards,
            compact_rows=self.compact_rows,
        )
        return Bounded(ends, record, not unsettled)

    def _intervals(self, states: Sequence[Future]) -> list[Future]:
        """[partitions] Intervals of the owned edges."""
        both = zip(self.search.subgraphs, states, strict=True)
        return self.search.engine.map("intervals", end, [(peel_intervals, s, state) for s, state in both])

    @abstractmethod
    def _peel(self, before: Sequence[Future] | None, seconds: float | None) -> list[Future]:
        """Outcomes by partition, after so many seconds."""

    @abstractmethod
    def _tell(self, levels: int, evaluations: int, unsettled: int) -> None:
        """Tell of the exchanges that there were."""


class PeelAlone(Peeling):
    """Peels the only partition, on a GPU in compact rows if told so."""

    def __init__(self, search: Search, compact_rows: bool = False) -> None:
        super().__init__(search)
        self.compact_rows = compact_rows

    @property
    def reached(self) -> dict[str, int]:
        """The level that comes next, and the edges that are left."""
        return super().reached | {"unsettled": self._records[0].left} if self._records else super().reached

    def _peel(self, before: Sequence[Future] | None, seconds: float | None) -> list[Future]:
        search = self.search
        earlier = None if before is None else before[0]
        return [
            search.engine.submit(
                "peel", _peel_alone, search.subgraphs[0], earlier, seconds, self._topic, self.compact_rows
            )
        ]

    def _tell(self, levels: int, evaluations: int, unsettled: int) -> None:
        pass


def _peel_alone(
    subgraph: Subgraph, before: Outcome | None, seconds: float | None, topic: str, compact_rows: bool
) -> Outcome:
    return _outcome(subgraph, peel(subgraph, before and before.state, seconds, teller(topic), compact_rows))


def _outcome(subgraph: Subgraph, peeled: Peeled) -> Outcome:
    return Outcome(peeled, bundle(subgraph.partition, {}), None)


def _hearer(events: Events, counts: Sequence[PartitionCounts], left: dict[int, int]) -> Callable[[Any], None]:
    """Makes events of what tellers say; `left` are the edges that each of them has left.

    Dask may hold it for longer than it listens: it holds no futures.
    """
    edges, lock = sum(c.owned for c in counts), Lock()

    def hear(fields: Mapping[str, int]) -> None:
        with lock:
            left[fields["part"]] = fields["unsettled"]
            unsettled = sum(left.values())
        events.emit("level", level=fields["level"], unsettled=unsettled, edges=edges)

    return hear


def teller(topic: str | None, part: int = 0) -> Callable[[int, int], None]:
    """Tells the driver of levels, from a task, now and then, if there is a `topic`. To be made in the task's thread.
    The edges that are told to be left are those of its `part`.

    What it gives raises ClusterLost in a task that nobody waits for any more, as when the driver was killed: Dask lets
    such a task run, and it would keep others from its worker.
    """
    worker = get_worker()
    key, told = worker.get_current_task(), time.monotonic()

    def tell(level: int, left: int) -> None:
        nonlocal told
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled" or worker.status in _GONE:
            raise ClusterLost("nobody waits for this task any more")
        if topic is not None and time.monotonic() - told > _PROGRESS_SECONDS:
            told = time.monotonic()
            worker.log_event(topic, {"part": part, "level": level, "unsettled": left})

    return tell


class _PeelRecord(NamedTuple):
    """What the driver learns of one partition's peeling."""

    level: int
    levels: int
    evaluations: int
    left: int
    exchanges: int


def _record(outcome: Outcome) -> _PeelRecord:
    peeled = outcome.state
    return _PeelRecord(peeled.level, peeled.levels, peeled.evaluations, peeled.left, peeled.exchanges)
