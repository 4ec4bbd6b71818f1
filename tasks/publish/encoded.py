"""Columns of a table that are encoded before its other columns are known, and files made of such columns.

Parquet stores each column of a row group on its own, so columns that are encoded apart can be joined. Arrow writes all
columns of a row group at once. A joined file has the bytes that Arrow would write for all columns together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ...kernels.runtime.sizes import SizedArrays
from ..errors import InternalError
from ..storage.checksums import HashedFile
from ..storage.folders import Folder
from ..storage.parquet_checksum import MAGIC, checksummed_writer, read_footer_bytes, write_footer
from ..storage.thrift import Struct, read_struct, struct_bytes
from .writing import OutputFile, layout, new_table

# Fields of the structs of a footer: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
_FILE_ROWS, _ROW_GROUPS = 3, 4
_COLUMNS, _BYTES, _START, _PACKED_BYTES = 1, 2, 5, 6
_METADATA = 3
_PACKED_SIZE, _DATA_PAGE, _DICTIONARY_PAGE = 7, 9, 11
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


def _footer(content: NDArray[np.uint8]) -> bytes:
    """The footer at the end of a Parquet file, without its length and the magic word."""
    end = len(content) - 4 - len(MAGIC)
    size = int.from_bytes(content[end : end + 4].tobytes(), "little")
    return content[end - size : end].tobytes()


def write_joined(
    folder: Folder | Path, name: str, schema: pa.Schema, keys: int, parts: Sequence[EncodedColumns], compression: str
) -> OutputFile:
    """Write the file `name` below `folder` with the columns of all `parts`, in the order of `schema`.

    The first part has the `keys` columns by which rows ascend. Raises InternalError if the parts do not have the same
    row groups, and what `new_table` raises.
    """
    first, *others = parts
    if any(part.row_groups != first.row_groups for part in others):
        raise InternalError(f"{name} is joined from columns with different row groups")
    footer = dict(_footer_of_no_rows(schema, keys, compression))
    with new_table(folder, name) as file:
        file.write(MAGIC)
        groups = [_write_group(file, parts, own) for own in zip(*(part.groups for part in parts), strict=True)]
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


def _write_group(file: HashedFile, parts: Sequence[EncodedColumns], groups: Sequence[Struct]) -> Struct:
    """Write one row group, of which each of `parts` has some columns. Returns its entry in the footer."""
    start, columns = file.bytes, []
    for part, group in zip(parts, groups, strict=True):
        columns += [_write_column(file, part.content, column) for column in group[_COLUMNS].value.values]
    joined = dict(groups[0])
    joined[_COLUMNS] = joined[_COLUMNS]._replace(value=joined[_COLUMNS].value._replace(values=columns))
    joined[_START] = joined[_START]._replace(value=start)
    for total in (_BYTES, _PACKED_BYTES):
        joined[total] = joined[total]._replace(value=sum(group[total].value for group in groups))
    return joined


def _write_column(file: HashedFile, content: NDArray[np.uint8], column: Struct) -> Struct:
    """Copy one column of a row group. Returns its entry in the footer, with its new position."""
    about: Struct = column[_METADATA].value
    if _OTHER_PLACES & about.keys():
        raise InternalError("Arrow wrote more than pages for a column of a table")
    places = {field: about[field].value for field in (_DICTIONARY_PAGE, _DATA_PAGE) if field in about}
    start = min(places.values())
    moved = file.bytes - start
    file.write(content[start : start + about[_PACKED_SIZE].value].data)
    there = {field: about[field]._replace(value=place + moved) for field, place in places.items()}
    return column | {_METADATA: column[_METADATA]._replace(value=about | there)}
