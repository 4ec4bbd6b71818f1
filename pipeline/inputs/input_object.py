"""Inputs that are no single path: the protocol of Python objects that `mine` takes, and lists of paths.

`open_input` opens the input that the settings name by its footers. It loads no kernels.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import pyarrow as pa

from ...tasks.errors import InputAbsent, InputIncomplete, UsageError
from ...tasks.inputs.columns import check_columns
from ...tasks.inputs.finding import refuse_unmarked
from ...tasks.inputs.open_source import open_source
from ...tasks.inputs.sources import Source
from ...tasks.publish.writing import EDGE_VALUE_COLUMNS
from ...tasks.storage.folders import Folder
from ..settings.models import InputSettings, Settings


@dataclass
class ColumnNames:
    """The columns of a frame with ids and weights: as the settings name them, and then as they were found."""

    source: str | None
    target: str | None
    weight: str | None = None
    """None if edges have no weights."""
    two_sets: bool = False
    """Whether the ids get the names of their columns as prefixes, so that their types may differ."""
    notes: tuple[str, ...] = ()
    """Sentences on what the settings do not name."""

    def find(self, name: str, schema: pa.Schema, reserved: Collection[str] = ()) -> tuple[str, ...]:
        """The names of these columns in a frame, called `name` in messages. They are kept, with notes.

        Raises InputError as `check_columns` does.
        """
        found, notes = check_columns(name, schema, self.source, self.target, reserved, self.weight, self.two_sets)
        self.source, self.target = found[:2]
        self.notes += notes
        return found


@dataclass(frozen=True)
class EdgeBatches:
    """Two columns of ids, and a third one of weights if edges have weights, in batches."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


class InputObject(Protocol):
    """An input that is a Python object and not a path."""

    @property
    def name(self) -> str:
        """The name of the input in messages, log and manifest."""

    @property
    def paths(self) -> Sequence[str]:
        """The paths of the input's files; empty if it has none."""

    def open(self, settings: InputSettings, folder: Folder, compute: Callable[..., Any]) -> Source:
        """Open the input's files, or files that are written below `folder`.

        `compute` is `dask.compute`, or an equivalent on a client. Raises InputError, UsageError, OutOfRoom.
        """


@dataclass(frozen=True)
class PathList:
    """Paths or fsspec URLs of files with edges. A file that several paths match is read once."""

    paths: Sequence[str]

    @classmethod
    def of(cls, paths: Sequence[Any]) -> Self:
        """The list of these paths. Raises UsageError for an empty list, and for an item that is not a path."""
        if not paths:
            raise UsageError("the list of inputs is empty: name a path")
        for one in paths:
            if not isinstance(one, str | os.PathLike):
                raise UsageError(f"a list of inputs holds paths, but it has {one!r}, a {type(one).__name__}")
        return cls([os.fspath(one) for one in paths])

    @property
    def name(self) -> str:
        """The number of paths; the manifest lists the files."""
        return "1 path" if len(self.paths) == 1 else f"{len(self.paths)} paths"

    def open(self, settings: InputSettings, folder: Folder, compute: Callable[..., Any]) -> Source:
        """Open the files, as `tasks.inputs.open_source` does."""
        ends = settings.source_column, settings.target_column
        return open_source(self.paths, *ends, settings.storage_options, EDGE_VALUE_COLUMNS, form=settings.form)


def open_input(settings: Settings) -> Source:
    """Open the input by its footers. Raises InputError; InputIncomplete without the required marker or rows."""
    given = settings.input
    if given.complete_marker is not None:
        refuse_unmarked(given.path, given.complete_marker, given.storage_options)
    columns = given.source_column, given.target_column
    version, form = given.table_version, given.form
    try:
        source = open_source(given.path, *columns, given.storage_options, EDGE_VALUE_COLUMNS, version, form)
    except InputAbsent as error:
        if given.least_rows is None:
            raise
        raise InputIncomplete(f"{error}: run again when input.least_rows, {given.least_rows:,}, are there") from error
    refuse_few_rows(source, given.least_rows)
    return source


def refuse_few_rows(source: Source, least: int | None) -> None:
    """Raises InputIncomplete if the input has fewer rows than the settings ask for."""
    if least is None:
        return
    from ...tasks.ingest.reading import count_rows  # loads the kernels

    rows = count_rows(source)
    if rows < least:
        raise InputIncomplete(
            f"input {source.path!r} is not complete: it has {rows:,} rows, and {least:,} are asked for "
            "(input.least_rows); run again when they are there"
        )
