"""Rows of a frame as Parquet files that a run reads, in row groups of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from ...tasks.inputs.columns import plain_values, value_type
from ...tasks.publish.writing import OutputFile, write_table
from ...tasks.storage.folders import Folder
from .input_object import EdgeBatches

FOLDER = "input"
"""Name of the folder that holds the files."""
ROWS = 2**18
"""Rows of a row group, at most."""
BYTES = 2**26
"""Approximate limit of a row group in memory; only text reaches it."""
_STEP = 2**14
"""Rows that are added to a row group at once."""


def file_name(number: int) -> str:
    """The path of the file of one partition, relative to the location of the folder."""
    return f"{FOLDER}/part-{number:05d}.parquet"


def write_rows(folder: Folder, number: int, rows: EdgeBatches) -> OutputFile:
    """Write the rows to `file_name(number)` below `folder`. One row group and one batch are in memory at a time.

    Raises UsageError if the file cannot be written, OutOfRoom for a full disk.
    """
    schema = pa.schema([pa.field(field.name, plain_type(field.type)) for field in rows.schema])
    return write_table(folder, file_name(number), schema, 0, _row_groups(rows.batches, schema), "snappy")


def _row_groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[list[pa.Array]]:
    """Row groups of ROWS rows, or of fewer if their text reaches BYTES. They do not depend on how the batches are cut,
    so the same rows give the same files.
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
    for column, field in enumerate(schema):
        parts = [plain_values(pa.chunked_array([batch.column(column)])) for batch in batches]
        whole = pa.chunked_array([chunk for part in parts for chunk in part.cast(field.type).chunks], field.type)
        columns.append(pa.concat_arrays(whole.chunks))
    return columns


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of plain values. Arrow's types of text become one, so that equal rows give equal files."""
    kind = value_type(kind)
    return pa.string() if pa.types.is_large_string(kind) else kind
