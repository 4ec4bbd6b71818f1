"""The loop to global convergence, with any schedule: banding, fixpoint rounds, peeling. One λ, different paths."""

from __future__ import annotations

import time

from .banding import Banding
from .fixpoint import Fixpoint
from .keeper import Keeper
from .peeling import PeelAlone
from .plan import Plan
from .schedule import Bounded, Schedule, Search
from .settings import BoundingSettings
from .shard_peeling import PeelShards

__all__ = ["bound"]


class _Limits:
    """When to end without convergence."""

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


def bound(search: Search, plan: Plan, keeper: Keeper) -> Bounded:
    """Follow the plan's schedule: peel, band or fixpoint. The `keeper` knows how far an earlier run came with it."""
    limits = _Limits(search.settings)
    now = _schedule(search, plan)
    found = keeper.load(now.name)
    if found is None:
        search.events.exchanges.clear()
        now.start()
    else:
        now.resume(*found)
    search.events.reached = now.reached
    while not now.done and not limits.reached(now.exchanges):
        now.exchange(_sooner(limits.seconds_left, keeper.seconds_left))
        if now.round is not None and not now.done and keeper.due(now.exchanges):
            now.round = keeper.save(now.round, now.facts, now.reached)
    return now.end()


def _schedule(search: Search, plan: Plan) -> Schedule:
    if plan.in_shards:
        return PeelShards(search, plan.resident_bytes if plan.on_disk else None)
    if plan.method == "peel":
        return PeelAlone(search, plan.compact_rows)
    return Banding(search) if plan.method == "band" else Fixpoint(search)


def _sooner(one: float | None, other: float | None) -> float | None:
    return min((seconds for seconds in (one, other) if seconds is not None), default=None)
