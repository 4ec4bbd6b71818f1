"""The manifest of an updated result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ...tasks.inputs.sources import Source
from ...tasks.publish.columns import merge_histograms
from ...tasks.publish.lambda_columns import BucketSummary
from ...tasks.publish.writing import OutputFile
from ...tasks.update.merging import Change
from ..opening.context import Call
from ..opening.input import input_record
from ..output.manifest import Counts, DenseRecord, Manifest, ProgramRecord, TracksRecord, UpdateRecord, versions
from ..results.result import Result
from ..stages.ingesting import RowCounts
from .deciding import Decision


@dataclass(frozen=True)
class UpdateFiles:
    """What an update wrote."""

    files: list[OutputFile]
    kept: int
    """Files that were taken over."""
    summary: BucketSummary | None
    """The summary of the new tables; None if all files, and with them the totals, were taken over."""
    dense: DenseRecord
    tracks: TracksRecord


@dataclass(frozen=True)
class UpdateOutcome:
    """How an update went."""

    change: Change
    rows: RowCounts
    repeated: int
    """Rows of a batch that repeat an edge."""
    decision: Decision
    changed: int | None
    triangles: int


def manifest_of(
    call: Call, source: Source, base: Result, made: UpdateFiles, went: UpdateOutcome, programs: Sequence[ProgramRecord]
) -> Manifest:
    """The manifest of the result. `programs` are the records of its vertex programs."""
    then, events = base.manifest, call.events
    read = input_record(source, notes=went.rows.notes)
    if read.frame is not None and not source.files:
        read = read.model_copy(update={"frame": read.frame.model_copy(update={"rows": went.rows.rows})})
    content: dict[str, Any] = {
        "run": events.run_id,
        "versions": versions(),
        "device": "cpu",
        "settings": call.settings.model_dump(),
        "started": events.started,
        "finished": datetime.now(UTC),
        "input": read,
        "exchanges": [],
        "stages": events.stages,
        "converged": all(program.converged for program in programs),
        "programs": list(programs),
        "dense": made.dense,
        "tracks": made.tracks,
        "update": _record(call, base, made, went),
        "outputs": [
            {"path": call.staging.prefix + f.name, "rows": f.rows, "bytes": f.bytes, "sha256": f.sha256}
            for f in made.files
        ],
    }
    return Manifest.model_validate(content | _totals(then, made, went))


def _totals(then: Manifest, made: UpdateFiles, went: UpdateOutcome) -> dict[str, Any]:
    rows, whole = went.rows, made.summary
    read = {
        "rows": rows.rows,
        "self_loops": rows.self_loops,
        "duplicates": rows.duplicates,
        "nulls_dropped": rows.nulls,
        "filtered": rows.filtered,
        "comments": rows.comments,
    }
    if whole is None:
        counts = then.counts.model_copy(update=read)
        lam, edges, vertices = then.lam.model_dump(), counts.edges, counts.vertices
    else:
        edges, vertices, histogram = whole.edges, whole.vertices, merge_histograms([whole.low])
        counts = Counts(**read, edges=edges, vertices=vertices, triangles=whole.support // 3)
        lam = {
            "max": max((value for value, _ in histogram), default=0),
            "sum": sum(value * number for value, number in histogram),
            "histogram": histogram,
            "vertices": merge_histograms([whole.vertex_low]),
        }
    evaluations = went.changed if went.changed is not None else edges
    partition = {"partition": 0, "owned": edges, "inner": edges, "cut": 0}
    return {
        "counts": counts,
        "lambda": lam,
        "partitions": [partition | {"vertices": vertices}],
        "bounding": {
            "method": "update" if went.decision.way == "changes" else "peel",
            "steps": len(lam["histogram"]),
            "exchanges": 0,
            "evaluations": evaluations,
        },
    }


def _record(call: Call, base: Result, made: UpdateFiles, went: UpdateOutcome) -> UpdateRecord:
    before, change, whole = base.manifest.update, went.change, went.decision.way == "whole"
    return UpdateRecord(
        base=str(base.place),
        base_run=base.manifest.run,
        full_run=call.events.run_id if whole else base.manifest.run if before is None else before.full_run,
        nights=0 if whole else nights_since(base) + 1,
        way=went.decision.way,
        reason=went.decision.reason,
        inserted=change.added.edges,
        deleted=change.lost,
        present=change.counts.present,
        absent=change.counts.absent,
        in_both=change.counts.in_both,
        repeated=went.repeated,
        vertices_new=change.came,
        vertices_gone=change.gone,
        changed=went.changed,
        triangles=went.triangles,
        expected=went.decision.expected,
        files_kept=made.kept,
    )


def nights_since(base: Result) -> int:
    """Updates from the last full run to this result."""
    return 0 if base.manifest.update is None else base.manifest.update.nights
