"""All settings of a run. The sections are defined in modules of their own and imported from here.

A field's docstring is its help, in docs/settings.md and in editors. Units are in the names. The sections of programs
are made from their classes, for the programs that a run names (`program_sections`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import BaseModel, model_validator

from ...tasks.errors import UsageError
from ...tasks.publish.result_columns import EDGES, VERTICES, names_of
from ...tasks.storage.passwords import without_passwords
from ..programs.declared import DeclaredProgram, shipped
from .algorithm_settings import (
    MAX_PARTITIONS,
    BoundingSettings,
    EstimateSettings,
    PartitioningSettings,
    ProgramsSettings,
)
from .cluster_settings import ClusterSettings
from .dates import has_date, replace_date
from .input_settings import IngestSettings, InputSettings
from .operation_settings import MonitoringSettings, NightlySettings
from .output_settings import CheckpointSettings, OutputSettings
from .section import Section

__all__ = [
    "MAX_PARTITIONS",
    "SECTIONS",
    "BoundingSettings",
    "CheckpointSettings",
    "ClusterSettings",
    "EstimateSettings",
    "IngestSettings",
    "InputSettings",
    "MonitoringSettings",
    "NightlySettings",
    "OutputSettings",
    "PartitioningSettings",
    "ProgramsSettings",
    "Settings",
]


class Settings(Section):
    """All settings of a run. Every setting has a default, except the two paths."""

    declared: ClassVar[Mapping[str, DeclaredProgram]] = {}
    """Name → program, of those that the settings name."""

    input: InputSettings
    output: OutputSettings
    ingest: IngestSettings = IngestSettings()
    partitioning: PartitioningSettings = PartitioningSettings()
    bounding: BoundingSettings = BoundingSettings()
    checkpoint: CheckpointSettings = CheckpointSettings()
    cluster: ClusterSettings = ClusterSettings()
    nightly: NightlySettings = NightlySettings()
    monitoring: MonitoringSettings = MonitoringSettings()
    programs: ProgramsSettings = ProgramsSettings()
    estimate: EstimateSettings = EstimateSettings()

    def program(self, name: str) -> DeclaredProgram:
        """A program of the run."""
        return self.declared[name] if name in self.declared else shipped(name)

    @property
    def requested_programs(self) -> dict[str, DeclaredProgram]:
        """Name → program of the run, in the order of their columns."""
        return {name: self.program(name) for name in self.programs.vertex_programs}

    def parameters_of(self, name: str) -> dict[str, Any]:
        """The parameters of a program, by name, as JSON values."""
        section = getattr(self, name, None)
        return {} if section is None else section.model_dump(mode="json")

    @property
    def edge_columns(self) -> tuple[str, ...]:
        """The columns that the run adds to the table of edges."""
        estimates = names_of([own for own in EDGES if own.when == "estimated"])
        estimates = estimates if self.bounding.operator == "streamdn" else ()
        return estimates + tuple(
            column.name for program in self.requested_programs.values() for column in program.edge_columns
        )

    @model_validator(mode="after")
    def _check_columns(self) -> Self:
        for reserved, of_edges in ((VERTICES, False), (EDGES, True)):
            seen = dict.fromkeys(names_of(reserved), "every result")
            for name, program in self.requested_programs.items():
                for column in program.edge_columns if of_edges else program.columns:
                    if column.name in seen:
                        raise ValueError(
                            f"the program {name} has a column {column.name!r}, as {seen[column.name]} has: "
                            "name the program, as in --program other=module:Class"
                        )
                    seen[column.name] = f"the program {name}"
        return self

    @model_validator(mode="after")
    def _check_programs(self) -> Self:
        for name, program in self.requested_programs.items():
            if program.needs_lambda and not self.programs.find_lambda:
                why = "weighs edges by their triangles, and a run without lambda counts none"
                if program.edge_columns:
                    why = "has columns of edges, and a run without lambda has no table of edges"
                raise ValueError(f"the program {name} {why}: --programs lambda,{name}")
            for parameter in program.vertices:
                if getattr(getattr(self, name), parameter) is None:
                    raise ValueError(f"the program {name} needs the id of a vertex: --set {name}.{parameter}=ID")
        return self

    @model_validator(mode="after")
    def _check_copies(self) -> Self:
        method, count = self.bounding.method, self.partitioning.count
        if method in ("band", "fixpoint") and count not in ("auto", 1):
            raise ValueError(
                f"bounding.method={method} works on copies of the graph: leave out partitioning.count={count}"
            )
        return self

    @model_validator(mode="after")
    def _check_series(self) -> Self:
        day, series = self.nightly.date, self.nightly.series
        if series is None:
            if self.nightly.keep is not None:
                raise ValueError("nightly.keep applies to a series of nights: put {date} into output.path")
            return self
        if re.match(r"[^/]+://[^/]*\{date\}", series):
            raise ValueError(f"output.path {without_passwords(series)}: {{date}} must come after the bucket name")
        try:
            fits = (
                day is not None and replace_date(series, day) == self.output.path and has_date(series, "nightly.series")
            )
        except UsageError as error:
            raise ValueError(str(error)) from error
        if not fits:
            raise ValueError("nightly.series does not match output.path: leave it out")
        return self


SECTIONS: Mapping[str, type[BaseModel]] = {
    name: field.annotation
    for name, field in Settings.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
}
"""Section name → its model, in the order of the settings file."""
