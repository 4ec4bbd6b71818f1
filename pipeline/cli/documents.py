"""JSON documents of a plan (`plan --json`) and a finished run (`run --json`, `show --json`). See docs/json.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ...tasks.ids.display import type_name
from ...tasks.storage.passwords import without_passwords
from ..plan.fit import excess, fit
from ..plan.plan import Plan
from ..report.report import report_of
from ..results.result import Result


def plan_document(plan: Plan) -> dict[str, Any]:
    """The document of a plan, as JSON values. Sizes are in bytes; null means no limit, or not known."""
    source, graph, capacity = plan.source, plan.graph, plan.capacity
    return {
        "input": {
            "path": without_passwords(source.path),
            "files": len(source.files),
            "bytes": source.bytes,
            "rows": source.rows,
            "rows_are_counted": source.is_counted,
            "source_column": source.source_column,
            "target_column": source.target_column,
            "id_type": type_name(source.id_type),
            "table": None if source.table is None else asdict(source.table),
            "format": source.format,
            "layout": None if source.layout is None else source.layout.facts(),
            "where": None if source.where is None else source.where.condition.text,
            "files_left_out": source.files_left_out,
            "bipartite": source.bipartite,
            "notes": [without_passwords(note) for note in source.notes],
        },
        "rows_looked_at": graph.rows_looked_at,
        "edges": asdict(graph.edges),
        "vertices": asdict(graph.vertices),
        "share_in_triangles": round(graph.with_triangles, 4),
        "workers": capacity.workers,
        "threads_per_worker": capacity.kernel_threads,
        "memory_limit_bytes": capacity.memory_bytes or None,
        "device": "gpu" if plan.device_bytes else "cpu",
        "device_memory_bytes": capacity.device_bytes or None,
        "blocks": len(plan.blocks),
        "partitions": plan.partitions,
        "shards": plan.shards,
        "bands_at": plan.bands_at,
        "reason": plan.reason,
        "method": plan.method,
        "tasks": plan.tasks,
        "triangles": graph.triangles,
        "seconds": None if plan.seconds is None else round(plan.seconds, 1),
        "programs": None if plan.programs is None else plan.programs.document(),
        "partition_bytes": plan.partition_bytes,
        "worker_bytes": plan.unspilled_bytes,
        "worker_bytes_that_stay": plan.worker_bytes,
        "device_bytes": plan.device_bytes or None,
        "compact_rows": plan.compact_rows,
        "spilled_bytes": plan.spilled_bytes,
        "checkpoint_bytes": plan.checkpoint_bytes,
        "output_bytes": graph.output_bytes,
        "disk_bytes": plan.disk_bytes,
        "fits": fit(plan) == "yes",
        "tight": excess(plan) if fit(plan).startswith("tight") else None,
    }


_SHORT = ("run", "started", "finished", "device", "converged", "unsettled", "counts", "lambda", "lambda_high", "dense")
"""Keys of the manifest that every document has, with the same meaning."""
_INPUT = (
    "source_column",
    "target_column",
    "id_type",
    "table",
    "frame",
    "format",
    "where",
    "bipartite",
    "two_sided",
    "notes",
)
_NOT_COPIED = ("input", "format", "format_version", "outputs")
"""Keys of the manifest that are not copied as they are."""


def result_document(result: Result, groups: Sequence[dict[str, Any]], detail: bool = False) -> dict[str, Any]:
    """The document of a result, as JSON values. `detail` adds the other keys of the manifest."""
    manifest = result.manifest.model_dump(mode="json", by_alias=True)
    files = result.manifest.input.files
    read = {name: manifest["input"][name] for name in _INPUT}
    document = {
        "result": result.place.absolute,
        "report": report_of(result),
        "seconds": round(result.manifest.seconds, 3),
        **{name: manifest[name] for name in _SHORT},
        "input": {"files": len(files), "bytes": sum(file.bytes for file in files), **read},
        "groups": [*groups],
    }
    if detail:
        document |= {name: value for name, value in manifest.items() if name not in {*document, *_NOT_COPIED}}
    return document
