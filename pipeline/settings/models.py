"""All settings of a run. The sections are defined in modules of their own and imported from here.

A field's docstring is its help, in docs/settings.md and in editors. Units are in the names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Self

from pydantic import BaseModel, model_validator

from ...tasks.errors import UsageError
from ...tasks.storage.passwords import without_passwords
from ..programs.catalogue import CATALOGUE
from .algorithm_settings import (
    MAX_PARTITIONS,
    BfsSettings,
    BoundingSettings,
    EstimateSettings,
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
    "BfsSettings",
    "BoundingSettings",
    "CheckpointSettings",
    "ClusterSettings",
    "EstimateSettings",
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


class Settings(Section):
    """All settings of a run. Every setting has a default, except the two paths."""

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
    estimate: EstimateSettings = EstimateSettings()

    @model_validator(mode="after")
    def _check_programs(self) -> Self:
        for name in self.programs.run:
            entry = CATALOGUE.get(name)
            section = None if entry is None or entry.section is None else getattr(self, entry.section)
            if entry is None or section is None:
                continue
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
    "estimate": EstimateSettings,
}
"""Section name → its model, in the order of the settings file."""
