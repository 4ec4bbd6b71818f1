"""Dask DataFrames: each partition is written by a task, on the cluster that it lives on, and nothing is gathered."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ...tasks.errors import EdgemillError, InputError, UsageError
from ...tasks.places import Place
from ...tasks.sources import check_columns
from ...tasks.writing import VALUE_COLUMNS, OutputFile
from .frame_rows import rows_of_frame
from .given import Columns
from .row_groups import FOLDER, write_rows

__all__ = ["is_dask_frame", "write_partitions"]

_MARK = "mark"


def is_dask_frame(given: object) -> bool:
    """Whether it is a Dask DataFrame, of pandas or of cudf."""
    return type(given).__module__.partition(".")[0] in ("dask", "dask_cudf", "dask_expr") and all(
        hasattr(given, name) for name in ("to_delayed", "npartitions", "columns")
    )


def write_partitions(
    given: Any, name: str, columns: Columns, place: Place, compute: Callable[..., Any]
) -> list[OutputFile]:
    """Write each partition below `place`, by a task of its own where `compute` computes tasks.

    Raises InputError for columns that are no ids, and for a partition that cannot be computed; UsageError where workers
    do not see `place`, or it cannot be written; OutOfRoom for a full disk.
    """
    from dask.delayed import delayed

    names = [str(column) for column in given.columns]
    untyped = pa.schema([(one, pa.null()) for one in names])
    ends = check_columns(name, untyped, columns.source, columns.target, VALUE_COLUMNS)
    two = given[[given.columns[names.index(end)] for end in ends]]
    mark = secrets.token_hex(16)
    place.within(FOLDER).write(_MARK, mark.encode())
    write = delayed(_write, pure=False)
    tasks = [write(place, number, part, name, Columns(*ends), mark) for number, part in enumerate(two.to_delayed())]
    try:
        written = list(compute(*tasks))
    except (EdgemillError, MemoryError):
        raise
    except Exception as error:
        raise InputError(f"{name}: a partition cannot be computed: {type(error).__name__}: {error}") from error
    finally:
        place.within(FOLDER).remove(_MARK)
    sizes = place.sizes([file.name for file in written])
    for file, size in zip(written, sizes, strict=True):
        if size != file.bytes:
            raise UsageError(f"{name}: {place} of a worker is not that of this process: {_ADVICE}")
    return written


_ADVICE = "name an output in a folder that this process and all workers see, or write the frame with to_parquet first"


def _write(place: Place, number: int, part: Any, name: str, columns: Columns, mark: str) -> OutputFile:
    """Task: write one partition."""
    if place.within(FOLDER).read(_MARK) != mark.encode():
        raise UsageError(f"{name}: a worker on {socket.gethostname()} does not see {place}: {_ADVICE}")
    return write_rows(place, number, rows_of_frame(part, f"{name}, partition {number}", columns))
