"""Runs a schedule until it converges or reaches a limit, and saves checkpoints. All schedules give the same λ.

A checkpoint has the state of every partition, and the driver's. It has the same form for all schedules. A run in one
process also records the order in which it peels, for the state that the next night starts from.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

import numpy as np

from ...tasks.bound.peel import Peeled
from ...tasks.graph import Subgraph
from ...tasks.ids.order import offsets
from ...tasks.ingest import OwnedRows
from ...tasks.storage.array_files import StoredFile
from ...tasks.update.order import Order
from ...tasks.update.whole import recorded_order
from ..checkpoint.checkpoint import Checkpoint, Graph, read_again
from ..cluster.engine import Engine, Future
from ..events import Events
from ..output.manifest import ExchangeRecord
from ..plan.plan import Plan
from ..settings.models import BoundingSettings
from ..stages.limits import FILL
from .schedule import BoundingContext, BoundingResult, PeelAlone, Schedule

T = TypeVar("T", int, float)


class _Limits:
    """The limits that end a run before it converges."""

    def __init__(self, settings: BoundingSettings) -> None:
        self._exchanges = settings.max_exchanges
        self._deadline = None if settings.max_seconds is None else time.monotonic() + settings.max_seconds

    def reached(self, exchanges: int) -> bool:
        if self._exchanges is not None and exchanges >= self._exchanges:
            return True
        left = self.seconds_left
        return left is not None and left <= 0

    def exchanges_left(self, exchanges: int) -> int | None:
        """How many more exchanges are allowed after `exchanges`; None for no limit."""
        return None if self._exchanges is None else self._exchanges - exchanges

    @property
    def seconds_left(self) -> float | None:
        return None if self._deadline is None else self._deadline - time.monotonic()


def bound(context: BoundingContext, plan: Plan, checkpoint: BoundingCheckpoint) -> BoundingResult:
    """Run the plan's schedule: peel, band or fixpoint. Resume from `checkpoint` if it holds the states of an earlier
    run.
    """
    limits = _Limits(context.settings)
    context = replace(context, engine=context.engine.for_tasks(len(context.subgraphs)))
    schedule = _schedule(context, plan)
    found = checkpoint.load()
    if found is None:
        context.events.exchanges.clear()
    else:
        schedule.resume(*found)
    context.events.reached = schedule.reached
    while not schedule.done and not limits.reached(schedule.exchanges):
        most = _shorter(limits.exchanges_left(schedule.exchanges), checkpoint.exchanges_left(schedule.exchanges))
        schedule.exchange(_shorter(limits.seconds_left, checkpoint.seconds_left), most)
        checkpoint.stop_seconds = schedule.stop_seconds
        if schedule.states is not None and not schedule.done and checkpoint.due(schedule.exchanges):
            schedule.states = checkpoint.save(schedule.states, schedule.facts, schedule.reached)
    return schedule.end()


def _schedule(context: BoundingContext, plan: Plan) -> Schedule:
    if plan.in_shards:
        resident = plan.resident_bytes if plan.on_disk else None
        if not plan.on_device:
            from .shards_then_bands import ShardsThenBands  # imports shards and bands, and their kernels

            return ShardsThenBands(context, resident, plan.bands_at, plan.bands_on)
        from .shard_peeling import PeelShards  # imports kernels

        return PeelShards(context, resident)
    if plan.method in ("band", "fixpoint"):
        from .on_copies import OnCopies  # imports kernels for CPUs

        return OnCopies(context, plan.method, plan.band_workers)
    if plan.in_bands:
        from .peel_bands import PeelBands  # imports bands and their kernels

        return PeelBands(context, plan.band_workers, plan.band_helpers)
    return PeelAlone(context, plan.compact_rows)


def _shorter(one: T | None, other: T | None) -> T | None:
    return min((given for given in (one, other) if given is not None), default=None)


_NAME = "progress"


class BoundingCheckpoint:
    """Stores the state of bounding one graph in a checkpoint. A run resumes only if its values of `how` are the same.

    With `in_parts` the edges of the buckets are in host memory while the graph is bounded.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        graph: Graph,
        engine: Engine,
        events: Events,
        how: Mapping[str, Any],
        in_parts: bool = False,
    ) -> None:
        self._checkpoint, self._graph, self._engine, self._events = checkpoint, graph, engine, events
        self._how, self._in_parts = how, in_parts
        self.stop_seconds = 0.0
        """Seconds that it takes to stop the search and to start it again."""
        self.saves = 0
        """Number of checkpoints that were saved."""

    def due(self, exchanges: int) -> bool:
        """Whether to save a checkpoint after this number of exchanges."""
        every = self._checkpoint.settings.every_exchanges
        left = self.seconds_left
        return (left is not None and left <= 0) or bool(exchanges and every is not None and exchanges % every == 0)

    def exchanges_left(self, exchanges: int) -> int | None:
        """Exchanges until the next checkpoint is due, after `exchanges`; None for no limit."""
        every = self._checkpoint.settings.every_exchanges
        return None if every is None else every - exchanges % every

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the next checkpoint is due; None for no limit."""
        return self._checkpoint.seconds_left(self._events, _NAME, self.stop_seconds)

    def save(self, states: list[Future], facts: Mapping[str, Any], reached: Mapping[str, int]) -> list[Future]:
        """Save a checkpoint, with the progress `reached`. Returns the states to continue with. Their lineage is cut: a
        lost state is read from the checkpoint.
        """
        with self._checkpoint.saving(_NAME, self.stop_seconds):
            if self._checkpoint.graph is None:
                self._checkpoint.save_graph(self._engine, self._events, self._graph)
                if self._in_parts:
                    self._graph.buckets.move_to_host(self._engine)
            index = self._checkpoint.save(
                self._engine,
                _NAME,
                {"states": [(state,) for state in states]},
                _store,
                {
                    "made_of": self._made_of,
                    "search": facts,
                    "reached": reached,
                    "exchanges": [asdict(record) for record in self._events.exchanges],
                },
                keep_before=True,
            )
            states = self._engine.cut_lineage("states-kept", states, _read_again, self._files(index))
        self.saves += 1
        self._events.emit("kept", **reached)
        return states

    def load(self) -> tuple[Mapping[str, Any], list[Future]] | None:
        """The facts and the states of an earlier run with the same graph and `how`; None if there are none."""
        if self._checkpoint.graph is None:
            return None
        found = self._checkpoint.load(
            self._engine,
            self._events,
            _NAME,
            lambda index: self._checkpoint.check(index, self._made_of),
            self._restored,
        )
        if found is None:
            return None
        facts, futures = found
        try:
            exchanges = [ExchangeRecord(**record) for record in facts["exchanges"]]
            search, states = facts["search"], futures["states"]
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            reason = f"the checkpoint {self._checkpoint.place} is damaged: {_NAME}.json: {error!r}"
            self._checkpoint.refuse(self._events, reason)
            return None
        self._events.exchanges[:] = exchanges
        return search, states

    @property
    def _made_of(self) -> dict[str, Any]:
        return {"graph": self._checkpoint.graph, **self._how}

    def _files(self, index: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return [(StoredFile(**file), self._checkpoint.options) for file in index["files"]["states"]]

    def _restored(self, engine: Engine, index: Mapping[str, Any]) -> dict[str, list[Future]]:
        return {"states": engine.map("restore-states", _restore, self._files(index), engine.partition_workers)}


def _store(url: str, options: Mapping[str, Any], state: Any) -> StoredFile:
    from ...tasks.checkpoint_values import store  # imports kernels

    return store(getattr(state, "kept", state), url, options)


def _restore(stored: StoredFile, options: Mapping[str, Any]) -> Any:
    from ...tasks.checkpoint_values import restore

    return restore(stored, options)


def _read_again(stored: StoredFile, options: Mapping[str, Any]) -> Any:
    return read_again(stored, options, _restore)


RECORD_BYTES = 36
"""Memory of an edge for the record of a peeling, and for the order that is made of it."""


def records_order(engine: Engine, plan: Plan) -> bool:
    """Whether peeling can record its order: in this process, on CPUs, where there is memory for it."""
    if not engine.shares_memory or plan.on_device or plan.in_shards or plan.partitions > 1:
        return False
    limit = plan.capacity.memory_bytes
    return not limit or plan.worker_bytes + RECORD_BYTES * plan.edges <= FILL * limit


def order_of_rows(
    engine: Engine,
    bounded: BoundingResult,
    rows: Sequence[Future],
    subgraphs: Sequence[Future],
    edges: Sequence[Future],
) -> Future | None:
    """A future of the Order of the result's rows, or of None if there is no record; None if no record was requested.

    `rows` and `subgraphs` [1] are OwnedRows and Subgraph, `edges` [buckets] BucketEdges.
    """
    if bounded.peeled is None or not bounded.converged:
        return None
    sizes = engine.peek(edges, len)
    return engine.for_tasks(1).submit("order", _order_of, rows[0], subgraphs[0], bounded.peeled, sizes)


def _order_of(owned: OwnedRows, subgraph: Subgraph, peeled: Peeled, sizes: Sequence[int]) -> Order | None:
    """Task: the order of the peeling. `sizes` [buckets] are numbers of edges."""
    starts = offsets(np.array(sizes, np.int64)).astype(np.int32)
    return recorded_order(starts[owned.bucket] + owned.row, subgraph, peeled)
