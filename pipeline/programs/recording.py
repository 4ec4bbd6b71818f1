"""What the manifest and the log tell of a program that has run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...tasks.programs import Outcome
from ..output.manifest import ProgramRecord
from ..settings.models import Settings
from .declared import DeclaredProgram

_NOT_TOLD = {"parameters", "columns", "facts", "edge_columns", "meanings", "id_columns"}
TOLD = set(ProgramRecord.model_fields.keys() - _NOT_TOLD)
"""Fields of a record that the event `program` has."""


def record_of(
    program: DeclaredProgram,
    settings: Settings,
    seconds: float,
    groups: Sequence[Outcome] = (),
    carrier: str = "memory",
    **begun: Any,
) -> ProgramRecord:
    """The record of a program that ran on `groups`, or without supersteps."""
    first = groups[0] if groups else None
    columns = (*program.columns, *program.edge_columns)
    return ProgramRecord(
        name=program.name,
        parameters=settings.parameters_of(program.name),
        columns=[column.name for column in program.columns],
        supersteps=0 if first is None else first.steps,
        converged=first is None or first.converged,
        moved=0 if first is None else first.moved,
        groups=len(groups),
        carrier=carrier,
        entries=sum(own.entries for own in groups),
        bytes=sum(own.bytes for own in groups),
        seconds=round(seconds, 3),
        order="synchronous" if first is None else first.order,
        exchanges=0 if first is None else first.exchanges,
        source=program.place if program.is_own else None,
        sha256=program.sha256,
        facts={} if first is None else dict(first.facts),
        edge_columns=[column.name for column in program.edge_columns],
        meanings={column.name: column.meaning for column in columns},
        id_columns=[column.name for column in columns if column.kind == "id"],
        **begun,
    )
