"""Peeling in shards: a gang of one task on each worker, which exchange the edges that they remove.

Each worker holds a group of shards, or several with fewer workers than groups. When a worker is lost the other tasks
end, and bounding resumes from the last checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import getitem
from typing import Any

import numpy as np

from ... import kernels
from ...kernels.cpu.shards import NUMPY_ALLOCATOR, Allocator
from ...tasks.bound.intervals import Intervals
from ...tasks.shards import Figures, FileAllocator, ShardEdges, ShardOnGpu, ShardState, peel_groups_on_gpu
from ...tasks.shards.gpu.shard import MAILBOXES, NCCL
from ...tasks.shards.peeling import peel_groups
from ..cluster.carriers import CarrierKind, Communicator
from ..cluster.engine import Future
from ..cluster.this_worker import leave_pool, progress_reporter, scratch_folder
from ..output.manifest import ExchangeRecord, ShardsRecord
from .schedule import BoundingContext, Schedule, state_lost


def peel_groups_of_worker(
    communicator: Communicator,
    worker: int,
    edges: Sequence[ShardEdges],
    before: Sequence[Any] | None,
    seconds: float | None,
    threads: int,
    resident_bytes: int | None,
    until: int,
    way: str,
    topic: str | None,
) -> list[ShardState | ShardOnGpu]:
    """Task: peel the groups of one worker, on the device with their edges; on CPUs until at most `until` edges of the
    graph remain.
    """
    leave_pool()
    found: Sequence[ShardState | ShardOnGpu]
    report = progress_reporter(topic)
    with communicator.open_carriers(worker) as carriers:
        if not kernels.on_host(edges[0].low):
            found = peel_groups_on_gpu(edges, carriers, before, seconds, report, way=way)
        else:
            with _allocator(resident_bytes) as allocator:
                own = edges, carriers, before, seconds, report
                found = peel_groups(*own, threads=threads, until=until, allocator=allocator)
    return list(found)


def _allocator(resident_bytes: int | None) -> AbstractContextManager[Allocator]:
    """The allocator of rows: in memory, or in files of the worker with `resident_bytes` of them in memory."""
    return nullcontext(NUMPY_ALLOCATOR) if resident_bytes is None else FileAllocator(scratch_folder(), resident_bytes)


def intervals_of(state: ShardState | ShardOnGpu) -> Intervals:
    """Task: intervals of the edges that a group owns."""
    return Intervals(state.low, state.low if state.finished else state.high)


def figures_of(state: ShardState | ShardOnGpu) -> tuple[Figures, str, str]:
    """Figures of a group; its transport, if GPUs sent the packets themselves; and, if they did not, why."""
    if not isinstance(state, ShardOnGpu):
        return state.figures, "", ""
    return state.figures, state.way if state.way in (MAILBOXES, NCCL) else "", state.why


class PeelShards(Schedule):
    """Peels groups of shards in lockstep. All messages between them count as one exchange of the run."""

    def __init__(self, context: BoundingContext, resident_bytes: int | None, until: int = 0) -> None:
        """Rows are in memory or, with `resident_bytes`, in files of which each worker keeps that much in memory. Groups
        on CPUs stop between two levels when at most `until` edges of the graph remain.
        """
        super().__init__(context)
        self._resident_bytes, self._until = resident_bytes, until
        self._carrier: CarrierKind = "memory"
        self.handed_over = 0
        """Number of edges that shards left to another method."""

    @property
    def reached(self) -> dict[str, int]:
        """The next level, the exchanges between groups so far, and the edges of the graph that are left."""
        if not self._records:
            return super().reached
        first = self._records[0]  # these figures are the same in all groups
        return super().reached | {"exchange": first.exchanges, "unsettled": first.left}

    def _search(self, before: Sequence[Future] | None, seconds: float | None, most: int | None) -> list[Future]:
        engine, edges = self.context.engine, self.context.subgraphs
        engine.refresh_workers()
        with engine.exclusive("peeling"):
            communicator = Communicator.of(engine, len(edges), self.context.settings.carrier)
            engine = engine.for_tasks(communicator.workers)
            arguments = [
                (
                    communicator,
                    worker,
                    [edges[g] for g in communicator.groups_of(worker)],
                    None if before is None else [before[g] for g in communicator.groups_of(worker)],
                    seconds,
                    engine.capacity.kernel_threads,
                    self._resident_bytes,
                    self._until,
                    self.context.settings.carrier,
                    self._topic if worker == 0 else None,
                )
                for worker in range(communicator.workers)
            ]
            tasks = engine.run_gang("peel", peel_groups_of_worker, arguments, self.context.beside)
        self._carrier = communicator.choice.kind
        workers = communicator.workers
        places = [(tasks[g % workers], g // workers) for g in range(len(edges))]
        found = engine.map("peeled", getitem, places, [g % workers for g in range(len(edges))])
        engine.wait_with_gang(found, tasks)
        # A group cannot be peeled again without the others.
        return engine.cut_lineage("peel-held", found, state_lost, [()] * len(found))

    def _intervals(self, states: Sequence[Future]) -> list[Future]:
        return self.context.engine.map(
            "intervals", intervals_of, [(state,) for state in states], self.context.engine.partition_workers
        )

    def _report_exchanges(self, levels: int, evaluations: int, unsettled: int) -> None:
        assert self.states is not None
        self.exchanges = 1
        figures_by_group = self.context.engine.peek(self.states, figures_of, self.context.engine.partition_workers)
        figures = [own for own, _, _ in figures_by_group]
        entries = np.array([count for own in figures for count in own.entries], np.int64)
        self.shards = ShardsRecord(
            shards=len(entries),
            groups=len(figures),
            carrier=figures_by_group[0][1] or self._carrier,
            relayed=figures_by_group[0][2],
            exchanges=max(own.exchanges for own in figures),
            rounds=max(own.rounds for own in figures),
            alarms=sum(own.alarms for own in figures),
            reports=sum(own.reports for own in figures),
            grants=sum(own.grants for own in figures),
            bytes=sum(own.bytes for own in figures),
            busiest=round(float(entries.max() / entries.mean()), 3) if entries.any() else 1.0,
            handed_over=self.handed_over,
        )
        self.context.events.exchange(
            ExchangeRecord(
                exchange=1,
                step=levels,
                open_bands=0,
                settled=sum(c.owned for c in self.context.counts) - unsettled,
                unsettled=unsettled,
                messages=self.shards.alarms + self.shards.reports + self.shards.grants,
                bytes=self.shards.bytes,
                evaluations=evaluations,
                seconds=self._seconds,
            )
        )
