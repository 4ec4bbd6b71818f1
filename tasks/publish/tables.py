"""The tables of edges and vertices of one bucket: ids, and columns of values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ... import kernels
from ..ids import identity
from ..ids.id_types import from_internal
from ..ids.identity import Ids
from ..ingest.numbering import BucketEdges
from ..inputs.sources import Source
from .encoded import DeviceColumns, EncodedColumns, FileColumns, encode_columns, encode_on_device, write_joined
from .result_columns import SIDE, ResultColumn
from .writing import OutputFile, TableOptions, write_table

TEXT_PER_GROUP = 2**26
"""Bytes of string ids in a row group. A row group repeats an id as often as it occurs."""


SIDE_FIELD = pa.field(SIDE.name, pa.type_for_alias(SIDE.type))
"""The column that says to which side a vertex belongs."""


def sides_of(ids: pa.Array, source: Source) -> pa.Array:
    """The side of each id, as the name of its column in the input. `ids` are those of a graph with two sides."""
    first, second = source.source_column, source.target_column
    return pc.if_else(pc.starts_with(ids, f"{first}:"), pa.scalar(first), pa.scalar(second))


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


def value_column(
    columns: Sequence[ResultColumn], name: str, values: NDArray[Any], missing: float | None = None
) -> TableColumn:
    """A column of a table with the given values [rows]. Its type is that of the entry `name` of `columns`."""
    (own,) = (column for column in columns if column.name == name)
    return TableColumn(name, pa.type_for_alias(own.type), values, missing=missing)


@dataclass(frozen=True)
class EdgeEnds:
    """The ends of the edges of one bucket, in row order. `len()` counts edges.

    Its size is not that of its arrays: to move these out of a GPU's memory would free nothing, as the bucket has them.
    """

    low: NDArray[np.int32]
    """[edges] position of the smaller end in `ids`."""
    high: NDArray[np.int32]
    """[edges] position of the larger end in `high_names`."""
    ids: Ids
    """The ids of the bucket's vertices."""
    high_names: Ids
    """The distinct ids of larger ends."""

    def __len__(self) -> int:
        return len(self.low)


def write_edges(
    how: TableOptions,
    edges: BucketEdges,
    ids: Ids,
    high_names: Ids,
    columns: Sequence[TableColumn],
    *,
    file: int = 0,
) -> OutputFile:
    """Write edges/part-N.parquet: source, target, and the `columns` [edges].

    `ids` are those of the bucket's vertices, `high_names` those of `edges.highs`. The files of a bucket share its rows
    evenly; `file` is the number of this file among them. Rows ascend by (source, target), over all files.
    """
    ends = EdgeEnds(edges.low, edges.high, ids, high_names)
    batches = _edge_batches(how, ends, columns, file)
    name = _edge_file(how, edges.bucket, file)
    return write_table(how.folder, name, _edge_schema(how, columns), 2, batches, how.compression)


def encode_ends(how: TableOptions, ends: EdgeEnds, file: int) -> EncodedColumns:
    """The columns source and target of a file that `finish_edges` writes.

    The ids are in host memory. All kernels that write the other arrays must have finished, since the arrays are copied
    while a GPU computes.
    """
    batches = _edge_batches(how, ends, (), file, finished=True)
    return encode_columns(_edge_schema(how, ()), 2, batches, how.compression)


def encode_values(
    how: TableOptions, columns: Sequence[TableColumn], ends: Sequence[EncodedColumns]
) -> DeviceColumns | None:
    """The `columns` [edges] of a bucket, encoded by the GPU that has them; None if it does not have them all.

    `ends` [files] are the columns source and target. All kernels that write the columns have ended.
    """
    if not (columns and any(map(len, ends)) and all(map(_is_encoded_on_device, columns))):
        return None
    values = {column.name: column.values for column in columns}
    return encode_on_device(values, [own.row_groups for own in ends], how.compression)


def finish_edges(
    how: TableOptions,
    bucket: int,
    edges: int,
    ends: EncodedColumns,
    finished: Sequence[TableColumn] | FileColumns,
    added: Sequence[TableColumn],
    file: int,
) -> OutputFile:
    """Write the same table as `write_edges`: the encoded `ends`, then columns that are `finished`, and those `added`.

    `edges` is the number of edges of the bucket. The finished columns are those of the file from `encode_values`, or
    those of the bucket [edges]: all kernels that write these have ended, and they are copied while other kernels run.
    """
    first, _ = _rows_of(how, edges, file)
    groups = ends.row_groups

    def by_arrow(columns: Sequence[TableColumn], to_host: Callable[[Any], NDArray[Any]]) -> EncodedColumns:
        runs = (slice(start, stop) for start, stop in pairwise(np.cumsum([first, *groups]).tolist()))
        batches = ([_array(column, rows, to_host) for column in columns] for rows in runs)
        return encode_columns(pa.schema(_fields(columns)), 0, batches, how.compression)

    parts: list[EncodedColumns | FileColumns] = [ends]
    if isinstance(finished, FileColumns):
        parts.append(finished)
    else:
        parts.append(by_arrow(finished, kernels.finished_to_host))
    if added:
        parts.append(by_arrow(added, kernels.to_host))
    whole = pa.schema([field for part in parts for field in part.schema])
    return write_joined(how.folder, _edge_file(how, bucket, file), whole, 2, parts, how.compression)


