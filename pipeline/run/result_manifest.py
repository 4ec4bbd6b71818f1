"""The manifest of a result: the input, the findings, and the files that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from ...tasks.errors import InternalError
from ...tasks.publish.columns import merge_histograms
from ...tasks.publish.lambda_columns import BucketSummary
from ..bounding.schedule import BoundingResult
from ..checkpoint.checkpoint import Graph
from ..output.manifest import (
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
from ..stages.publishing import Published
from .context import RunContext
from .inputs.input_record import input_record


@dataclass(frozen=True)
class Outcome:
    """The findings of a run that the manifest needs."""

    bounded: BoundingResult | None
    """None in a run without λ."""
    unsettled: int
    """Edges whose λ is not known."""
    published: Published
    dense: DenseRecord | None
    tracks: TracksRecord | None
    programs: list[ProgramRecord]


def manifest_of(run: RunContext, graph: Graph, found: Outcome) -> Manifest:
    """The manifest of the result. Raises InternalError if rows, edges or triangles do not add up."""
    summaries, bounded = found.published.summaries, found.bounded
    known = bounded is None or bounded.converged
    manifest = Manifest(
        run=run.events.run_id,
        versions=versions(),
        device=run.engine.execution.device,
        settings=run.settings.model_dump(),
        started=run.events.started,
        finished=datetime.now(UTC),
        input=input_record(run.source, run.settings.input.isolated, graph.rows.notes),
        counts=_counts(graph, found.published),
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


def _counts(graph: Graph, published: Published) -> Counts:
    summaries, rows = published.summaries, graph.rows
    edges, support = published.edges, sum(summary.support for summary in summaries)
    duplicates = rows.duplicates + graph.buckets.duplicates
    dropped = rows.nulls + rows.filtered
    if rows.rows != edges + rows.self_loops + duplicates + dropped or support % 3:
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
        triangles=support // 3 if summaries else None,
    )


def _lambda_record(summaries: Sequence[BucketSummary], end: Literal["low", "high"]) -> LambdaRecord:
    histogram = merge_histograms([getattr(own, end) for own in summaries])
    return LambdaRecord(
        max=max((value for value, _ in histogram), default=0),
        sum=sum(value * edges for value, edges in histogram),
        histogram=histogram,
        vertices=merge_histograms([getattr(own, f"vertex_{end}") for own in summaries]),
    )
