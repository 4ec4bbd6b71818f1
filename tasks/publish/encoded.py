"""Columns of a table that are encoded before its other columns are known, and files made of such columns.

Parquet stores each column of a row group on its own, so columns that are encoded apart can be joined. Arrow writes all
columns of a row group at once. A file joined of columns that Arrow has encoded has the bytes that Arrow would write for
all columns together. A GPU encodes numbers that it has as Arrow does, in larger pages, which stay in its memory until
their file is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ... import kernels
from ...kernels.runtime.sizes import SizedArrays
from ..errors import InternalError
from ..storage.checksums import HashedFile
from ..storage.folders import Folder
from ..storage.parquet_checksum import MAGIC, checksummed_writer, read_footer_bytes, write_footer
from ..storage.thrift import I32, STRUCT, Struct, Value, read_struct, struct_bytes
from .writing import ZSTD_LEVEL, OutputFile, layout, new_table

if TYPE_CHECKING:
    from ...kernels.gpu.delta import Pages

# Fields of the structs of a footer: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
_FILE_ROWS, _ROW_GROUPS = 3, 4
_COLUMNS, _BYTES, _START, _PACKED_BYTES = 1, 2, 5, 6
_METADATA = 3
_VALUES, _UNPACKED_SIZE, _PACKED_SIZE, _DATA_PAGE, _DICTIONARY_PAGE, _STATISTICS = 5, 6, 7, 9, 11, 12
_KEPT = {1, 2, 3, 4, _VALUES, _UNPACKED_SIZE, _PACKED_SIZE, _DATA_PAGE, _STATISTICS}
"""Fields of a column that a GPU has encoded. Arrow's column of one row has others, which readers can do without."""
_OLD_MAX, _OLD_MIN, _NULLS, _MAX, _MIN = 1, 2, 3, 5, 6
_RLE, _DELTA = 3, 5
"""Encodings."""
_OTHER_PLACES = {10, 14}
"""Fields of a column that locate an index page and a Bloom filter. `write_joined` copies neither."""


@dataclass(frozen=True)
class EncodedColumns(SizedArrays):
    """Columns of a table as a Parquet file of their own, in memory. `len()` counts rows."""

    content: NDArray[np.uint8]
    """The bytes of the file."""
    schema: pa.Schema
    row_groups: tuple[int, ...]
    """Rows of each row group."""

    groups: list[Struct]
    """The entry of each row group in the footer."""

    def __len__(self) -> int:
        return sum(self.row_groups)

    def chunk(self, group: int, at: int) -> tuple[memoryview, list[Struct]]:
        """The bytes of the columns of a row group, and their entries in a footer if the bytes are `at` of the file."""
        columns = self.groups[group][_COLUMNS].value.values
        start = min(_span(column)[0] for column in columns)
        end = max(_span(column)[1] for column in columns)
        return self.content[start:end].data, [_moved(column, at - start) for column in columns]


def encode_columns(schema: pa.Schema, keys: int, batches: Iterator[list[pa.Array]], compression: str) -> EncodedColumns:
    """Encode columns of a table. Each batch is one row group. All rows ascend by the first `keys` columns."""
    rows = []
    file = pa.BufferOutputStream()
    with pq.ParquetWriter(file, schema, write_page_checksum=True, **layout(schema, keys, compression)) as writer:
        for columns in batches:
            writer.write_table(pa.table(columns, schema=schema), row_group_size=len(columns[0]))
            rows.append(len(columns[0]))
    content = np.frombuffer(file.getvalue(), np.uint8)
    return EncodedColumns(content, schema, tuple(rows), read_struct(_footer(content))[_ROW_GROUPS].value.values)


PAGE_ROWS = 2**20
"""The most rows of a page that a GPU encodes. Each page takes Python some time."""
_SMALLER = 0.8
"""Pages that a GPU has encoded are compressed if that makes the first one smaller than this share."""


@dataclass(frozen=True)
class DeviceColumns(SizedArrays):
    """Columns of the files of a table as pages that a GPU has encoded, in its memory."""

    schema: pa.Schema
    row_groups: tuple[tuple[int, ...], ...]
    """[files] rows of each row group."""
    pages: Mapping[str, Pages]
    """The pages of all row groups, by column."""
    compression: Mapping[str, str]
    """How the pages of each column are compressed in a file."""

    def of_file(self, file: int) -> FileColumns:
        """The columns of a file."""
        before = (rows for groups in self.row_groups[:file] for rows in groups)
        return FileColumns(self, self.row_groups[file], sum(map(_pages_of, before)))


