"""Banding: the driver's ledger says which bands are halved, the partitions let edges fall; see tasks/bound/band.py."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..tasks.bound import band
from ..tasks.bound.band import Order
from .ledger import Ledger
from .manifest import BoundingRecord, ExchangeRecord
from .rounds import Round, end, start
from .schedule import Bounded, Schedule

__all__ = ["Banding"]


class Banding(Schedule):
    """Banding between two exchanges."""

    name = "band"
    round: Round
    _ledger: Ledger
    _batches: list[list[list[Order]]]
    """[partitions] batches of orders that it has not carried out."""
    _orders: list[Order]
    """The newest batch, which nobody has carried out."""
    _evaluations = 0

    def start(self) -> None:
        """Begin with all in one band."""
        search, highest = self.search, self.search.highest()
        self._ledger = Ledger(highest, [c.local for c in search.counts])
        arguments = [(band.start_bands, s, highest) for s in search.subgraphs]
        states = search.engine.map("bands", start, arguments, search.engine.homes)
        self.round = Round(search.engine, self.name, states)
        self._batches, self._orders = [[] for _ in states], self._ledger.start()

    def resume(self, facts: Mapping[str, Any], round_: Round) -> None:
        """Go on from there."""
        self.round, self._ledger, self._evaluations = round_, Ledger.resumed(facts["ledger"]), facts["evaluations"]
        self._batches = [[[Order(**order) for order in batch] for batch in own] for own in facts["batches"]]
        self._orders = [Order(**order) for order in facts["orders"]]
        self.exchanges = len(self.search.events.exchanges)

    @property
    def facts(self) -> dict[str, Any]:
        """The ledger, and the orders that are not carried out."""
        return {
            "ledger": self._ledger.as_json(),
            "batches": [[[asdict(order) for order in batch] for batch in own] for own in self._batches],
            "orders": [asdict(order) for order in self._orders],
            "evaluations": self._evaluations,
        }

    @property
    def done(self) -> bool:
        """Whether no band is open."""
        return not self._ledger.open_bands

    def exchange(self, seconds: float | None) -> None:
        """Let edges fall in every band, and halve those that are silent."""
        started, ledger, subgraphs = time.perf_counter(), self._ledger, self.search.subgraphs
        self._hand_out()
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
        self.search.events.exchange(
            ExchangeRecord(
                exchange=self.exchanges,
                step=ledger.steps,
                open_bands=ledger.open_bands,
                settled=sum(c.owned for c in self.search.counts) - ledger.unsettled,
                unsettled=ledger.unsettled,
                messages=messages,
                bytes=4 * messages,
                evaluations=evaluations,
                seconds=time.perf_counter() - started,
            )
        )

    def end(self) -> Bounded:
        """Carry out the last orders."""
        self._hand_out()
        upper, states = self._ledger.upper_ends(), self.round.states
        ends = self.search.engine.map(
            "intervals",
            end,
            [
                (band.band_intervals, subgraph, states[p], self._batches[p], upper)
                for p, subgraph in enumerate(self.search.subgraphs)
            ],
            self.search.engine.homes,
        )
        record = BoundingRecord(
            method="band", steps=self._ledger.steps, exchanges=self.exchanges, evaluations=self._evaluations
        )
        return Bounded(ends, record, self.done)

    def _hand_out(self) -> None:
        """The newest orders wait at every partition for the next time that it runs."""
        if self._orders:
            for waiting in self._batches:
                waiting.append(self._orders)
