"""From tables of other libraries to two columns of ids: by Arrow's PyCapsule interface, or by what cudf has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from ...tasks.errors import InputError
from ...tasks.sources import check_columns, reason
from ...tasks.writing import VALUE_COLUMNS
from .given import Columns, Rows

__all__ = ["is_frame", "rows_of_frame"]

_ON_DEVICE = 2**20
"""Rows that are copied from a GPU at a time."""


def is_frame(given: object) -> bool:
    """Whether it is a table that `rows_of_frame` reads."""
    return _reader_for(given) is not None


def rows_of_frame(given: Any, name: str, columns: Columns) -> Rows:
    """The two columns of ids of a table; a reader of batches is read while the rows are.

    Raises InputError if they cannot be told or are no ids, or if the table does not give its rows.
    """
    read = _reader_for(given)
    assert read is not None
    try:
        return read(given, name, columns)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise _unreadable(name, error) from error


def _reader_for(given: object) -> Callable[[Any, str, Columns], Rows] | None:
    package = type(given).__module__.partition(".")[0]
    if package == "cudf" and hasattr(given, "to_arrow") and hasattr(given, "columns"):
        return _of_cudf
    if package == "pandas" and hasattr(given, "columns"):
        return _of_pandas
    if isinstance(given, ds.Dataset):
        return _of_dataset
    if package == "polars" and hasattr(given, "collect_schema") and hasattr(given, "collect"):
        return _of_lazy_polars
    if hasattr(given, "__arrow_c_stream__"):
        return _of_stream
    return _of_array if hasattr(given, "__arrow_c_array__") else None


def _of_stream(given: Any, name: str, columns: Columns) -> Rows:
    reader = pa.RecordBatchReader.from_stream(given)
    return _selected(reader.schema, reader, name, columns)


def _of_array(given: Any, name: str, columns: Columns) -> Rows:
    batch = pa.record_batch(given)
    return _selected(batch.schema, iter([batch]), name, columns)


def _of_dataset(given: ds.Dataset, name: str, columns: Columns) -> Rows:
    ends = check_columns(name, given.schema, columns.source, columns.target, VALUE_COLUMNS)
    reader = given.scanner(columns=list(ends)).to_reader()
    return Rows(reader.schema, _guarded(reader, name))


def _of_lazy_polars(given: Any, name: str, columns: Columns) -> Rows:
    """A LazyFrame, which polars computes batch by batch where it can."""
    schema = given.collect_schema().to_frame().to_arrow().schema
    ends = check_columns(name, schema, columns.source, columns.target, VALUE_COLUMNS)
    frame = given.select(list(ends))
    if not hasattr(frame, "collect_batches"):  # before polars 1.34
        return _of_stream(frame.collect(), name, columns)
    parts = (batch for part in frame.collect_batches(lazy=True) for batch in part.to_arrow().to_batches())
    return Rows(pa.schema([schema.field(end) for end in ends]), _guarded(parts, name))


def _of_pandas(given: Any, name: str, columns: Columns) -> Rows:
    """Only the two columns are converted: others may hold what Arrow has no type for."""
    names = [str(column) for column in given.columns]
    places = _places(names, name, columns)
    two = given.iloc[:, places]
    table = pa.Table.from_pandas(two.set_axis([names[place] for place in places], axis=1), preserve_index=False)
    return _selected(table.schema, iter(table.to_batches()), name, columns)


def _of_cudf(given: Any, name: str, columns: Columns) -> Rows:
    """From the memory of a GPU to the host's, some rows at a time."""
    names = [str(column) for column in given.columns]
    places = _places(names, name, columns)
    two = given.iloc[:, places]

    def parts() -> Iterator[pa.RecordBatch]:
        for start in range(0, max(len(two), 1), _ON_DEVICE):
            yield from two.iloc[start : start + _ON_DEVICE].to_arrow(preserve_index=False).to_batches()

    schema = two.iloc[:0].to_arrow(preserve_index=False).schema
    return _selected(schema, parts(), name, columns)


def _places(names: Sequence[str], name: str, columns: Columns) -> list[int]:
    """Where the two columns are, before any is converted."""
    untyped = pa.schema([(one, pa.null()) for one in names])
    return [names.index(end) for end in check_columns(name, untyped, columns.source, columns.target, VALUE_COLUMNS)]


def _selected(schema: pa.Schema, batches: Any, name: str, columns: Columns) -> Rows:
    ends = check_columns(name, schema, columns.source, columns.target, VALUE_COLUMNS)
    places = [schema.get_field_index(end) for end in ends]
    return Rows(
        pa.schema([schema.field(place) for place in places]),
        _guarded((batch.select(places) for batch in batches), name),
    )


def _guarded(batches: Any, name: str) -> Iterator[pa.RecordBatch]:
    """The batches; what goes wrong in them is the input's."""
    try:
        yield from batches
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, RuntimeError) as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: BaseException) -> InputError:
    return InputError(f"{name}: its rows cannot be read as Arrow: {reason(error)}")