def _is_encoded_on_device(column: TableColumn) -> bool:
    """Whether a GPU has the values of a column, and encodes them."""
    is_number = column.ids is None and column.missing is None and column.type in (pa.int32(), pa.int64())
    return is_number and not kernels.on_host(column.values) and column.values.dtype.name == str(column.type)


def _edge_file(how: TableOptions, bucket: int, file: int) -> str:
    return f"edges/part-{bucket * how.files + file:05d}.parquet"


def _edge_schema(how: TableOptions, columns: Sequence[TableColumn]) -> pa.Schema:
    source = how.source
    ends = [(source.source_column, source.id_type), (source.target_column, source.id_type)]
    return pa.schema([*ends, *_fields(columns)])


def _edge_batches(
    how: TableOptions,
    ends: EdgeEnds,
    columns: Sequence[TableColumn],
    file: int,
    finished: bool = False,
) -> Iterator[list[pa.Array]]:
    """The columns of the row groups of a file. With `finished`, all kernels that write the arrays have finished, and
    ids are in host memory.
    """
    id_type = how.source.id_type
    to_host = kernels.finished_to_host if finished else kernels.to_host
    for run in slices(how, len(ends), file):
        for rows in slices_by_text(run, (ends.ids, ends.low), (ends.high_names, ends.high), to_host=to_host):
            positions = [ends.low[rows], ends.high[rows]]
            if finished:
                positions = [to_host(own) for own in positions]
            names = zip((ends.ids, ends.high_names), positions, strict=True)
            yield [
                *(_names(ids, own, id_type) for ids, own in names),
                *(_array(column, rows, to_host) for column in columns),
            ]


def write_vertices(
    how: TableOptions, bucket: int, ids: Ids, columns: Sequence[TableColumn], *, file: int = 0
) -> OutputFile:
    """Write vertices/part-N.parquet: id, and the `columns` [vertices]. `file` as for `write_edges`."""
    id_type = how.source.id_type
    two_sided = how.source.two_sided
    schema = pa.schema([("id", id_type), *([SIDE_FIELD] if two_sided else []), *_fields(columns)])

    def batches() -> Iterator[list[pa.Array]]:
        all_vertices = np.arange(len(ids)) if isinstance(ids, pa.Array) else np.zeros(0, np.int64)
        text = [(column.ids, column.values) for column in columns if column.ids is not None]
        for run in slices(how, len(ids), file):
            for rows in slices_by_text(run, (ids, all_vertices), *text):
                own = from_internal(identity.part(ids, rows.start, rows.stop), id_type)
                side = [sides_of(own, how.source)] if two_sided else []
                yield [own, *side, *(_array(column, rows) for column in columns)]

    name = f"vertices/part-{bucket * how.files + file:05d}.parquet"
    return write_table(how.folder, name, schema, 1, batches(), how.compression)


def slices(how: TableOptions, rows: int, file: int = 0, files: int | None = None) -> Iterator[slice]:
    """The row groups of one of `files` files (`how.files` unless given), which share `rows` rows evenly."""
    start, stop = _rows_of(how, rows, file, files)
    return (slice(at, min(at + how.row_group_rows, stop)) for at in range(start, stop, how.row_group_rows))


def _rows_of(how: TableOptions, rows: int, file: int, files: int | None = None) -> tuple[int, int]:
    """The first row of a file, and the end of its rows; arguments as for `slices`."""
    files = how.files if files is None else files
    return rows * file // files, rows * (file + 1) // files


def slices_by_text(
    rows: slice, *columns: tuple[Ids, NDArray[Any]], to_host: Callable[[Any], NDArray[Any]] = kernels.to_host
) -> Iterator[slice]:
    """Parts of a run of rows. The ids of each part take about TEXT_PER_GROUP bytes at most.

    Each of the `columns` has ids and, for all rows, positions in these ids.
    """
    lengths = [(identity.lengths(ids), positions) for ids, positions in columns]
    taken = [length[to_host(positions[rows])] for length, positions in lengths if length is not None]
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


def _array(column: TableColumn, rows: slice, to_host: Callable[[Any], NDArray[Any]] = kernels.to_host) -> pa.Array:
    values = to_host(column.values[rows])
    missing = None if column.missing is None else values == column.missing
    if column.ids is None:
        return pa.array(values, column.type, mask=missing)
    if missing is None:
        return _names(column.ids, values, column.type)
    names = _names(column.ids, np.where(missing, 0, values), column.type)
    return names.take(pa.array(np.arange(len(values)), mask=missing))
