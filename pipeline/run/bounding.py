"""The stage `bound`: λ of all edges, or the intervals that contain it, in buckets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter

from ...tasks.publish.writing import TableFormat
from ..bounding.bounding_checkpoint import BoundingCheckpoint
from ..bounding.recorded_order import order_of_rows, records_order
from ..bounding.schedule import BoundingContext, BoundingResult
from ..bounding.schedules import bound
from ..checkpoint.checkpoint import Graph
from ..stages.publishing import EarlyEdges, collect_results, collect_supports
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
    estimates: list[Future] | None
    """[buckets] lists of TableColumn with estimates of λ; None without any"""
    order: Future | None
    """Order of the peeling, in the rows of the result; None if it was not recorded"""
    encoded: list[Future] | None
    """[buckets × files] EncodedColumns of the table of edges; None if no column is encoded yet"""


def bound_graph(run: RunContext, graph: Graph, progress: BoundingCheckpoint) -> Known:
    """Bound the edges of the graph, starting from the last checkpoint of `progress`, and send λ to the buckets."""
    engine, settings, estimates = run.engine, run.settings.bounding, None
    with run.events.stage("bound", 0):
        early = _early_edges(run, graph)
        holding = engine.for_partitions()
        records = run.keeps_state and records_order(engine, run.plan)
        context = BoundingContext(holding, run.events, graph.subgraphs, graph.counts, settings, records)
        if early is not None:
            context = replace(context, beside=early.start)
        bounded = bound(context, run.plan, progress)
        unsettled = sum(holding.peek(bounded.intervals, attrgetter("unsettled")))
        if graph.supports:
            from ..stages.sharding import collect_intervals  # imports shards and their kernels

            results = collect_intervals(engine, graph.partitions.rows, graph.supports, bounded.intervals)
        else:
            of_edges = graph.subgraphs, bounded.intervals, run.plan.ingest_in_parts
            results = collect_results(engine, graph.buckets, graph.partitions, *of_edges)
        if settings.operator == "streamdn":
            from ..bounding.streaming_estimates import estimate_edges  # imports kernels for CPUs

            (subgraph,), (rows,), (known,) = graph.subgraphs, graph.partitions.rows, bounded.intervals
            own = known, rows, graph.buckets.edges, settings.permutations
            estimates, record = estimate_edges(engine, subgraph, *own)
            bounded = replace(bounded, record=bounded.record.model_copy(update={"estimates": record}))
        order = order_of_rows(engine, bounded, graph.partitions.rows, graph.subgraphs, graph.buckets.edges)
        if run.plan.ingest_in_parts:  # in this process, so no worker can be lost, and no later attempt needs them
            for futures in (graph.subgraphs, graph.partitions.rows, bounded.intervals):
                del futures[:]
    return Known(bounded, unsettled, results, estimates, order, None if early is None else early.encoded)


def table_format(run: RunContext, converged: bool = True) -> TableFormat:
    """How the run writes its tables; `converged`: whether each λ is known."""
    output, tables = run.settings.output, run.call.staging.tables
    return TableFormat(tables, run.source, converged, output.compression, output.row_group_rows, run.plan.files)


def _early_edges(run: RunContext, graph: Graph) -> EarlyEdges | None:
    """The edge files without λ, which the processors encode while GPUs bound the graph. None where CPUs compute, and
    where the GPU needs the memory that the supports would take in the buckets.
    """
    engine, buckets, partitions = run.engine, graph.buckets, graph.partitions
    if not engine.capacity.device_bytes or engine.capacity.threads < 2:
        return None
    if run.plan.compact_rows or run.plan.ingest_in_parts:
        return None
    engine = engine.for_tasks(len(buckets.edges))
    if graph.supports:
        supports = engine.map("supports", attrgetter("support"), [(own,) for own in graph.supports], soon=True)
    else:
        supports = collect_supports(engine, buckets, partitions, graph.subgraphs)
    return EarlyEdges(engine, buckets, partitions.degrees, supports, table_format(run))
