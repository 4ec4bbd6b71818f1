"""Peeling of a single partition by one task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...tasks.bound.peel import Peeled, peel, peel_intervals
from ...tasks.graph.subgraph import Subgraph
from ...tasks.graph.whole_graph import WholeGraph
from ..cluster.engine import Future
from ..cluster.this_worker import leave_pool, progress_reporter
from .schedule import BoundingContext, BoundingResult, Schedule


class PeelAlone(Schedule):
    """Peels the only partition. `compact_rows` is whether a plan for a GPU expects that other rows do not fit."""

    def __init__(self, context: BoundingContext, compact_rows: bool = False) -> None:
        super().__init__(context)
        self.compact_rows = compact_rows

    @property
    def reached(self) -> dict[str, int]:
        """The next level, and the edges that are left."""
        return super().reached | {"unsettled": self._records[0].left} if self._records else super().reached

    def _search(self, before: Sequence[Future] | None, seconds: float | None, most: int | None) -> list[Future]:
        context = self.context
        how = None if before is None else before[0], seconds, self._topic, context.record_order
        states = [context.engine.submit("peel", _peel_alone, context.subgraphs[0], *how)]
        context.beside()
        return states

    def _intervals(self, states: Sequence[Future]) -> list[Future]:
        return self.context.engine.map("intervals", peel_intervals, [(self.context.subgraphs[0], states[0])])

    def end(self) -> BoundingResult:
        """End, with the peeling if its order was to be recorded."""
        found = super().end()
        if not self.context.record_order or self.states is None:
            return found
        return replace(found, peeled=self.states[0])


def _peel_alone(
    graph: Subgraph | WholeGraph, before: Peeled | None, seconds: float | None, topic: str, record: bool
) -> Peeled:
    leave_pool()
    return peel(graph, before, seconds, progress_reporter(topic), record=record)
