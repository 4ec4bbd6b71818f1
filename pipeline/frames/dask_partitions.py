"""Dask DataFrames as input: a task writes each partition on the cluster that holds it. Nothing is gathered."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ...tasks.errors import EdgemillError, InputError, UsageError
from ...tasks.publish.writing import VALUE_COLUMNS, OutputFile
from ...tasks.storage.folders import Folder
from .frame_rows import rows_of_frame
from .input_object import ColumnNames
from .row_groups import FOLDER, write_rows

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
    ends = columns.find(name, untyped, VALUE_COLUMNS)
    two = frame[[frame.columns[names.index(end)] for end in ends]]
    mark = secrets.token_hex(16)
    folder.subfolder(FOLDER).write(_MARK, mark.encode())
    write = delayed_task(_write)
    found = ColumnNames(ends[0], ends[1], columns.weight)
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
