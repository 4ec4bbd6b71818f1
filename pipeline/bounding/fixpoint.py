"""Fixpoint rounds: first all partitions solve, then those that received lower bounds; see tasks/bound/fixpoint.py."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ...tasks.bound import fixpoint
from ..output.manifest import BoundingRecord, ExchangeRecord
from .rounds import Round, end, start
from .schedule import BoundingResult, Schedule


class Fixpoint(Schedule):
    """The state between two fixpoint rounds."""

    name = "fixpoint"
    round: Round
    _evaluations = 0

    def start(self) -> None:
        context, highest = self.context, self.context.highest()
        states = context.engine.map("bounds", start, [(fixpoint.start_bounds, s, highest) for s in context.subgraphs])
        self.round = Round(context.engine, self.name, states)

    def resume(self, facts: Mapping[str, Any], round_: Round) -> None:
        self.round, self._evaluations = round_, facts["evaluations"]
        self.exchanges = len(self.context.events.exchanges)

    @property
    def facts(self) -> dict[str, Any]:
        return {"evaluations": self._evaluations}

    @property
    def _active(self) -> set[int]:
        return self.round.receivers() if self.exchanges else set(range(len(self.context.subgraphs)))

    @property
    def done(self) -> bool:
        return not self._active

    def exchange(self, seconds: float | None) -> None:
        """Solve in the partitions that have mail, in the first exchange in all."""
        started, context, first = time.perf_counter(), self.context, self.exchanges == 0
        active = self._active
        operator: fixpoint.Operator = "tridn" if context.settings.operator == "tridn" else "hindex"
        reports = self.round.run(
            active,
            fixpoint.fixpoint_exchange,
            {p: (context.subgraphs[p], self.round.states[p], operator, first) for p in active},
        )
        self.exchanges += 1
        messages = sum(report.messages for report in reports.values())
        evaluations = sum(report.evaluations for report in reports.values())
        self._evaluations += evaluations
        total, local = sum(c.owned for c in context.counts), sum(c.local for c in context.counts)
        unsettled = 0 if self.done else local
        context.events.exchange(
            ExchangeRecord(
                exchange=self.exchanges,
                step=self.exchanges,
                open_bands=0,
                settled=total - unsettled,
                unsettled=unsettled,
                messages=messages,
                bytes=8 * messages,
                evaluations=evaluations,
                seconds=time.perf_counter() - started,
            )
        )

    def end(self) -> BoundingResult:
        both = zip(self.context.subgraphs, self.round.states, strict=True)
        ends = self.context.engine.map(
            "intervals", end, [(fixpoint.fixpoint_intervals, s, state, self.done) for s, state in both]
        )
        record = BoundingRecord(
            method="fixpoint", steps=self.exchanges, exchanges=self.exchanges, evaluations=self._evaluations
        )
        return BoundingResult(ends, record, self.done)
