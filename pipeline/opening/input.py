"""The input of one run: opened once, written to files first if it is a frame, recorded, and named in errors.

The record is that of the manifest, the log and the terminal. Attributes of vertices are opened by their footers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ...tasks.errors import EdgemillError, InputError, UsageError
from ...tasks.ids.display import type_name
from ...tasks.inputs.sources import Frame, Source
from ...tasks.storage.folders import Folder, folder_at
from ...tasks.storage.passwords import without_passwords
from ..events import Events
from ..inputs.frame_input import FrameInput, is_frame_input
from ..inputs.frame_rows import FOLDER
from ..inputs.input_object import InputObject, PathList, open_input, refuse_few_rows
from ..output.manifest import (
    Counts,
    FrameRecord,
    InputFile,
    InputRecord,
    LayoutRecord,
    TableRecord,
    WeightRecord,
    WhereRecord,
)
from ..output.staging import Staging
from ..settings.models import Settings
from ..settings.overlap import refuse_input_overlap

if TYPE_CHECKING:
    from ...tasks.attributes import AttributeSource
    from ..cluster.client import Client
    from .batch import BatchInput


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
        from .batch import BatchInput  # loads the kernels

        return self._given if isinstance(self._given, BatchInput) else None

    def written(self, source: Source) -> Source:
        """The opened `source` with files that hold its edges. Those of a batch of changes are written now."""
        if self.batch is None or source.files:
            return source
        from .reading import graph_of_result

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
                from ..programs.making import refuses_negative_weights

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
        from ..cluster.client import compute

        return compute(self._client, tasks)


def _place(settings: Settings, staging: Staging, client: Client | None) -> Folder:
    """The folder in which a frame is written.

    All workers can read it, and the next run removes files that a killed run left there.
    """
    here = client is None and settings.cluster.is_started_here
    return folder_at(staging.scratch) if here else staging.tables


def open_vertices(settings: Settings, source: Source) -> AttributeSource | None:
    """Open the attributes of vertices that the settings name, by their footers; None without such a setting.

    Raises InputError like `open_attributes`.
    """
    own = settings.input
    if own.vertices is None:
        return None
    from ...tasks.attributes import open_attributes  # loads the kernels

    return open_attributes(
        own.vertices,
        source.id_type,
        id_column=own.vertex_id,
        columns=own.vertex_columns,
        label=own.vertex_label,
        storage_options=own.storage_options,
        only_ids=own.isolated,
    )


def input_record(source: Source, isolated: bool = False, notes: Sequence[str] = ()) -> InputRecord:
    """The record of an input, without its fingerprint. `isolated`: whether listed vertices without edges count;
    `notes`: what was seen in its rows.
    """
    where, layout = source.where, source.layout
    return InputRecord(
        files=[]
        if source.frame is not None
        else [
            InputFile(path=without_passwords(f.path), bytes=f.bytes, rows=f.rows if source.is_counted else None)
            for f in source.files
        ],
        id_type=type_name(source.id_type),
        source_column=source.source_column,
        target_column=source.target_column,
        table=None if source.table is None else TableRecord(**asdict(source.table)),
        frame=None if source.frame is None else frame_record(source.frame, source.rows),
        format=source.format,
        layout=None if layout is None else LayoutRecord(**layout.facts()),
        where=None
        if where is None
        else WhereRecord(
            condition=where.condition.text,
            types={name: str(kind) for name, kind in where.types},
            files_left_out=source.files_left_out,
        ),
        bipartite=source.bipartite,
        two_sided=source.two_sided,
        directed=source.directed,
        weights=None
        if source.weights is None
        else WeightRecord(column=source.weights.column, repeats=source.weights.repeats),
        isolated=isolated,
        notes=[without_passwords(note) for note in (*source.notes, *notes)],
    )


def with_digests(record: InputRecord, digests: Sequence[str]) -> InputRecord:
    """The record with the SHA-256 of each file."""
    files = [file.model_copy(update={"sha256": one}) for file, one in zip(record.files, digests, strict=True)]
    return record.model_copy(update={"files": files})


def frame_record(frame: Frame, rows: int) -> FrameRecord:
    """The record of a frame with `rows` rows."""
    own = frame.sha256
    return FrameRecord(
        kind=frame.kind, rows=rows, sha256=own[0] if len(own) == 1 else sha256("".join(own).encode()).hexdigest()
    )


def report_input(source: Source, events: Events, notes: Sequence[str]) -> None:
    """Emit an event that says how the input is read, and `notes` on what was guessed about it."""
    where, layout = source.where, source.layout
    events.emit(
        "input",
        format=source.format,
        files=len(source.files),
        columns=[source.source_column, source.target_column],
        id_type=type_name(source.id_type),
        layout=None if layout is None else layout.facts(),
        where=None if where is None else where.condition.text,
        files_left_out=source.files_left_out,
        bipartite=source.bipartite,
        directed=source.directed,
        weights=None if source.weights is None else source.weights.column,
    )
    for note in notes:
        events.emit("note", text=without_passwords(note))


def no_triangle(counts: Counts, events: Events) -> list[str]:
    """The note for a graph with edges and without triangles; empty for other graphs. Emits the note as well."""
    if counts.triangles != 0 or not counts.edges:
        return []
    note = (
        "no edge is in a triangle, so every λ is 0 and there is no dense group: a table of two sets of ids, such as "
        "people and what they bought, never has one; run again with --two-sided, which finds dense groups of such a "
        "table by butterflies (docs/two-sided-tables.md)"
    )
    events.emit("note", text=note)
    return [note]
