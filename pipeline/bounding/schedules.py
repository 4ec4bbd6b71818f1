"""Runs a schedule until it converges or reaches a limit. All schedules give the same λ."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TypeVar

from ..plan.plan import Plan
from ..settings.models import BoundingSettings
from .bounding_checkpoint import BoundingCheckpoint
from .peeling import PeelAlone
from .schedule import BoundingContext, BoundingResult, Schedule

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
        """How many more exchanges are allowed after so many; None for no limit."""
        return None if self._exchanges is None else self._exchanges - exchanges

    @property
    def seconds_left(self) -> float | None:
        return None if self._deadline is None else self._deadline - time.monotonic()


def bound(context: BoundingContext, plan: Plan, checkpoint: BoundingCheckpoint) -> BoundingResult:
    """Follow the plan's schedule: peel, band or fixpoint, from where the `checkpoint` of an earlier run ended."""
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
        from .shard_peeling import PeelShards  # imports shards and their kernels

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
