"""Parquet tables of a result: checksummed, hashed while they are written, and synced to disk at the end."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import NO_SPACE, OutOfRoom, UsageError
from ..inputs.sources import Source
from ..storage.checksums import HashedFile
from ..storage.folders import Folder, folder_at
from ..storage.own_files import open_own
from ..storage.parquet_checksum import checksummed_writer
from .result_columns import EDGES, names_of

ZSTD_LEVEL = 1
"""Higher levels cost far more time than the bytes they save on delta-packed numbers."""

EDGE_VALUE_COLUMNS = names_of(EDGES)
"""Value columns of the edge files. An input's id columns must not have these names."""


@dataclass(frozen=True)
class OutputFile:
    """A file of the result, as the manifest lists it."""

    name: str
    """Path below the output folder, with slashes."""
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class TableOptions:
    """How the tables of a result are written."""

    folder: Folder | Path
    source: Source
    """Gives the names and the type of the id columns."""
    converged: bool = True
    """Whether each λ is known; else the tables have intervals."""
    compression: str = "zstd"
    row_group_rows: int = 1_000_000
    files: int = 1
    """Files for the edges of each bucket, and for its vertices."""


def packed_bytes(columns: Sequence[pa.Array], compression: str) -> int:
    """Bytes of the columns, all of one length, in a table written as those of the result are."""
    schema = pa.schema([(str(number), column.type) for number, column in enumerate(columns)])
    with pa.BufferOutputStream() as file:
        with pq.ParquetWriter(file, schema, **layout(schema, 0, compression)) as writer:
            writer.write_table(pa.table(list(columns), schema=schema))
        footer = pq.read_metadata(pa.BufferReader(file.getvalue()))
    groups = map(footer.row_group, range(footer.num_row_groups))
    return sum(group.column(c).total_compressed_size for group in groups for c in range(len(columns)))


def write_table(
    folder: Folder | Path, name: str, schema: pa.Schema, keys: int, batches: Iterator[list[pa.Array]], compression: str
) -> OutputFile:
    """Write the file `name` below `folder`. Each batch of columns is one row group.

    All rows ascend by the first `keys` columns. Raises what `new_table` raises.
    """
    rows = 0
    with (
        new_table(folder, name) as file,
        checksummed_writer(file, schema, **layout(schema, keys, compression)) as writer,
    ):
        for columns in batches:
            writer.write_table(pa.table(columns, schema=schema), row_group_size=len(columns[0]))
            rows += len(columns[0])
    return OutputFile(name, rows, file.bytes, file.sha256)


@contextmanager
def new_table(folder: Folder | Path, name: str) -> Iterator[HashedFile]:
    """The new file `name` below `folder`. It is synced to the disk, or complete in the store, when the block ends.

    Raises UsageError if the file cannot be written, OutOfRoom if the disk is full.
    """
    place = folder_at(folder)
    try:
        with _create(place, name) as file:
            yield HashedFile(file)
    except OSError as error:
        if error.errno in NO_SPACE:
            raise OutOfRoom(
                f"no room left on the disk of {place}/{name}; free some, or choose another output folder"
            ) from error
        raise UsageError(f"cannot write {place}/{name}: {error.strerror or error}") from error


@contextmanager
def _create(place: Folder, name: str) -> Iterator[BinaryIO]:
    """See `new_table`."""
    if not place.is_local:
        with place.store_errors("write", name), place.files.open(place.path(name), "wb") as file:
            yield file
        return
    path, own = Path(place.url, name), 1 + len(Path(name).parts)
    with suppress(FileExistsError):
        path.parent.mkdir(0o700)  # not its parents: a task that outlives its run must not recreate the output folder
    with open(open_own(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, own), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def layout(schema: pa.Schema, keys: int, compression: str) -> dict[str, Any]:
    """Options of a ParquetWriter for rows that ascend by the first `keys` columns.

    Integers are delta-packed: this is smaller and faster to write than dictionaries, and all readers know it.
    """
    numbers = [field.name for field in schema if pa.types.is_integer(field.type)]
    return {
        "compression": compression,
        "compression_level": ZSTD_LEVEL if compression == "zstd" else None,
        "use_dictionary": [field.name for field in schema if field.name not in numbers],
        "column_encoding": dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        "store_schema": not any(isinstance(field.type, pa.BaseExtensionType) for field in schema),
        "sorting_columns": [pq.SortingColumn(key) for key in range(keys)],
    }
