"""All settings of a run. The sections are defined in modules of their own and imported from here.

A field's docstring is its help, in docs/settings.md and in editors. Units are in the names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Self

from pydantic import BaseModel, model_validator

from ...tasks.errors import UsageError
from ...tasks.storage.passwords import without_passwords
from ..programs.catalogue import CATALOGUE, Entry
from ..programs.own import OwnProgram
from .algorithm_settings import (
    MAX_PARTITIONS,
    BetweennessSettings,
    BfsSettings,
    BoundingSettings,
    DistancesSettings,
    EstimateSettings,
    HitsSettings,
    LabelsSettings,
    PagerankSettings,
    PartitioningSettings,
    ProgramsSettings,
    SsspSettings,
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
    "BetweennessSettings",
    "BfsSettings",
    "BoundingSettings",
    "CheckpointSettings",
    "ClusterSettings",
    "DistancesSettings",
    "EstimateSettings",
    "HitsSettings",
    "IngestSettings",
    "InputSettings",
    "LabelsSettings",
    "MonitoringSettings",
    "NightlySettings",
    "OutputSettings",
    "PagerankSettings",
    "PartitioningSettings",
    "ProgramsSettings",
    "Settings",
    "SsspSettings",
]

EDGE_COLUMNS = ("support", "lambda", "lambda_low", "lambda_high", "lambda_streamdn")
"""Columns of edges that are no program's."""
COLUMNS = ("id", "degree", "triangles", "lambda", "lambda_low", "lambda_high", "component")
"""Columns of vertices that are no program's."""


class Settings(Section):
    """All settings of a run. Every setting has a default, except the two paths."""

    own_programs: ClassVar[Mapping[str, OwnProgram]] = {}
    """Name → program of the user, in a model with sections for them."""

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
    pagerank: PagerankSettings = PagerankSettings()
    labels: LabelsSettings = LabelsSettings()
    bfs: BfsSettings = BfsSettings()
    sssp: SsspSettings = SsspSettings()
    betweenness: BetweennessSettings = BetweennessSettings()
    distances: DistancesSettings = DistancesSettings()
    hits: HitsSettings = HitsSettings()
    estimate: EstimateSettings = EstimateSettings()

    @classmethod
    def own_sections(cls) -> list[str]:
        """Names of the sections of the user's programs."""
        return [name for name, program in cls.own_programs.items() if program.parameters]

    def entry(self, name: str) -> Entry:
        """A program of the run."""
        return CATALOGUE[name] if name in CATALOGUE else self.own_programs[name].entry()

    @property
    def edge_columns(self) -> tuple[str, ...]:
        """The columns that the run adds to the table of edges."""
        estimates = ("lambda_streamdn",) if self.bounding.operator == "streamdn" else ()
        return estimates + tuple(
            column.name for name in self.programs.vertex_programs for column in self.entry(name).edges
        )

    @model_validator(mode="after")
    def _check_columns(self) -> Self:
        for reserved, of_edges in ((COLUMNS, False), (EDGE_COLUMNS, True)):
            seen = dict.fromkeys(reserved, "every result")
            for name in self.programs.vertex_programs:
                entry = self.entry(name)
                for column in entry.edges if of_edges else entry.columns:
                    if column.name in seen:
                        raise ValueError(
                            f"the program {name} has a column {column.name!r}, as {seen[column.name]} has: "
                            "name the program, as in --program other=module:Class"
                        )
                    seen[column.name] = f"the program {name}"
        return self

    @model_validator(mode="after")
    def _check_programs(self) -> Self:
        for name in self.programs.vertex_programs:
            entry = self.entry(name)
            if entry.edges and not self.programs.find_lambda:
                raise ValueError(
                    f"the program {name} has columns of edges, and a run without lambda has no table of edges: "
                    f"--programs lambda,{name}"
                )
            if entry.section is None:
                continue
            section = getattr(self, entry.section)
            for parameter in entry.vertices:
                if getattr(section, parameter) is None:
                    raise ValueError(
                        f"the program {name} needs the id of a vertex: --set {entry.section}.{parameter}=ID"
                    )
            weighted = entry.weights == "needed" or (entry.weights == "optional" and section.weighted)
            if weighted and self.input.weight_column is None:
                raise ValueError(f"{entry.without_weights}: name their column with --weight-column")
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
    "input": InputSettings,
    "output": OutputSettings,
    "ingest": IngestSettings,
    "partitioning": PartitioningSettings,
    "bounding": BoundingSettings,
    "checkpoint": CheckpointSettings,
    "cluster": ClusterSettings,
    "nightly": NightlySettings,
    "monitoring": MonitoringSettings,
    "programs": ProgramsSettings,
    "pagerank": PagerankSettings,
    "labels": LabelsSettings,
    "bfs": BfsSettings,
    "sssp": SsspSettings,
    "betweenness": BetweennessSettings,
    "distances": DistancesSettings,
    "hits": HitsSettings,
    "estimate": EstimateSettings,
}
"""Section name → its model, in the order of the settings file."""
