"""The tables of edges and vertices of one bucket: ids, and columns of values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ... import kernels
from ..ids import identity
from ..ids.id_types import from_internal
from ..ids.identity import Ids
from ..ingest.numbering import BucketEdges
from .writing import OutputFile, TableFormat, write_table

TEXT_PER_GROUP = 2**26
"""Bytes of string ids in a row group. A row group repeats an id as often as it occurs."""


@dataclass(frozen=True)
class TableColumn:
    """A column of values in the table of edges or vertices of a bucket."""

    name: str
    type: pa.DataType
    values: NDArray[Any]
    """[rows] the values, or positions in `ids`."""
    ids: Ids | None = None
    """The ids that `values` are positions in; None if the column holds no ids."""
    missing: float | None = None
    """The value that is written as null; None if no value is."""


def write_edges(
    how: TableFormat,
    edges: BucketEdges,
    ids: Ids,
    high_names: Ids,
    columns: Sequence[TableColumn],
    *,
    file: int = 0,
) -> OutputFile:
    """Write edges/part-N.parquet: source, target, and the `columns` [edges].

    `ids` are the bucket's own, `high_names` those of `edges.highs`. The rows are those of `file` among the files of the
    bucket, which have equally many. They ascend by (source, target), over all files.
    """
    source = how.source
    fields = [(source.source_column, source.id_type), (source.target_column, source.id_type)]
    schema = pa.schema([*fields, *_fields(columns)])

    def batches() -> Iterator[list[pa.Array]]:
        for run in slices(how, len(edges), file):
            for rows in slices_by_text(run, (ids, edges.low), (high_names, edges.high)):
                yield [
                    _names(ids, edges.low[rows], source.id_type),
                    _names(high_names, edges.high[rows], source.id_type),
                    *(_array(column, rows) for column in columns),
                ]

    name = f"edges/part-{edges.bucket * how.files + file:05d}.parquet"
    return write_table(how.folder, name, schema, 2, batches(), how.compression)


def write_vertices(
    how: TableFormat, bucket: int, ids: Ids, columns: Sequence[TableColumn], *, file: int = 0
) -> OutputFile:
    """Write vertices/part-N.parquet: id, and the `columns` [vertices]. `file` as for `write_edges`."""
    id_type = how.source.id_type
    schema = pa.schema([("id", id_type), *_fields(columns)])

    def batches() -> Iterator[list[pa.Array]]:
        all_vertices = np.arange(len(ids)) if isinstance(ids, pa.Array) else np.zeros(0, np.int64)
        text = [(column.ids, column.values) for column in columns if column.ids is not None]
        for run in slices(how, len(ids), file):
            for rows in slices_by_text(run, (ids, all_vertices), *text):
                own = from_internal(identity.part(ids, rows.start, rows.stop), id_type)
                yield [own, *(_array(column, rows) for column in columns)]

    name = f"vertices/part-{bucket * how.files + file:05d}.parquet"
    return write_table(how.folder, name, schema, 1, batches(), how.compression)


def slices(how: TableFormat, rows: int, file: int = 0, files: int | None = None) -> Iterator[slice]:
    """The row groups of `file` out of `files`, `how.files` unless given, which share `rows` rows evenly."""
    files = how.files if files is None else files
    start, stop = rows * file // files, rows * (file + 1) // files
    return (slice(at, min(at + how.row_group_rows, stop)) for at in range(start, stop, how.row_group_rows))


def slices_by_text(rows: slice, *columns: tuple[Ids, NDArray[Any]]) -> Iterator[slice]:
    """Parts of a run of rows. The ids of each part take about TEXT_PER_GROUP bytes at most.

    Each column gives ids and, for all rows, positions in them.
    """
    lengths = [(identity.lengths(ids), positions) for ids, positions in columns]
    taken = [length[positions[rows]] for length, positions in lengths if length is not None]
    if not taken:
        yield rows
        return
    ends, start = np.cumsum(np.sum(taken, axis=0)), 0
    while start < len(ends):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + TEXT_PER_GROUP, side="right")))
        yield slice(rows.start + start, rows.start + stop)
        start = stop


def _fields(columns: Sequence[TableColumn]) -> list[tuple[str, pa.DataType]]:
    return [(column.name, column.type) for column in columns]


def _names(ids: Ids, positions: NDArray[Any], id_type: pa.DataType) -> pa.Array:
    return from_internal(identity.take(ids, positions), id_type)


def _array(column: TableColumn, rows: slice) -> pa.Array:
    values = kernels.to_host(column.values[rows])
    missing = None if column.missing is None else values == column.missing
    if column.ids is None:
        return pa.array(values, column.type, mask=missing)
    if missing is None:
        return _names(column.ids, values, column.type)
    names = _names(column.ids, np.where(missing, 0, values), column.type)
    return names.take(pa.array(np.arange(len(values)), mask=missing))
