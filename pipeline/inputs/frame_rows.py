"""Read the columns of edges from tables of other libraries, by Arrow's PyCapsule interface or their own methods.

The rows are written to Parquet files that a run reads, in row groups of bounded size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ...tasks.errors import NO_SPACE, InputError, OutOfRoom
from ...tasks.inputs.columns import plain_values, value_type
from ...tasks.inputs.opening import error_reason
from ...tasks.publish.writing import EDGE_VALUE_COLUMNS, OutputFile, write_table
from ...tasks.storage.folders import Folder
from .input_object import ColumnNames, EdgeBatches

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


_ON_DEVICE = 2**20
"""Rows that are copied from a GPU at a time."""


def is_frame(obj: object) -> bool:
    """Whether `obj` is a table that `rows_of_frame` reads."""
    return _reader_for(obj) is not None


def rows_of_frame(frame: Any, name: str, columns: ColumnNames) -> EdgeBatches:
    """The columns of ids of a table, and that of weights, if any. A reader of batches is read while the caller reads
    the answer.

    `name` is the table's name in messages. Raises InputError if the columns are ambiguous, missing or not ids, or if
    the rows cannot be read.
    """
    read = _reader_for(frame)
    assert read is not None
    try:
        return read(frame, name, columns)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise _unreadable(name, error) from error


def _reader_for(frame: object) -> Callable[[Any, str, ColumnNames], EdgeBatches] | None:
    package = type(frame).__module__.partition(".")[0]
    if package == "cudf" and hasattr(frame, "to_arrow") and hasattr(frame, "columns"):
        return _of_cudf
    if package == "pandas" and hasattr(frame, "columns"):
        return _of_pandas
    if isinstance(frame, ds.Dataset):
        return _of_dataset
    if package == "polars" and hasattr(frame, "collect_schema") and hasattr(frame, "collect"):
        return _of_lazy_polars
    if hasattr(frame, "__arrow_c_stream__"):
        return _of_stream
    return _of_array if hasattr(frame, "__arrow_c_array__") else None


def _of_stream(frame: Any, name: str, columns: ColumnNames) -> EdgeBatches:
    reader = pa.RecordBatchReader.from_stream(frame)
    return _selected(reader.schema, reader, name, columns)


def _of_array(frame: Any, name: str, columns: ColumnNames) -> EdgeBatches:
    batch = pa.record_batch(frame)
    return _selected(batch.schema, iter([batch]), name, columns)


def _of_dataset(frame: ds.Dataset, name: str, columns: ColumnNames) -> EdgeBatches:
    ends = columns.find(name, frame.schema, EDGE_VALUE_COLUMNS)
    reader = frame.scanner(columns=list(ends)).to_reader()
    return EdgeBatches(reader.schema, _guarded(reader, name))


def _of_lazy_polars(frame: Any, name: str, columns: ColumnNames) -> EdgeBatches:
    """The rows of a LazyFrame. polars computes them batch by batch where possible."""
    schema = frame.collect_schema().to_frame().to_arrow().schema
    ends = columns.find(name, schema, EDGE_VALUE_COLUMNS)
    frame = frame.select(list(ends))
    if not hasattr(frame, "collect_batches"):  # before polars 1.34
        return _of_stream(frame.collect(), name, columns)
    parts = (batch for part in frame.collect_batches(lazy=True) for batch in part.to_arrow().to_batches())
    return EdgeBatches(pa.schema([schema.field(end) for end in ends]), _guarded(parts, name))


def _of_pandas(frame: Any, name: str, columns: ColumnNames) -> EdgeBatches:
    """Only these columns are converted: Arrow may have no type for others."""
    names = [str(column) for column in frame.columns]
    indices = _indices(names, name, columns)
    two = frame.iloc[:, indices]
    table = pa.Table.from_pandas(two.set_axis([names[index] for index in indices], axis=1), preserve_index=False)
    if not len(table):  # pandas chooses a type without values, and other ones in each release
        return _selected(pa.schema([(one, pa.null()) for one in table.column_names]), iter([]), name, columns)
    return _selected(table.schema, iter(table.to_batches()), name, columns)


def _of_cudf(frame: Any, name: str, columns: ColumnNames) -> EdgeBatches:
    """The rows are copied from the GPU in parts."""
    names = [str(column) for column in frame.columns]
    indices = _indices(names, name, columns)
    two = frame.iloc[:, indices]

    def parts() -> Iterator[pa.RecordBatch]:
        for start in range(0, max(len(two), 1), _ON_DEVICE):
            yield from two.iloc[start : start + _ON_DEVICE].to_arrow(preserve_index=False).to_batches()

    schema = two.iloc[:0].to_arrow(preserve_index=False).schema
    return _selected(schema, parts(), name, columns)


def _indices(names: Sequence[str], name: str, columns: ColumnNames) -> list[int]:
    """The indices of the columns among `names`."""
    untyped = pa.schema([(one, pa.null()) for one in names])
    return [names.index(end) for end in columns.find(name, untyped, EDGE_VALUE_COLUMNS)]


def _selected(schema: pa.Schema, batches: Any, name: str, columns: ColumnNames) -> EdgeBatches:
    ends = columns.find(name, schema, EDGE_VALUE_COLUMNS)
    indices = [schema.get_field_index(end) for end in ends]
    return EdgeBatches(
        pa.schema([schema.field(index) for index in indices]),
        _guarded((batch.select(indices) for batch in batches), name),
    )


def _guarded(batches: Any, name: str) -> Iterator[pa.RecordBatch]:
    """The batches. Errors of reading them become InputError."""
    try:
        yield from batches
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, RuntimeError) as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: BaseException) -> InputError:
    return InputError(f"{name}: its rows cannot be read as Arrow: {error_reason(error)}")


def write_frame(frame: Any, name: str, file: Path) -> None:
    """Write all columns of a table to a Parquet file, a batch at a time where the table comes in batches.

    Dictionaries are written as their values. Raises InputError if the rows cannot be read, OutOfRoom for a full disk.
    """
    try:
        reader = _whole(frame)
        schema = pa.schema([pa.field(str(one.name), plain_type(one.type)) for one in reader.schema])
        with pq.ParquetWriter(file, schema) as writer:
            for batch in _guarded(reader, name):
                columns = [
                    _values(column).cast(field.type) for column, field in zip(batch.columns, schema, strict=True)
                ]
                writer.write_batch(pa.record_batch(columns, schema))
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise _unreadable(name, error) from error
    except OSError as error:
        if error.errno in NO_SPACE:
            raise OutOfRoom(f"no space left for the {name} in {file.parent}") from error
        raise


def _values(column: pa.Array) -> pa.Array:
    """The values of a column of a dictionary, also of the types for which Arrow's cast has no kernel."""
    if not pa.types.is_dictionary(column.type):
        return column
    return column.dictionary.cast(plain_type(column.type)).take(column.indices)


def _whole(frame: Any) -> pa.RecordBatchReader:
    read = _reader_for(frame)
    if read is _of_cudf:
        return frame.to_arrow(preserve_index=False).to_reader()
    if read is _of_pandas:
        return pa.Table.from_pandas(frame, preserve_index=False).to_reader()
    if read is _of_dataset:
        return frame.scanner().to_reader()
    if read is _of_lazy_polars:
        frame = frame.collect()
    if read is _of_array:
        return pa.Table.from_batches([pa.record_batch(frame)]).to_reader()
    return pa.RecordBatchReader.from_stream(frame)
