"""Runs a schedule until it converges or reaches a limit. All schedules give the same λ."""

from __future__ import annotations

import time
from dataclasses import replace

from ..plan.plan import Plan
from ..settings.models import BoundingSettings
from .banding import Banding
from .bounding_checkpoint import BoundingCheckpoint
from .fixpoint import Fixpoint
from .peeling import PeelAlone, Peeling
from .schedule import BoundingContext, BoundingResult, Schedule


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

    @property
    def seconds_left(self) -> float | None:
        return None if self._deadline is None else self._deadline - time.monotonic()


def bound(context: BoundingContext, plan: Plan, checkpoint: BoundingCheckpoint) -> BoundingResult:
    """Follow the plan's schedule: peel, band or fixpoint, from where the `checkpoint` of an earlier run ended."""
    limits = _Limits(context.settings)
    context = replace(context, engine=context.engine.for_tasks(len(context.subgraphs)))
    schedule = _schedule(context, plan)
    found = checkpoint.load(schedule.name)
    if found is None:
        context.events.exchanges.clear()
        schedule.start()
    else:
        schedule.resume(*found)
    context.events.reached = schedule.reached
    if not isinstance(schedule, Peeling):
        context.beside()
    while not schedule.done and not limits.reached(schedule.exchanges):
        schedule.exchange(_shorter(limits.seconds_left, checkpoint.seconds_left))
        checkpoint.stop_seconds = schedule.stop_seconds
        if schedule.round is not None and not schedule.done and checkpoint.due(schedule.exchanges):
            schedule.round = checkpoint.save(schedule.round, schedule.facts, schedule.reached)
    return schedule.end()


def _schedule(context: BoundingContext, plan: Plan) -> Schedule:
    if plan.in_shards:
        resident = plan.resident_bytes if plan.on_disk else None
        if not plan.on_device:
            from .shards_then_bands import ShardsThenBands  # imports shards and bands, and their kernels

            return ShardsThenBands(context, resident, plan.bands_at, plan.bands_on)
        from .shard_peeling import PeelShards  # imports shards and their kernels

        return PeelShards(context, resident)
    if plan.in_bands:
        from .peel_bands import PeelBands  # imports bands and their kernels

        return PeelBands(context, plan.band_workers, plan.band_helpers)
    if plan.method == "peel":
        return PeelAlone(context, plan.compact_rows)
    return Banding(context) if plan.method == "band" else Fixpoint(context)


def _shorter(one: float | None, other: float | None) -> float | None:
    return min((seconds for seconds in (one, other) if seconds is not None), default=None)
