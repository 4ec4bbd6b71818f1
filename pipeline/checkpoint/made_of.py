"""The values that must be equal in a checkpoint and in the run that resumes from it."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from ...tasks.inputs.sources import Source
from ..plan.plan import Plan
from ..settings.models import Settings


def made_of(settings: Settings, source: Source, plan: Plan) -> dict[str, Any]:
    """Values that must be equal to resume from a checkpoint, as JSON values by their names in messages."""
    return {
        "input": _files(source),
        "choice of columns": [source.source_column, source.target_column, str(source.id_type)],
        "input.nulls": settings.input.nulls,
        "input.where": settings.input.where,
        "input.bipartite": settings.input.bipartite,
        "input.directed": settings.input.directed,
        "layout of the input": None if source.layout is None else source.layout.facts(),
        "partitioning.method": plan.partitioning,
        "number of partitions": plan.partitions,
        "number of shards": plan.shards,
        "number of buckets": plan.buckets,
        "device": "gpu" if plan.capacity.device_bytes else "cpu",
        "place of its edges": "gpu" if plan.ingest_on_device else "host",
    }


def _files(source: Source) -> list[list[Any]]:
    """Identities of the files, as JSON values. A file without a known version never equals another one."""
    if source.frame is not None:
        return [[digest] for digest in source.frame.sha256]
    return [[file.path, file.bytes, list(file.row_groups), file.version or uuid4().hex] for file in source.files]
