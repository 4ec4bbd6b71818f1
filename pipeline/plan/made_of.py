"""The values that must be equal in a checkpoint and in the run that resumes from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ...tasks.attributes import AttributeSource
from ...tasks.inputs.sources import Source, SourceFile
from ..settings.models import Settings

if TYPE_CHECKING:
    from .plan import Plan


def made_of_input(settings: Settings, source: Source) -> dict[str, Any]:
    """Values that determine the edges of an input and their weights, as JSON values by their names in messages."""
    return {
        "input": _input(source),
        "choice of columns": [source.source_column, source.target_column, str(source.id_type)],
        "input.nulls": settings.input.nulls,
        "input.where": settings.input.where,
        "input.bipartite": settings.input.bipartite,
        "input.directed": settings.input.directed,
        "weights": None if source.weights is None else list(astuple(source.weights)),
        "layout of the input": None if source.layout is None else source.layout.facts(),
    }


def made_of(settings: Settings, source: Source, plan: Plan, vertices: AttributeSource | None = None) -> dict[str, Any]:
    """Values that must be equal to resume from a checkpoint, as JSON values by their names in messages.

    `vertices` is the table of vertices, on which the graph depends if its isolated ones count.
    """
    listed = vertices if settings.input.isolated else None
    return made_of_input(settings, source) | {
        "isolated vertices": None if listed is None else [listed.id_column, _files(listed.files)],
        "number of partitions": plan.partitions,
        "number of shards": plan.shards,
        "number of buckets": plan.buckets,
        "device": "gpu" if plan.capacity.device_bytes else "cpu",
        "place of its edges": "gpu" if plan.ingest_on_device else "host",
    }


def _input(source: Source) -> list[list[Any]]:
    return _files(source.files) if source.frame is None else [[digest] for digest in source.frame.sha256]


def _files(files: Sequence[SourceFile]) -> list[list[Any]]:
    """Identities of the files, as JSON values. A file without a known version never equals another one."""
    return [[file.path, file.bytes, list(file.row_groups), file.version or uuid4().hex] for file in files]
