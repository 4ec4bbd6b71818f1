"""Peeling in shards until a worker can hold the remaining edges, then in bands.

When few enough edges remain, shards stop between two levels. Each group keeps λ of the removed edges. The remaining
edges are brought together on one worker. The workers that peel bands of these edges get copies from it; if all workers
share the cores of one machine, the one worker peels alone. λ goes back to the groups, which end as they do without
bands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from ...kernels.graph import MAX_LOCAL_VERTICES
from ...tasks.bands.peeling import BandState
from ...tasks.bands.remainder import (
    HandedOver,
    handed_intervals,
    intervals_of_group,
    merge_remaining,
    remaining_edges,
)
from ...tasks.bound.peel import Peeled
from ...tasks.shards import ShardState
from ..cluster.engine import Future
from .peel_bands import PeelBands
from .schedule import BoundingContext, PeelAlone, Schedule, state_lost
from .shard_peeling import PeelShards


class ShardsThenBands(PeelShards):
    """Peels groups of shards in lockstep until few edges remain, and these in bands or on one worker."""

    def __init__(
        self, context: BoundingContext, resident_bytes: int | None, bands_at: int | None, band_workers: int
    ) -> None:
        """Shards stop when at most `bands_at` edges are left, which a worker can hold; None for never.

        At most `band_workers` workers peel bands; 1 for a worker that peels alone.
        """
        vertices = sum(counts.vertices for counts in context.counts)
        super().__init__(context, resident_bytes, bands_at or 0 if vertices <= MAX_LOCAL_VERTICES else 0)
        self._band_workers = band_workers
        self._rest: Schedule | None = None
        """Peels the remaining edges, once shards have stopped for good."""
        self._owner: Future | None = None
        """The group of each remaining edge, int16"""
        self._began = False
        """Whether the peeling of the remaining edges has begun."""
        self._copies: list[Future] = []
        """[groups] HandedOver of each when shards stopped, on another worker"""

    def resume(self, facts: Mapping[str, Any], states: list[Future]) -> None:
        super().resume(facts, states)
        first = self.context.engine.peek(states[:1], _handed, self._first_worker)[0]
        if first is not None:
            self.handed_over, found = first
            self._began = found is not None
            self._go_on_with_rest(self._band_workers > 1 if found is None else found is BandState)

    @property
    def _first_worker(self) -> list[int] | None:
        """Index of the worker of the first group."""
        at = self.context.engine.partition_workers
        return at and at[:1]

    def exchange(self, seconds: float | None, most: int | None = None) -> None:
        """Peel shards, or the edges that they have left, for at most `seconds` and the rest of a level."""
        if self._rest is None:
            edges = sum(counts.owned for counts in self.context.counts)
            if self.states is None and 0 < edges <= self._until:  # shards need not be built
                self._hand_over(HandedOver.untouched, self.context.subgraphs)
                return
            super().exchange(seconds, most)
            assert self.states is not None
            if 0 < self._records[0].left <= self._until:
                self._hand_over(HandedOver.of, self.states)
            return
        assert self.states is not None
        rest, started = self._rest, time.perf_counter()
        self._put_state_into_rest()
        rest.exchange(seconds, most)
        assert rest.states is not None
        first, *others = self.states
        engine = self.context.engine
        engine.wait(self.states)  # a task that is started with a lost state would wait for ever
        own = engine.map("found", _with_found, [(first, rest.states[0])], self._first_worker)
        engine.wait(own)
        self._began = True
        self._hold([*engine.cut_lineage("found-held", own, state_lost, [()]), *others])
        self._seconds += time.perf_counter() - started
        self.stop_seconds = rest.stop_seconds

    def _hand_over(self, function: Callable[[Any], HandedOver], groups: Sequence[Future]) -> None:
        """Stop shards for good. `function` makes a HandedOver of each of the `groups`."""
        engine = self.context.engine
        at = engine.partition_workers
        made = [(own,) for own in engine.map("hand-over", function, [(own,) for own in groups], at)]
        # A worker that is lost while others peel bands loses nothing: each state is on its worker and on the next one.
        copies = engine.map("copy", _same, made, at and [worker + 1 for worker in at])
        states = engine.map("handed", _same, made, at)
        engine.wait([*states, *copies])
        self._copies = engine.cut_lineage("copies-held", copies, state_lost, [()] * len(copies))
        self._hold(engine.cut_lineage("handed-held", states, _same, [(own,) for own in self._copies]))
        self.handed_over = self._records[0].left
        self._go_on_with_rest(self._band_workers > 1)

    def _hold(self, states: list[Future]) -> None:
        """Make these the states of all groups."""
        super().resume(self.facts, states)

    def _go_on_with_rest(self, bands: bool) -> None:
        """Bring the remaining edges together."""
        assert self.states is not None
        context, engine = self.context, self.context.engine
        ends = list(zip(context.subgraphs, self.states, strict=True))
        parts = engine.map("remaining-edges", remaining_edges, ends, engine.partition_workers)
        # Tasks that peel the remaining edges are not those of groups, which have their workers and share their threads.
        execution = replace(engine.execution, pinned_partitions=None, partitions_at_once=None)
        alone = replace(engine.for_tasks(1), execution=execution)
        merged = alone.map("remaining", merge_remaining, [(parts,)], self._first_worker)[0]
        graph = alone.submit("remaining-graph", attrgetter("graph"), merged)
        self._owner = alone.submit("remaining-owners", attrgetter("group"), merged)
        own = replace(context, engine=alone, subgraphs=[graph], record_order=False)
        self._rest = PeelBands(own, max(1, self._band_workers)) if bands else PeelAlone(own)

    def _put_state_into_rest(self) -> None:
        """Let the peeling of the remaining edges go on from the current state, which a checkpoint may have replaced."""
        assert self.states is not None and self._rest is not None
        if self._began:
            self._rest.states = [self._rest.context.engine.submit("found", attrgetter("found"), self.states[0])]

    def _intervals(self, states: Sequence[Future]) -> list[Future]:
        if self._rest is None:
            return super()._intervals(states)
        engine = self.context.engine
        parts: list[Future | None] = [None] * len(states)
        if self._began:
            self._put_state_into_rest()
            assert self._rest.states is not None
            (found,) = self._rest._intervals(self._rest.states)
            own = [(found, self._owner, group) for group in range(len(states))]
            parts[:] = self._rest.context.engine.map("intervals-of-group", intervals_of_group, own)
        arguments = list(zip(states, parts, strict=True))
        return engine.map("intervals", handed_intervals, arguments, engine.partition_workers)

    def _report_exchanges(self, levels: int, evaluations: int, unsettled: int) -> None:
        super()._report_exchanges(levels, evaluations, unsettled)
        if self._rest is not None and self._began:
            self._rest._report_exchanges(levels, evaluations, unsettled)
            self.bands = self._rest.bands


def _same(state: HandedOver) -> HandedOver:
    """Task: the same state, on this worker."""
    return state


def _with_found(state: HandedOver, found: BandState | Peeled) -> HandedOver:
    """Task: the state of the first group, with that of the remaining edges."""
    return replace(state, found=found)


def _handed(state: HandedOver | ShardState) -> tuple[int, type[Any] | None] | None:
    """Task: how many edges shards left, and the type of their state; None if shards have not stopped for good."""
    if not isinstance(state, HandedOver):
        return None
    return state.handed, None if state.found is None else type(state.found)
