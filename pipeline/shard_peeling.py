"""Peeling of a graph that is stored once: a task on each worker, all at once, which tell each other what they remove.

Each worker holds a group of shards. When a worker is lost the other tasks end, and the search starts again from the
last checkpoint. With fewer workers than groups a worker holds several.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import getitem
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from distributed import get_worker

from .. import kernels
from ..kernels.cpu.shards import MEMORY, Room
from ..tasks.bound.intervals import Intervals
from ..tasks.errors import StateLost
from ..tasks.messages import bundle
from ..tasks.shards import Figures, FileRoom, ShardEdges, ShardOnGpu, ShardState, peel_groups_on_gpu
from ..tasks.shards.mail_ways import MAILBOXES, NCCL
from ..tasks.shards.together import peel_groups
from .carrier_choice import CarrierKind
from .carriers import Meeting
from .engine import Future
from .manifest import ExchangeRecord, ShardsRecord
from .peeling import Peeling, teller
from .rounds import Outcome
from .schedule import Search

__all__ = ["PeelShards"]


class PeelShards(Peeling):
    """Peels groups of shards in step. What they tell each other is counted as one exchange of the run."""

    def __init__(self, search: Search, resident_bytes: int | None) -> None:
        """Rows lie in memory; with `resident_bytes` in files, of which each worker keeps so much in memory."""
        super().__init__(search)
        self._resident_bytes = resident_bytes
        self._carrier: CarrierKind = "memory"

    @property
    def reached(self) -> dict[str, int]:
        """The level that comes next, the exchanges that groups have made, and the edges of the graph that are left."""
        if not self._records:
            return super().reached
        first = self._records[0]  # these figures are the same in all groups
        return super().reached | {"exchange": first.exchanges, "unsettled": first.left}

    def _peel(self, before: Sequence[Future] | None, seconds: float | None) -> list[Future]:
        engine, edges = self.search.engine, self.search.subgraphs
        engine.meet()
        # Tasks of two runs in the way of each other would wait until both give up.
        with engine.alone("peeling"):
            meeting = Meeting.of(engine, len(edges), self.search.settings.carrier)
            engine.spread(meeting.workers)
            arguments = [
                (
                    meeting,
                    worker,
                    [edges[g] for g in meeting.held_by(worker)],
                    None if before is None else [before[g] for g in meeting.held_by(worker)],
                    seconds,
                    engine.capacity.threads,
                    self._resident_bytes,
                    self.search.settings.carrier,
                    self._topic if worker == 0 else None,
                )
                for worker in range(meeting.workers)
            ]
            tasks = engine.together("peel", _peel_groups, arguments)
        self._carrier = meeting.choice.kind
        workers = meeting.workers
        places = [(tasks[g % workers], g // workers) for g in range(len(edges))]
        found = engine.map("peeled", getitem, places, [g % workers for g in range(len(edges))])
        engine.wait_beside(found, tasks)
        # Alone, a group cannot be peeled again.
        return engine.detach("peel-held", found, _lost, [()] * len(found))

    def _intervals(self, states: Sequence[Future]) -> list[Future]:
        return self.search.engine.map("intervals", _intervals, [(state,) for state in states], self.search.engine.homes)

    def _tell(self, levels: int, evaluations: int, unsettled: int) -> None:
        assert self.round is not None
        self.exchanges = 1
        told = self.search.engine.peek(self.round.states, _figures, self.search.engine.homes)
        figures = [own for own, _, _ in told]
        entries = np.array([count for own in figures for count in own.entries], np.int64)
        self.shards = ShardsRecord(
            shards=len(entries),
            groups=len(figures),
            carrier=told[0][1] or self._carrier,
            relayed=told[0][2],
            exchanges=max(own.exchanges for own in figures),
            rounds=max(own.rounds for own in figures),
            alarms=sum(own.alarms for own in figures),
            reports=sum(own.reports for own in figures),
            grants=sum(own.grants for own in figures),
            bytes=sum(own.bytes for own in figures),
            busiest=round(float(entries.max() / entries.mean()), 3) if entries.any() else 1.0,
        )
        self.search.events.exchange(
            ExchangeRecord(
                exchange=1,
                step=levels,
                open_bands=0,
                settled=sum(c.owned for c in self.search.counts) - unsettled,
                unsettled=unsettled,
                messages=self.shards.alarms + self.shards.reports + self.shards.grants,
                bytes=self.shards.bytes,
                evaluations=evaluations,
                seconds=self._seconds,
            )
        )


def _lost() -> NoReturn:
    raise StateLost("a worker is lost, and what it held of the search for λ with it; run again")


def _peel_groups(
    meeting: Meeting,
    worker: int,
    edges: Sequence[ShardEdges],
    before: Sequence[Outcome] | None,
    seconds: float | None,
    threads: int,
    resident_bytes: int | None,
    way: str,
    topic: str | None,
) -> list[Outcome]:
    """Task: peel the groups of one worker, where their edges lie."""
    states = None if before is None else [outcome.state for outcome in before]
    found: Sequence[ShardState | ShardOnGpu]
    with meeting.carriers_of(worker) as carriers:
        if not kernels.on_host(edges[0].low):
            found = peel_groups_on_gpu(edges, carriers, states, seconds, teller(topic), way=way)
        else:
            with _room(resident_bytes) as room:
                found = peel_groups(edges, carriers, states, seconds, teller(topic), threads=threads, room=room)
    return [Outcome(state, bundle(state.group, {}), None) for state in found]


def _room(resident_bytes: int | None) -> AbstractContextManager[Room]:
    """Where rows lie: in memory, or in files of the worker, of which so many bytes stay in memory."""
    return (
        nullcontext(MEMORY) if resident_bytes is None else FileRoom(Path(get_worker().local_directory), resident_bytes)
    )


def _intervals(outcome: Outcome) -> Intervals:
    state: ShardState | ShardOnGpu = outcome.state
    return Intervals(state.low, state.low if state.finished else state.high)


def _figures(outcome: Any) -> tuple[Figures, str, str]:
    """Of a group; the way of its mail, if its carrier only brought the groups together; and why threads carried it."""
    state: ShardState | ShardOnGpu = outcome.state
    if not isinstance(state, ShardOnGpu):
        return state.figures, "", ""
    return state.figures, state.way if state.way in (MAILBOXES, NCCL) else "", state.why
