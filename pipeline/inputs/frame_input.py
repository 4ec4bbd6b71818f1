"""A frame or a graph as the input of a run. Its edges are written to files for the time of the run.

For a Dask DataFrame, a task writes each partition on the cluster that holds it. Nothing is gathered.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...tasks.errors import EdgemillError, InputError, UsageError
from ...tasks.inputs.formats.form import Form
from ...tasks.inputs.open_source import open_source
from ...tasks.inputs.sources import Frame, Source
from ...tasks.publish.writing import EDGE_VALUE_COLUMNS, OutputFile
from ...tasks.storage.folders import Folder
from ..settings.models import InputSettings
from .frame_rows import FOLDER, is_frame, rows_of_frame, write_frame, write_rows
from .graph_rows import is_graph, rows_of_graph
from .input_object import ColumnNames

_MARK = "mark"


def is_dask_frame(obj: object) -> bool:
    """Whether `obj` is a Dask DataFrame of pandas or cudf frames."""
    return type(obj).__module__.partition(".")[0] in ("dask", "dask_cudf", "dask_expr") and all(
        hasattr(obj, name) for name in ("to_delayed", "npartitions", "columns")
    )


def write_partitions(
    frame: Any, name: str, columns: ColumnNames, folder: Folder, compute: Callable[..., Any]
) -> list[OutputFile]:
    """Write each partition below `folder`, by a task for each, which `compute` runs.

    `name` is the frame's name in messages. Raises InputError for columns that are not ids, and for a partition that
    cannot be computed; UsageError if workers have no access to `folder` or it cannot be written; OutOfRoom for a full
    disk.
    """
    from ..cluster.client import delayed_task  # a run without such a frame may need no Dask

    names = [str(column) for column in frame.columns]
    untyped = pa.schema([(one, pa.null()) for one in names])
    ends = columns.find(name, untyped, EDGE_VALUE_COLUMNS)
    two = frame[[frame.columns[names.index(end)] for end in ends]]
    mark = secrets.token_hex(16)
    folder.subfolder(FOLDER).write(_MARK, mark.encode())
    write = delayed_task(_write)
    found = ColumnNames(ends[0], ends[1], columns.weight, columns.two_sets)
    tasks = [write(folder, number, part, name, found, mark) for number, part in enumerate(two.to_delayed())]
    try:
        written = list(compute(*tasks))
    except (EdgemillError, MemoryError):
        raise
    except Exception as error:
        raise InputError(f"{name}: a partition cannot be computed: {type(error).__name__}: {error}") from error
    finally:
        folder.subfolder(FOLDER).remove(_MARK)
    sizes = folder.sizes([file.name for file in written])
    for file, size in zip(written, sizes, strict=True):
        if size != file.bytes:
            raise UsageError(f"{name}: {folder} of a worker is not that of this process: {_ADVICE}")
    return written


_ADVICE = "name an output in a folder that this process and all workers share, or write the frame with to_parquet first"


def _write(folder: Folder, number: int, part: Any, name: str, columns: ColumnNames, mark: str) -> OutputFile:
    """Task: write one partition."""
    if folder.subfolder(FOLDER).read(_MARK) != mark.encode():
        raise UsageError(f"{name}: a worker on {socket.gethostname()} does not see {folder}: {_ADVICE}")
    return write_rows(folder, number, rows_of_frame(part, f"{name}, partition {number}", columns))


_PUBLIC_NAMES = {"_duckdb": "duckdb"}
"""Package → the name by which users import it."""


def is_frame_input(obj: object) -> bool:
    """Whether `obj` is a frame or graph that `FrameInput` supports."""
    return is_graph(obj) or is_dask_frame(obj) or is_frame(obj)


@dataclass(frozen=True)
class FrameInput:
    """A frame or graph as input. `open` consumes an object that can be read only once, such as a reader of batches."""

    frame: Any = field(repr=False)
    paths: Sequence[str] = ()

    @property
    def name(self) -> str:
        """Package and class, such as `pandas.DataFrame`."""
        kind = type(self.frame)
        package = kind.__module__.partition(".")[0]
        return f"{_PUBLIC_NAMES.get(package, package)}.{kind.__qualname__}"

    def open(self, settings: InputSettings, folder: Folder, compute: Callable[..., Any]) -> Source:
        """Write the edges to files below `folder`, and open these."""
        for option in ("complete_marker", "table_version", "where", "header", "delimiter", "comment"):
            if getattr(settings, option) is not None:
                raise UsageError(f"input.{option} is for files, and the input is a {self.name}: leave it out")
        if folder.is_local:
            Path(folder.url, FOLDER).mkdir(0o700)
        columns = ColumnNames(
            settings.source_column, settings.target_column, settings.weight_column, settings.sides_apart == "prefix"
        )
        checksums = self._write(columns, folder, compute)
        files = folder.subfolder(FOLDER)
        form = Form(
            bipartite=settings.sides_apart,
            two_sided=settings.two_sided,
            directed=settings.directed,
            weights=settings.weights,
        )
        source = open_source(files.url, columns.source, columns.target, files.options, EDGE_VALUE_COLUMNS, form=form)
        return replace(source, path=self.name, frame=Frame(self.name, tuple(checksums)), notes=columns.notes)

    def _write(self, columns: ColumnNames, folder: Folder, compute: Callable[..., Any]) -> list[str]:
        """Write the edges below `folder`. Returns the SHA-256 of each file."""
        if is_dask_frame(self.frame):
            return [file.sha256 for file in write_partitions(self.frame, self.name, columns, folder, compute)]
        read = rows_of_graph if is_graph(self.frame) else rows_of_frame
        return [write_rows(folder, 0, read(self.frame, self.name, columns)).sha256]


VERTICES = "frame-of-vertices.parquet"
"""Name of the file that a frame of attributes of vertices is written to."""


@contextmanager
def vertices_as_file(given: dict[str, object], place: Callable[[], Path]) -> Iterator[None]:
    """Within the block, `input.vertices` in the settings `given` is a path, also if it is a frame. All its columns are
    written to a file in the folder that `place` makes, which goes with the block.

    Raises UsageError for another kind of object, InputError for a frame that cannot be read.
    """
    frame: Any = given.get("input.vertices")
    if frame is None or isinstance(frame, str | os.PathLike):
        yield
        return
    own = FrameInput(frame)
    if is_graph(frame) or not is_frame_input(frame):
        raise UsageError(
            f"input.vertices cannot be a {own.name}: give a path, or a table with a row for each vertex (pandas, "
            "polars, Arrow, DuckDB, Dask, cudf)"
        )
    folder = place()
    try:
        file = folder / VERTICES
        write_frame(frame.compute() if is_dask_frame(frame) else frame, f"{own.name} of input.vertices", file)
        given["input.vertices"] = str(file)
        try:
            yield
        except EdgemillError as error:
            told = f"the {own.name} of input.vertices"
            error.args = tuple(part.replace(str(file), told) if isinstance(part, str) else part for part in error.args)
            raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
