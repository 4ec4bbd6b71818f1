"""The loops to global convergence: banding, fixpoint rounds; for peeling see peeling.py. One λ, different paths."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from ..tasks.bound import band as banding
from ..tasks.bound import fixpoint as rounds
from ..tasks.subgraph import PartitionCounts
from .band_checkpoint import Banding, BandKeeper
from .bounded import Bounded
from .engine import Engine, Future
from .ledger import Ledger
from .manifest import BoundingRecord, ExchangeRecord
from .peeling import peel_alone, peel_together
from .rounds import Round, end, start
from .settings import BoundingSettings
from .telemetry import Events

__all__ = ["Bounded", "bound"]


class _Limits:
    """When to end without convergence."""

    def __init__(self, settings: BoundingSettings) -> None:
        self._exchanges = settings.max_exchanges
        self._deadline = None if settings.max_seconds is None else time.monotonic() + settings.max_seconds

    def reached(self, exchanges: int) -> bool:
        if self._exchanges is not None and exchanges >= self._exchanges:
            return True
        return self._deadline is not None and time.monotonic() >= self._deadline


def bound(
    engine: Engine,
    events: Events,
    subgraphs: Sequence[Future],
    counts: Sequence[PartitionCounts],
    method: str,
    settings: BoundingSettings,
    keeper: BandKeeper,
) -> Bounded:
    """Run the schedule `method`: peel, band or fixpoint. The `keeper` knows how far an earlier run's banding came."""
    if method == "peel":
        schedule = peel_alone if len(subgraphs) == 1 else peel_together
        return schedule(engine, events, subgraphs, settings.max_seconds)
    if method == "band":
        return _band(engine, events, subgraphs, counts, settings, keeper)
    return _fixpoint(engine, events, subgraphs, counts, settings)


def _highest(engine: Engine, subgraphs: Sequence[Future]) -> int:
    """A value that no λ exceeds, from the supports of all partitions."""
    histograms = engine.peek(subgraphs, banding.support_histogram)
    total = np.zeros(max(map(len, histograms), default=0), np.int64)
    for histogram in histograms:
        total[: len(histogram)] += histogram
    return banding.highest_lambda(total)


def _band(
    engine: Engine,
    events: Events,
    subgraphs: Sequence[Future],
    counts: Sequence[PartitionCounts],
    settings: BoundingSettings,
    keeper: BandKeeper,
) -> Bounded:
    limits = _Limits(settings)
    partitions = range(len(subgraphs))
    total = sum(c.owned for c in counts)
    now = keeper.load() or _start_banding(engine, subgraphs, counts)
    ledger = now.ledger
    while ledger.open_bands and not limits.reached(now.exchanges):
        started = time.perf_counter()
        _hand_out(now)
        active = ledger.concerned(now.orders) | now.round.receivers()
        reports = now.round.run(
            active,
            banding.band_exchange,
            {p: (subgraphs[p], now.round.states[p], now.batches[p], ledger.floor) for p in active},
        )
        for p, report in reports.items():
            now.batches[p] = []
            now.evaluations += report.evaluations
        ledger.record(reports)
        now.orders = ledger.split()
        now.exchanges += 1
        messages = sum(report.messages for report in reports.values())
        events.exchange(
            ExchangeRecord(
                exchange=now.exchanges,
                step=ledger.steps,
                open_bands=ledger.open_bands,
                settled=total - ledger.unsettled,
                unsettled=ledger.unsettled,
                messages=messages,
                bytes=4 * messages,
                evaluations=sum(report.evaluations for report in reports.values()),
                seconds=time.perf_counter() - started,
            )
        )
        if ledger.open_bands and keeper.due(now.exchanges):
            keeper.save(now)
    _hand_out(now)
    upper = ledger.upper_ends()
    ends = engine.map(
        "intervals",
        end,
        [(banding.band_intervals, subgraphs[p], now.round.states[p], now.batches[p], upper) for p in partitions],
    )
    record = BoundingRecord(method="band", steps=ledger.steps, exchanges=now.exchanges, evaluations=now.evaluations)
    return Bounded(ends, record, not ledger.open_bands)


def _start_banding(engine: Engine, subgraphs: Sequence[Future], counts: Sequence[PartitionCounts]) -> Banding:
    highest = _highest(engine, subgraphs)
    ledger = Ledger(highest, [c.local for c in counts])
    states = engine.map("bands", start, [(banding.start_bands, s, highest) for s in subgraphs])
    return Banding(ledger, Round(engine, "band", states), [[] for _ in subgraphs], ledger.start())


def _hand_out(now: Banding) -> None:
    """The newest orders wait at every partition for the next time that it runs."""
    if now.orders:
        for waiting in now.batches:
            waiting.append(now.orders)


def _fixpoint(
    engine: Engine,
    events: Events,
    subgraphs: Sequence[Future],
    counts: Sequence[PartitionCounts],
    settings: BoundingSettings,
) -> Bounded:
    limits = _Limits(settings)
    total, local = sum(c.owned for c in counts), sum(c.local for c in counts)
    highest = _highest(engine, subgraphs)
    round_ = Round(
        engine, "fixpoint", engine.map("bounds", start, [(rounds.start_bounds, s, highest) for s in subgraphs])
    )
    active = set(range(len(subgraphs)))
    exchanges = evaluations = 0
    while active and not limits.reached(exchanges):
        started = time.perf_counter()
        reports = round_.run(
            active,
            rounds.fixpoint_exchange,
            {p: (subgraphs[p], round_.states[p], settings.operator, exchanges == 0) for p in active},
        )
        active = round_.receivers()
        exchanges += 1
        messages = sum(report.messages for report in reports.values())
        evaluated = sum(report.evaluations for report in reports.values())
        evaluations += evaluated
        events.exchange(
            ExchangeRecord(
                exchange=exchanges,
                step=exchanges,
                open_bands=0,
                settled=total - (local if active else 0),
                unsettled=local if active else 0,
                messages=messages,
                bytes=8 * messages,
                evaluations=evaluated,
                seconds=time.perf_counter() - started,
            )
        )
    ends = engine.map(
        "intervals",
        end,
        [(rounds.fixpoint_intervals, s, state, not active) for s, state in zip(subgraphs, round_.states, strict=True)],
    )
    record = BoundingRecord(method="fixpoint", steps=exchanges, exchanges=exchanges, evaluations=evaluations)
    return Bounded(ends, record, not active)
