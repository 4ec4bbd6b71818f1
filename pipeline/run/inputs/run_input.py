"""The input of one run: it is opened once, written to files first if it is a frame, and named in errors."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ....tasks.errors import EdgemillError, InputError, UsageError
from ....tasks.inputs.sources import Source
from ....tasks.storage.folders import Folder, folder_at
from ...frames.frame_input import FrameInput, is_frame_input
from ...frames.input_object import InputObject
from ...frames.opening import open_input, refuse_few_rows
from ...frames.path_list import PathList
from ...frames.row_groups import FOLDER
from ...monitor.events import Events
from ...output.staging import Staging
from ...settings.models import Settings
from ...settings.overlap import refuse_input_overlap
from .input_record import report_input

if TYPE_CHECKING:
    from ...cluster.client import Client
    from ...updating.batch import BatchInput


def accepted_input(given: object) -> str | InputObject:
    """A path as text, or another kind of input. Raises UsageError for a type that cannot be mined."""
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    if isinstance(given, list | tuple):
        return PathList.of(given)
    if is_frame_input(given):
        return FrameInput(given)
    raise UsageError(
        f"mine cannot read a {type(given).__module__}.{type(given).__qualname__}: give a path, a list of paths, "
        "a table (pandas, polars, Arrow, DuckDB, Dask, cudf) or a graph (networkx, igraph, scipy.sparse)"
    )


def refuse_overlap(given: InputObject | None, settings: Settings) -> None:
    """Raises UsageError if an input lies in the output folder, or contains it."""
    out = folder_at(settings.output.path, settings.output.storage_options)
    for path in (settings.input.path,) if given is None else given.paths:
        refuse_input_overlap(folder_at(path, settings.input.storage_options), out)


class RunInput:
    """The input of a run with these settings. `given` is the input if it is not a path; `client` has its cluster."""

    def __init__(
        self, settings: Settings, given: InputObject | None, staging: Staging, client: Client | None, events: Events
    ) -> None:
        self._settings, self._given, self._client, self._events = settings, given, client, events
        self._place = _place(settings, staging, client)
        self._source: Source | None = None

    @property
    def is_written(self) -> bool:
        """Whether the input is a frame, which is written to files when it is opened."""
        return isinstance(self._given, FrameInput)

    @property
    def batch(self) -> BatchInput | None:
        """The input, if it is an earlier result with a batch of changes."""
        if self._given is None:
            return None
        from ...updating.batch import BatchInput  # loads the kernels

        return self._given if isinstance(self._given, BatchInput) else None

    def written(self, source: Source) -> Source:
        """The opened `source` with files that hold its edges. Those of a batch of changes are written now."""
        if self.batch is None or source.files:
            return source
        from ...updating.reading import graph_of_result

        self._source = self.batch.written(source, graph_of_result(self.batch.base), self._place)
        self._tell(self._source)
        return self._source

    def open(self) -> Source:
        """The files of the input. A frame is written at the first call. Raises InputError, UsageError, OutOfRoom."""
        if self._source is None:
            if self._given is None:
                self._source = open_input(self._settings)
            else:
                with self.named():
                    self._source = self._given.open(self._settings.input, self._place, self._compute)
                    if self.batch is None:
                        self._tell(self._source)
                    refuse_few_rows(self._source, self._settings.input.least_rows)
            self._refuse_names(self._source)
            if self._source.weights is not None:
                from ...programs.making import refuses_negative_weights

                weights = replace(self._source.weights, nonnegative=refuses_negative_weights(self._settings))
                self._source = replace(self._source, weights=weights)
        return self._source

    def read_as(self, source: Source) -> None:
        """Let `source` be the input from now on. It is reported, with its new notes, if it is not the opened one."""
        if self._source is not None and source is not self._source:
            report_input(source, self._events, source.notes[len(self._source.notes) :])
        self._source = source

    def _refuse_names(self, source: Source) -> None:
        """Raises InputError if the run adds a column of edges with the name of an id column."""
        for column in (source.source_column, source.target_column):
            if column in self._settings.edge_columns:
                raise InputError(
                    f"the column {column!r} of ids has the name of a column that the run adds to the table of edges: "
                    "rename it in the input"
                )

    def _tell(self, source: Source) -> None:
        if source.frame is not None:
            size = {"rows": source.rows, "files": len(source.files), "bytes": source.bytes}
            self._events.emit("input_written", input=source.frame.kind, **size)

    def remove(self) -> None:
        """Remove the files of a frame, after they have been read for the last time."""
        if self._source is not None and self._source.frame is not None and self._source.files:
            self._place.remove(FOLDER)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Context in which errors about a frame name the frame instead of its files."""
        try:
            yield
        except EdgemillError as error:
            if isinstance(self._given, FrameInput):
                error.args = tuple(self._told(part) if isinstance(part, str) else part for part in error.args)
            raise

    def _told(self, text: str) -> str:
        """The text with the name of the frame instead of its files."""
        name = "" if self._given is None else self._given.name
        for file in () if self._source is None else self._source.files:
            text = text.replace(file.path, name)
        return re.sub(rf"{re.escape(str(self._place.subfolder(FOLDER)))}(/part-[0-9]+\.parquet)?", name, text)

    def _compute(self, *tasks: Any) -> Any:
        from ...cluster.client import compute

        return compute(self._client, tasks)


def _place(settings: Settings, staging: Staging, client: Client | None) -> Folder:
    """The folder in which a frame is written.

    All workers can read it, and the next run removes files that a killed run left there.
    """
    here = client is None and settings.cluster.is_started_here
    return folder_at(staging.scratch) if here else staging.tables
