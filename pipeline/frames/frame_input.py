"""A frame or a graph as the input of a run: its edges in files, for the time of the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...tasks.errors import UsageError
from ...tasks.inputs.form import Form
from ...tasks.places import Place
from ...tasks.sources import Frame, Source, open_source
from ...tasks.writing import VALUE_COLUMNS, OutputFile
from ..settings import InputSettings
from .dask_partitions import is_dask_frame, write_partitions
from .frame_rows import is_frame, rows_of_frame
from .given import Columns
from .graph_rows import is_graph, rows_of_graph
from .row_groups import FOLDER, write_rows

__all__ = ["FrameInput", "is_frame_input"]

_SAID = {"_duckdb": "duckdb"}


def is_frame_input(given: object) -> bool:
    """Whether `FrameInput` takes it."""
    return is_graph(given) or is_dask_frame(given) or is_frame(given)


@dataclass(frozen=True)
class FrameInput:
    """What `is_frame_input` takes. What can be read but once, such as a reader of batches, is used up by `open`."""

    given: Any = field(repr=False)
    paths: Sequence[str] = ()

    @property
    def name(self) -> str:
        """Package and class, as `pandas.DataFrame`."""
        kind = type(self.given)
        package = kind.__module__.partition(".")[0]
        return f"{_SAID.get(package, package)}.{kind.__qualname__}"

    def open(self, settings: InputSettings, place: Place, compute: Callable[..., Any]) -> Source:
        """Write its edges below `place` and open what was written."""
        for option in ("complete_marker", "table_version", "where", "header", "delimiter", "comment"):
            if getattr(settings, option) is not None:
                raise UsageError(f"input.{option} is for files, and the input is a {self.name}: leave it out")
        if place.is_local:
            Path(place.url, FOLDER).mkdir(0o700)
        written = self._write(Columns(settings.source_column, settings.target_column), place, compute)
        ends = settings.source_column, settings.target_column
        folder = place.within(FOLDER)
        form = Form(bipartite=settings.bipartite, directed=settings.directed)
        source = open_source(folder.url, *ends, folder.options, VALUE_COLUMNS, form=form)
        return replace(source, path=self.name, frame=Frame(self.name, tuple(file.sha256 for file in written)))

    def _write(self, columns: Columns, place: Place, compute: Callable[..., Any]) -> list[OutputFile]:
        if is_dask_frame(self.given):
            return write_partitions(self.given, self.name, columns, place, compute)
        read = rows_of_graph if is_graph(self.given) else rows_of_frame
        return [write_rows(place, 0, read(self.given, self.name, columns))]
