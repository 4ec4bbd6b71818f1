"""Banding: the driver's ledger halves bands, and the partitions filter their edges; see tasks/bound/band.py."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ...tasks.bound import band
from ...tasks.bound.band import Order
from ..output.manifest import BoundingRecord, ExchangeRecord
from .ledger import Ledger
from .rounds import Round, end, start
from .schedule import BoundingResult, Schedule


class Banding(Schedule):
    """The state of banding between two exchanges."""

    name = "band"
    round: Round
    _ledger: Ledger
    _batches: list[list[list[Order]]]
    """[partitions] batches of orders that the partition has not carried out yet."""
    _orders: list[Order]
    """The newest batch, which no partition has yet."""
    _evaluations = 0

    def start(self) -> None:
        """Start with all edges in one band."""
        context, highest = self.context, self.context.highest()
        self._ledger = Ledger(highest, [c.local for c in context.counts])
        arguments = [(band.start_bands, s, highest) for s in context.subgraphs]
        states = context.engine.map("bands", start, arguments, context.engine.partition_workers)
        self.round = Round(context.engine, self.name, states)
        self._batches, self._orders = [[] for _ in states], self._ledger.start()

    def resume(self, facts: Mapping[str, Any], round_: Round) -> None:
        self.round, self._ledger, self._evaluations = round_, Ledger.resumed(facts["ledger"]), facts["evaluations"]
        self._batches = [[[Order(**order) for order in batch] for batch in own] for own in facts["batches"]]
        self._orders = [Order(**order) for order in facts["orders"]]
        self.exchanges = len(self.context.events.exchanges)

    @property
    def facts(self) -> dict[str, Any]:
        return {
            "ledger": self._ledger.as_json(),
            "batches": [[[asdict(order) for order in batch] for batch in own] for own in self._batches],
            "orders": [asdict(order) for order in self._orders],
            "evaluations": self._evaluations,
        }

    @property
    def done(self) -> bool:
        return not self._ledger.open_bands

    def exchange(self, seconds: float | None) -> None:
        """Filter the edges of every open band, and halve the bands whose filters have ended."""
        started, ledger, subgraphs = time.perf_counter(), self._ledger, self.context.subgraphs
        self._distribute_orders()
        active = ledger.concerned(self._orders) | self.round.receivers()
        reports = self.round.run(
            active,
            band.band_exchange,
            {p: (subgraphs[p], self.round.states[p], self._batches[p], ledger.floor) for p in active},
        )
        for p in reports:
            self._batches[p] = []
        ledger.record(reports)
        self._orders = ledger.split()
        self.exchanges += 1
        evaluations = sum(report.evaluations for report in reports.values())
        messages = sum(report.messages for report in reports.values())
        self._evaluations += evaluations
        self.context.events.exchange(
            ExchangeRecord(
                exchange=self.exchanges,
                step=ledger.steps,
                open_bands=ledger.open_bands,
                settled=sum(c.owned for c in self.context.counts) - ledger.unsettled,
                unsettled=ledger.unsettled,
                messages=messages,
                bytes=4 * messages,
                evaluations=evaluations,
                seconds=time.perf_counter() - started,
            )
        )

    def end(self) -> BoundingResult:
        self._distribute_orders()
        upper, states = self._ledger.upper_ends(), self.round.states
        ends = self.context.engine.map(
            "intervals",
            end,
            [
                (band.band_intervals, subgraph, states[p], self._batches[p], upper)
                for p, subgraph in enumerate(self.context.subgraphs)
            ],
            self.context.engine.partition_workers,
        )
        record = BoundingRecord(
            method="band", steps=self._ledger.steps, exchanges=self.exchanges, evaluations=self._evaluations
        )
        return BoundingResult(ends, record, self.done)

    def _distribute_orders(self) -> None:
        """Queue the newest orders at every partition, for its next task."""
        if self._orders:
            for queue in self._batches:
                queue.append(self._orders)