@dataclass(frozen=True)
class FileColumns:
    """The columns of one file among DeviceColumns."""

    whole: DeviceColumns
    row_groups: tuple[int, ...]
    """Rows of each row group."""
    first: int
    """The first page of the file."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self.whole.schema

    def chunk(self, group: int, at: int) -> tuple[memoryview, list[Struct]]:
        """See `EncodedColumns.chunk`. The bytes are valid until this thread makes the next copy from a GPU."""
        rows = self.row_groups[group]
        first = self.first + sum(map(_pages_of, self.row_groups[:group]))
        own = range(first, first + _pages_of(rows))
        pieces: list[Any] = []
        entries = []
        for name, pages in self.whole.pages.items():
            field, compression = self.schema.field(name), self.whole.compression[name]
            added, unpacked = _pieces(pages, own, rows, compression)
            packed = sum(map(len, added))
            ends = int(pages.smallest[own.start : own.stop].min()), int(pages.largest[own.start : own.stop].max())
            sizes = {_VALUES: rows, _UNPACKED_SIZE: unpacked, _PACKED_SIZE: packed, _DATA_PAGE: at}
            entries.append(_entry(field, compression, sizes, ends))
            pieces += added
            at += packed
        # In one piece: after each call that lets other threads run, a thread waits for Python's lock.
        return kernels.finished_joined(pieces).data, entries


def encode_on_device(
    columns: Mapping[str, Any], row_groups: Sequence[Sequence[int]], compression: str
) -> DeviceColumns:
    """Encode columns of integers, int32 or int64, on the GPU that holds them. None is missing.

    `row_groups` [files] are the rows of each row group. The kernels that write the columns have ended.
    """
    schema = pa.schema([(name, pa.from_numpy_dtype(values.dtype)) for name, values in columns.items()])
    groups = tuple(map(tuple, row_groups))
    pages = {name: _pages(values, [rows for own in groups for rows in own]) for name, values in columns.items()}
    packs = {name: compression != "none" and _gets_smaller(own, compression) for name, own in pages.items()}
    return DeviceColumns(schema, groups, pages, {name: compression if own else "none" for name, own in packs.items()})


def _pages_of(rows: int) -> int:
    """Pages of a row group."""
    return -(-rows // PAGE_ROWS)


def _pages(values: Any, row_groups: Sequence[int]) -> Pages:
    """The pages of all row groups of a column."""
    from ...kernels.gpu.delta import encode  # imports CuPy

    ends = np.cumsum([0, *row_groups])
    starts = [np.arange(begin, end, PAGE_ROWS) for begin, end in pairwise(ends.tolist())]
    return encode(values, np.concatenate([*starts, ends[-1:]]).astype(np.int64))


def _pieces(pages: Pages, own: range, rows: int, compression: str) -> tuple[list[Any], int]:
    """The bytes of some pages, each after its header, and how many they are without compression."""
    pieces, unpacked = [], 0
    for page in own:
        body = packed = pages.content[pages.offsets[page] : pages.offsets[page + 1]]
        checksum = int(pages.checksum[page])
        if compression != "none":
            packed = _compressed(kernels.finished_joined([body]), compression)
            checksum = crc32(packed)
        count = min(PAGE_ROWS, rows - (page - own.start) * PAGE_ROWS)
        header = struct_bytes(_page_header(count, len(body), len(packed), checksum))
        pieces += [header, packed]
        unpacked += len(header) + len(body)
    return pieces, unpacked


def _entry(field: pa.Field, compression: str, sizes: Mapping[int, int], ends: tuple[int, int]) -> Struct:
    """The entry of a column of one row group in the footer: with these `sizes`, the smallest and the largest value."""
    entry = _entry_of_one_row(field, compression)
    about: Struct = entry[_METADATA].value
    width = field.type.bit_width // 8
    low, high = (value.to_bytes(width, "little", signed=True) for value in ends)
    bounds = {_OLD_MAX: high, _OLD_MIN: low, _NULLS: 0, _MAX: high, _MIN: low}
    statistics: Struct = about[_STATISTICS].value
    found = {key: own._replace(value=bounds.get(key, own.value)) for key, own in statistics.items()}
    facts = {**sizes, _STATISTICS: found}
    kept = {key: own._replace(value=facts.get(key, own.value)) for key, own in about.items() if key in _KEPT}
    return entry | {_METADATA: entry[_METADATA]._replace(value=kept)}


@cache
def _entry_of_one_row(field: pa.Field, compression: str) -> Struct:
    """The entry of a column in the footer of a table that Arrow writes, which has one row."""
    schema = pa.schema([field])
    one = encode_columns(schema, 0, iter([[pa.array([1], field.type)]]), compression)
    entry: Struct = one.groups[0][_COLUMNS].value.values[0]
    return entry


def _page_header(rows: int, unpacked: int, packed: int, checksum: int) -> Struct:
    """The header of a page of integers that are all there."""
    signed = checksum - 2**32 if checksum >= 2**31 else checksum
    values = {1: Value(I32, rows), 2: Value(I32, _DELTA), 3: Value(I32, _RLE), 4: Value(I32, _RLE)}
    numbers = {1: 0, 2: unpacked, 3: packed, 4: signed}
    return {**{key: Value(I32, number) for key, number in numbers.items()}, 5: Value(STRUCT, values)}


def _gets_smaller(pages: Pages, compression: str) -> bool:
    """Whether the first page gets so much smaller that all pages of the column are compressed."""
    first = kernels.finished_joined([pages.content[: pages.offsets[1]]])
    return len(_compressed(first, compression)) < _SMALLER * len(first)


def _compressed(body: NDArray[np.uint8], compression: str) -> bytes:
    name = "lz4_raw" if compression == "lz4" else compression  # what Parquet's writer of Arrow means by lz4
    codec = pa.Codec(name, ZSTD_LEVEL) if name == "zstd" else pa.Codec(name)
    found: bytes = codec.compress(pa.py_buffer(body), asbytes=True)
    return found


def _footer(content: NDArray[np.uint8]) -> bytes:
    """The footer at the end of a Parquet file, without its length and the magic word."""
    end = len(content) - 4 - len(MAGIC)
    size = int.from_bytes(content[end : end + 4].tobytes(), "little")
    return content[end - size : end].tobytes()


def write_joined(
    folder: Folder | Path,
    name: str,
    schema: pa.Schema,
    keys: int,
    parts: Sequence[EncodedColumns | FileColumns],
    compression: str,
) -> OutputFile:
    """Write the file `name` below `folder` with the columns of all `parts`, in the order of `schema`.

    The first part has the `keys` columns by which rows ascend, encoded by Arrow. Raises InternalError if the parts do
    not have the same row groups, and what `new_table` raises.
    """
    first, *others = parts
    assert isinstance(first, EncodedColumns)
    if any(part.row_groups != first.row_groups for part in others):
        raise InternalError(f"{name} is joined from columns with different row groups")
    footer = dict(_footer_of_no_rows(schema, keys, compression))
    with new_table(folder, name) as file:
        file.write(MAGIC)
        groups = [_write_group(file, parts, own, number) for number, own in enumerate(first.groups)]
        footer[_FILE_ROWS] = footer[_FILE_ROWS]._replace(value=len(first))
        footer[_ROW_GROUPS] = footer[_ROW_GROUPS]._replace(value=footer[_ROW_GROUPS].value._replace(values=groups))
        write_footer(file, struct_bytes(footer))
    return OutputFile(name, len(first), file.bytes, file.sha256)


@cache
def _footer_of_no_rows(schema: pa.Schema, keys: int, compression: str) -> Struct:
    """The footer that Arrow writes for a table without rows."""
    file = BytesIO()
    with checksummed_writer(file, schema, **layout(schema, keys, compression)):
        pass
    return read_struct(read_footer_bytes(file)[0])


def _write_group(file: HashedFile, parts: Sequence[EncodedColumns | FileColumns], first: Struct, number: int) -> Struct:
    """Write a row group, of which each of `parts` has some columns. Returns its entry in the footer, which is made from
    that of the `first` part.
    """
    start, columns = file.bytes, []
    for part in parts:
        content, entries = part.chunk(number, file.bytes)
        file.write(content)
        columns += entries
    joined = dict(first)
    joined[_COLUMNS] = joined[_COLUMNS]._replace(value=joined[_COLUMNS].value._replace(values=columns))
    joined[_START] = joined[_START]._replace(value=start)
    for total, size in ((_BYTES, _UNPACKED_SIZE), (_PACKED_BYTES, _PACKED_SIZE)):
        joined[total] = joined[total]._replace(value=sum(own[_METADATA].value[size].value for own in columns))
    return joined


def _span(column: Struct) -> tuple[int, int]:
    """Where the pages of a column of one row group begin and end, from its entry in the footer."""
    about: Struct = column[_METADATA].value
    if _OTHER_PLACES & about.keys():
        raise InternalError("Arrow wrote more than pages for a column of a table")
    start: int = min(about[field].value for field in (_DICTIONARY_PAGE, _DATA_PAGE) if field in about)
    return start, start + about[_PACKED_SIZE].value


def _moved(column: Struct, by: int) -> Struct:
    """The entry of a column whose pages are `by` bytes further on."""
    about: Struct = column[_METADATA].value
    places = {field: about[field] for field in (_DICTIONARY_PAGE, _DATA_PAGE) if field in about}
    moved = {field: place._replace(value=place.value + by) for field, place in places.items()}
    return column | {_METADATA: column[_METADATA]._replace(value=about | moved)}
