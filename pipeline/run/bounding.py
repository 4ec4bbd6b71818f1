"""The stage `bound`: λ of all edges, or the intervals that contain it, in buckets."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from ..bounding.bounding_checkpoint import BoundingCheckpoint
from ..bounding.schedule import BoundingContext, BoundingResult
from ..bounding.schedules import bound
from ..checkpoint.checkpoint import Graph
from ..stages.publishing import collect_results
from ..stages.sharding import collect_intervals
from ..stages.task_engine import Future
from .context import RunContext


@dataclass(frozen=True)
class Known:
    """The result of bounding."""

    bounded: BoundingResult
    unsettled: int
    """Edges whose λ is not known."""
    results: list[Future]
    """[buckets] BucketResults"""


def bound_graph(run: RunContext, graph: Graph, progress: BoundingCheckpoint) -> Known:
    """Bound the edges of the graph, starting from the last checkpoint of `progress`, and send λ to the buckets."""
    engine = run.engine
    with run.events.stage("bound", 0):
        holding = engine.for_partitions()
        context = BoundingContext(holding, run.events, graph.subgraphs, graph.counts, run.settings.bounding)
        bounded = bound(context, run.plan, progress)
        unsettled = sum(holding.peek(bounded.intervals, attrgetter("unsettled")))
        if graph.supports:
            results = collect_intervals(engine, graph.partitions.rows, graph.supports, bounded.intervals)
        else:
            results = collect_results(engine, graph.buckets, graph.partitions, graph.subgraphs, bounded.intervals)
    return Known(bounded, unsettled, results)
