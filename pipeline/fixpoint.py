"""Fixpoint rounds: all partitions solve, then those that were told of lower bounds; see tasks/bound/fixpoint.py."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ..tasks.bound import fixpoint
from .manifest import BoundingRecord, ExchangeRecord
from .rounds import Round, end, start
from .schedule import Bounded, Schedule

__all__ = ["Fixpoint"]


class Fixpoint(Schedule):
    """Fixpoint rounds between two of them."""

    name = "fixpoint"
    round: Round
    _evaluations = 0

    def start(self) -> None:
        """Begin with supports."""
        search, highest = self.search, self.search.highest()
        states = search.engine.map("bounds", start, [(fixpoint.start_bounds, s, highest) for s in search.subgraphs])
        self.round = Round(search.engine, self.name, states)

    def resume(self, facts: Mapping[str, Any], round_: Round) -> None:
        """Go on from there."""
        self.round, self._evaluations = round_, facts["evaluations"]
        self.exchanges = len(self.search.events.exchanges)

    @property
    def facts(self) -> dict[str, Any]:
        """What it has cost."""
        return {"evaluations": self._evaluations}

    @property
    def _active(self) -> set[int]:
        return self.round.receivers() if self.exchanges else set(range(len(self.search.subgraphs)))

    @property
    def done(self) -> bool:
        """Whether nobody has mail."""
        return not self._active

    def exchange(self, seconds: float | None) -> None:
        """Solve where there is mail; at first everywhere."""
        started, search, first = time.perf_counter(), self.search, self.exchanges == 0
        active = self._active
        reports = self.round.run(
            active,
            fixpoint.fixpoint_exchange,
            {p: (search.subgraphs[p], self.round.states[p], search.settings.operator, first) for p in active},
        )
        self.exchanges += 1
        messages = sum(report.messages for report in reports.values())
        evaluations = sum(report.evaluations for report in reports.values())
        self._evaluations += evaluations
        total, local = sum(c.owned for c in search.counts), sum(c.local for c in search.counts)
        unsettled = 0 if self.done else local
        search.events.exchange(
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

    def end(self) -> Bounded:
        """Take the bounds as they are."""
        both = zip(self.search.subgraphs, self.round.states, strict=True)
        ends = self.search.engine.map(
            "intervals", end, [(fixpoint.fixpoint_intervals, s, state, self.done) for s, state in both]
        )
        record = BoundingRecord(
            method="fixpoint", steps=self.exchanges, exchanges=self.exchanges, evaluations=self._evaluations
        )
        return Bounded(ends, record, self.done)
