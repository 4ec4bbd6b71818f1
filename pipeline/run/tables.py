"""The steps from the graph to the tables and the manifest: bounding, programs, dense groups, tracks, and publishing.

A run without λ has programs and their columns of vertices alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import add, attrgetter
from typing import TYPE_CHECKING, Literal

from ...tasks.errors import InternalError
from ...tasks.publish.columns import merge_histograms
from ...tasks.publish.lambda_columns import BucketSummary
from ...tasks.publish.writing import TableOptions
from ..bounding.bounding import BoundingCheckpoint, bound, order_of_rows, records_order
from ..bounding.schedule import BoundingContext, BoundingResult
from ..checkpoint.checkpoint import Graph
from ..cluster.engine import Engine, Future
from ..nightly.night import Lineage
from ..nightly.track_assignment import GroupBuckets, TrackedGroups, assign_tracks, track_programs
from ..opening.context import RunContext
from ..opening.input import input_record
from ..output.manifest import (
    BUTTERFLIES_VERSION,
    FORMAT_VERSION,
    Counts,
    DenseRecord,
    LambdaRecord,
    Manifest,
    OutputRecord,
    PartitionRecord,
    PlanRecord,
    ProgramRecord,
    TracksRecord,
    versions,
)
from ..plan.plan import Plan
from ..results.result import Result
from ..settings.declared_programs import LAMBDA
from ..stages.extracting import Groups, KnownLambda, extract
from ..stages.publishing import (
    EarlyEdges,
    EdgeFindings,
    Findings,
    Published,
    collect_results,
    publish_results,
    publish_vertices,
    start_edges,
    sum_by_vertex,
    tables_to_write,
)

if TYPE_CHECKING:
    from ...tasks.update.arcs import EdgeArcs
    from ...tasks.update.order import Order
    from ..programs.running import ProgramResults
    from ..programs.saving import KeptPrograms


@dataclass(frozen=True)
class MadeTables:
    """The tables of a run."""

    manifest: Manifest
    order: Order | None = None
    """The order of peeling of their edges, if it was recorded."""
    arcs: EdgeArcs | None = None
    """The directions and weights of their edges, if the run keeps a state and programs have read some."""


def make_tables(
    run: RunContext,
    graph: Graph,
    progress: BoundingCheckpoint,
    kept: KeptPrograms,
    lineage: Callable[[str], Lineage],
    earlier: Callable[[], Result | None],
) -> MadeTables:
    """Find λ and the values that depend on it, run the programs, and write all tables.

    `kept` has programs that need not run again. `lineage` returns the earlier results from which DN-graphs, or groups
    of a program, may take tracks, and `earlier` the one with whose groups programs may begin. Raises StateLost if a
    worker is lost together with state that is not in a checkpoint.
    """
    events, source, buckets = run.events, run.source, graph.buckets
    engine = run.engine.for_tasks(len(buckets.edges))
    known = bound_graph(run, graph, progress) if run.plan.finds_lambda else None
    degrees = graph.partitions.degrees
    ran, supports = None, None if known is None else known.results
    if run.settings.programs.vertex_programs:
        from ..programs.running import run_programs

        ran = run_programs(engine, events, run.settings, source, buckets, degrees, kept, supports, earlier())
    if known is None:
        assert ran is not None  # the settings name a program
        return MadeTables(_publish_programs(run, engine, graph, ran, lineage))
    files, converged = run.plan.files, known.bounded.converged
    how = table_format(run, converged)
    added = _of_edges(engine, known.estimates, None if ran is None else ran.of_edges)
    edge_files: list[Future] = []
    vertices: list[Future] = []

    def write_edges() -> None:
        found = EdgeFindings(buckets, degrees, known.results, added, known.encoded)
        edge_files.extend(start_edges(engine, found, how))
        if known.encoded is not None:  # the GPU sums while the processors write
            vertices.extend(sum_by_vertex(engine, Findings(buckets, degrees, known.results)))

    groups = tracked = None
    if converged:
        graph_of_lambda = KnownLambda(buckets.edges, degrees, known.results, buckets.starts)
        groups = extract(
            engine, events, graph_of_lambda, run.plan.partitions, run.space, write_edges, run.source.two_sided
        )
    with events.stage("publish", tables_to_write(len(buckets.edges), files, groups is not None)) as stage:
        if groups is None:
            write_edges()
        else:
            tracked = _follow(run, engine, graph, groups, lineage(LAMBDA))
        published = publish_results(
            engine,
            stage,
            Findings(
                buckets,
                degrees,
                known.results,
                groups,
                tracked.tracks if tracked else [],
                None if ran is None else ran.columns,
            ),
            edge_files,
            vertices or sum_by_vertex(engine, Findings(buckets, degrees, known.results)),
            how,
        )
        published, records = _with_tables(run, engine, graph, ran, published, lineage)
    outcome = TablesOutcome(
        known.bounded,
        known.unsettled,
        published,
        groups.record if groups else None,
        tracked.record if tracked else None,
        records,
    )
    order = None if known.order is None else engine.gather([known.order])[0]
    return MadeTables(manifest_of(run, graph, outcome), order, _arcs(run, engine, graph))


def _arcs(run: RunContext, engine: Engine, graph: Graph) -> EdgeArcs | None:
    directed, weighted = run.source.directed, run.source.weights is not None
    is_read = run.settings.programs.vertex_programs and (directed or weighted)
    if not (run.keeps_state and is_read) or len(graph.subgraphs) > 1:
        return None
    from ...tasks.update.arcs import EdgeArcs

    return EdgeArcs.of(engine.gather(graph.buckets.edges), directed, weighted)


def _publish_programs(
    run: RunContext, engine: Engine, graph: Graph, ran: ProgramResults, lineage: Callable[[str], Lineage]
) -> Manifest:
    """Write the table of vertices of a run without λ."""
    buckets, degrees, files = graph.buckets, graph.partitions.degrees, run.plan.files
    with run.events.stage("publish", files * len(buckets.edges)) as stage:
        published = publish_vertices(engine, stage, buckets, degrees, ran.columns, table_format(run))
        published, records = _with_tables(run, engine, graph, ran, published, lineage)
    return manifest_of(run, graph, TablesOutcome(None, 0, published, None, None, records))


def _of_edges(engine: Engine, estimates: list[Future] | None, columns: list[Future] | None) -> list[Future] | None:
    """[buckets] the added columns of edges: estimates of λ, then those of programs."""
    if estimates is None or columns is None:
        return columns if estimates is None else estimates
    return engine.map("edge-columns", add, list(zip(estimates, columns, strict=True)))


def _with_tables(
    run: RunContext,
    engine: Engine,
    graph: Graph,
    ran: ProgramResults | None,
    published: Published,
    lineage: Callable[[str], Lineage],
) -> tuple[Published, list[ProgramRecord]]:
    """The same after the tables of programs, if there are any, have been written; and the records of programs."""
    if ran is None:
        return published, []
    from ..programs.results import publish_groups, publish_pairs, publish_similar

    written, records = [], ran.records
    if ran.pairs is not None:
        written += publish_pairs(engine, graph.buckets, run.source.kind, ran.pairs, table_format(run))
    if ran.groups:
        own = graph.buckets.ids, run.source.id_type, ran.groups, ran.records
        tracked = track_programs(engine, run.events, run.settings, *own, lineage)
        written += publish_groups(engine, ran.groups, tracked.tracks, table_format(run))
        records = tracked.records
    if ran.similar is not None:
        written += publish_similar(engine, ran.similar, table_format(run))
    return replace(published, files=[*published.files, *written]), records


def _follow(run: RunContext, engine: Engine, graph: Graph, groups: Groups, lineage: Lineage) -> TrackedGroups:
    buckets = graph.buckets
    own = buckets.ids, groups.found, buckets.starts, groups.highest
    found = GroupBuckets.of_dn_graphs(*own, run.source.id_type)
    return assign_tracks(engine, run.events, found, lineage)


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
            from ..stages.sharding import collect_intervals  # imports kernels

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


def table_format(run: RunContext, converged: bool = True) -> TableOptions:
    """How the run writes its tables; `converged`: whether each λ is known."""
    output, tables = run.settings.output, run.call.staging.tables
    return TableOptions(tables, run.source, converged, output.compression, output.row_group_rows, run.plan.files)


def _early_edges(run: RunContext, graph: Graph) -> EarlyEdges | None:
    """The ends of edges, which the processors encode while GPUs bound the graph. None where CPUs compute, and where a
    GPU's memory is too small for plain rows.
    """
    engine, buckets = run.engine, graph.buckets
    if not engine.capacity.device_bytes or engine.capacity.threads < 2:
        return None
    if run.plan.compact_rows or run.plan.ingest_in_parts:
        return None
    degrees = graph.partitions.degrees
    return EarlyEdges(engine.for_tasks(len(buckets.edges)), buckets, degrees, table_format(run))


@dataclass(frozen=True)
class TablesOutcome:
    """The findings of a run that the manifest needs."""

    bounded: BoundingResult | None
    """None in a run without λ."""
    unsettled: int
    """Edges whose λ is not known."""
    published: Published
    dense: DenseRecord | None
    tracks: TracksRecord | None
    programs: list[ProgramRecord]


def manifest_of(run: RunContext, graph: Graph, found: TablesOutcome) -> Manifest:
    """The manifest of the result. Raises InternalError if rows, edges or triangles do not add up."""
    summaries, bounded = found.published.summaries, found.bounded
    known = bounded is None or bounded.converged
    manifest = Manifest(
        format_version=BUTTERFLIES_VERSION if run.source.two_sided else FORMAT_VERSION,
        run=run.events.run_id,
        versions=versions(),
        device=run.engine.execution.device,
        settings=run.settings.model_dump(),
        started=run.events.started,
        finished=datetime.now(UTC),
        input=input_record(run.source, run.settings.input.isolated, graph.rows.notes),
        counts=_counts(graph, found.published, run.source.two_sided),
        partitions=[
            PartitionRecord(**{name: getattr(own, name) for name in PartitionRecord.model_fields})
            for own in graph.counts
        ],
        how_bounded=None if bounded is None else bounded.record,
        exchanges=run.events.exchanges,
        stages=run.events.stages,
        lambda_low=None if bounded is None else _lambda_record(summaries, "low"),
        lambda_high=None if known else _lambda_record(summaries, "high"),
        converged=known and all(program.converged for program in found.programs),
        unsettled=found.unsettled,
        dense=found.dense,
        outputs=[
            OutputRecord(path=run.call.staging.prefix + f.name, rows=f.rows, bytes=f.bytes, sha256=f.sha256)
            for f in found.published.files
        ],
    )
    programs = {"programs": found.programs} if found.programs else {}
    return manifest.model_copy(
        update={"tracks": found.tracks, "plan": plan_record(run.plan, manifest.counts)} | programs
    )


def plan_record(plan: Plan, counts: Counts | None = None) -> PlanRecord:
    """The record of a plan's projections. A plan without a sample has upper bounds of the graph, which predict no
    seconds; those of programs are predicted from the `counts` of the run then.
    """
    programs = plan.programs
    if programs is not None and not plan.graph.rows_looked_at:
        programs = None if counts is None else replace(programs, edges=counts.edges, vertices=counts.vertices)
    return PlanRecord(
        rows_looked_at=plan.graph.rows_looked_at,
        edges=plan.edges,
        vertices=plan.graph.vertices.likely,
        worker_bytes=plan.unspilled_bytes,
        reason=plan.reason,
        triangles=plan.graph.triangles,
        seconds=None if plan.seconds is None else round(plan.seconds, 1),
        programs={} if programs is None else programs.all_seconds,
    )


def _counts(graph: Graph, published: Published, two_sided: bool) -> Counts:
    summaries, rows = published.summaries, graph.rows
    edges, support = published.edges, sum(summary.support for summary in summaries)
    duplicates = rows.duplicates + graph.buckets.duplicates
    dropped = rows.nulls + rows.filtered
    of_each = 4 if two_sided else 3
    if rows.rows != edges + rows.self_loops + duplicates + dropped or support % of_each:
        raise InternalError(
            f"rows do not add up: {rows.rows} read, {rows.self_loops} self-loops, {duplicates} duplicates, "
            f"{rows.nulls} nulls, {rows.filtered} left out by input.where, {edges} edges; supports add up to {support}"
        )
    return Counts(
        rows=rows.rows,
        self_loops=rows.self_loops,
        duplicates=duplicates,
        nulls_dropped=rows.nulls,
        filtered=rows.filtered,
        comments=rows.comments,
        edges=edges,
        vertices=published.vertices,
        triangles=support // 3 if summaries and not two_sided else None,
        butterflies=support // 4 if summaries and two_sided else None,
    )


def _lambda_record(summaries: Sequence[BucketSummary], end: Literal["low", "high"]) -> LambdaRecord:
    histogram = merge_histograms([getattr(own, end) for own in summaries])
    return LambdaRecord(
        max=max((value for value, _ in histogram), default=0),
        sum=sum(value * edges for value, edges in histogram),
        histogram=histogram,
        vertices=merge_histograms([getattr(own, f"vertex_{end}") for own in summaries]),
    )
