"""Programs with their parameters from the settings, and their records in the manifest and the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...tasks.programs import AnyProgram, EdgeProgram, ProgramOutcome
from ...tasks.programs.orders.calls import needs_weights
from ..output.manifest import ProgramRecord
from ..settings.declared_programs import DeclaredProgram, every_shipped
from ..settings.models import Settings
from .vertices import Numbers

_NOT_TOLD = {"parameters", "columns", "facts", "edge_columns", "meanings", "id_columns", "group_column", "group_level"}
TOLD = set(ProgramRecord.model_fields.keys() - _NOT_TOLD)
"""Fields of a record that the event `program` has."""


def record_of(
    program: DeclaredProgram,
    settings: Settings,
    seconds: float,
    groups: Sequence[ProgramOutcome] = (),
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
        id_columns=[column.name for column in columns if column.kind == "id" or column.name == program.group_column],
        group_column=program.group_column,
        group_level=None if program.groups is None else program.groups.level,
        **begun,
    )


def shipped_programs() -> list[AnyProgram]:
    """All programs of edgemill over vertices with their default parameters, and weighted if they can be."""
    made = []
    for program in every_shipped().values():
        made.append(program.make({}))
        if "weighted" in program.parameters:
            made.append(program.make({"weighted": True}))
    return [program for program in made if not isinstance(program, EdgeProgram)]


def program_of(name: str, settings: Settings, numbers: Numbers | None = None) -> AnyProgram | EdgeProgram:
    """A program of the run with its parameters. `numbers` are the dense numbers of the vertices in them; without these,
    the program has other vertices.
    """
    declared, parameters = settings.program(name), settings.parameters_of(name)
    for vertices in declared.vertices:
        given = parameters.pop(vertices)
        if numbers is not None:
            several = isinstance(given, list)
            found = tuple(numbers[text] for text in (given if several else (given,)))
            parameters[vertices] = found if several else found[0]
    return declared.make(parameters)


def identity_of(name: str, settings: Settings) -> dict[str, Any]:
    """The parameters of a program, and for one of the user the version of its module: what its results depend on."""
    declared, parameters = settings.program(name), settings.parameters_of(name)
    return parameters | ({"the module": [declared.place, declared.sha256]} if declared.is_own else {})


def topology_limit(settings: Settings) -> int | None:
    """Most bytes of a GPU's memory that hold edges while programs run; None for what is free."""
    most = settings.programs.device_topology_bytes
    return settings.cluster.device_memory_limit_bytes if most is None else most


def refuses_negative_weights(settings: Settings) -> bool:
    """Whether a requested program forbids weights below 0."""
    programs = [program_of(name, settings) for name in settings.requested_programs]
    over_vertices = [program for program in programs if not isinstance(program, EdgeProgram)]
    return any(program.nonnegative and needs_weights(program) for program in over_vertices)
