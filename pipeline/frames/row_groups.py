"""Rows of a frame as Parquet files that a run reads, in row groups of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from ...tasks.places import Place
from ...tasks.writing import OutputFile, write_table
from .given import Rows

__all__ = ["FOLDER", "file_name", "write_rows"]

FOLDER = "input"
"""Name of the folder that holds the files."""
ROWS = 2**18
"""Of a row group, at most."""
BYTES = 2**26
"""Of a row group in memory, about; only text comes to so much."""
_STEP = 2**14
"""Rows that are looked at together for the bytes that they take."""


def file_name(number: int) -> str:
    """The file of one partition, below the place where the folder is."""
    return f"{FOLDER}/part-{number:05d}.parquet"


def write_rows(place: Place, number: int, rows: Rows) -> OutputFile:
    """Write the rows to `file_name(number)` below `place`; a row group is in memory at a time, beside the batch that it
    comes from. Raises UsageError if it cannot be written, OutOfRoom for a full disk.
    """
    schema = pa.schema([pa.field(field.name, _plain(field.type)) for field in rows.schema])
    return write_table(place, file_name(number), schema, 0, _row_groups(rows.batches, schema), "snappy")


def _row_groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[list[pa.Array]]:
    """Row groups of exactly ROWS rows while text is not long, whatever the batches: so the same rows give the same
    files.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        at = 0
        while at < batch.num_rows:
            step = batch.slice(at, min(_STEP, ROWS - rows))
            at += step.num_rows
            waiting.append(step)
            rows += step.num_rows
            size += step.nbytes
            if rows == ROWS or size >= BYTES:
                yield _joined(waiting, schema)
                waiting, rows, size = [], 0, 0
    if waiting:
        yield _joined(waiting, schema)


def _joined(batches: list[pa.RecordBatch], schema: pa.Schema) -> list[pa.Array]:
    columns = []
    for place, field in enumerate(schema):
        parts = [batch.column(place) for batch in batches]
        columns.append(pa.concat_arrays([part if part.type == field.type else part.cast(field.type) for part in parts]))
    return columns


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without a dictionary; one type for text, of which Arrow has three, so that its files are the same."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.string() if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) else kind
