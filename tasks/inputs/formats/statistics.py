"""Statistics of columns in the footer of a Parquet file: ranges, sizes, and row groups that a condition rules out.

pyarrow aborts the process on metadata of a column chunk that contradict the schema or themselves (another physical
type, histograms of another length). So they are parsed from the footer's bytes. Arrow only decides whether a condition
can be true within bounds.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from ...storage.parquet_checksum import read_footer_bytes
from ...storage.thrift import Fields, read_fields
from ..opening import open_version

Bounds: TypeAlias = dict[str, tuple[Any, Any]]
"""Column → the smallest and the largest value in a row group without nulls in this column."""

_WIDTHS = {1: 4, 2: 8}
"""Physical type INT32 or INT64 → bytes of a value."""
_DOUBLE = 5
"""Number of the physical type DOUBLE."""

_BYTES, _FIXED_BYTES = 6, 7
"""Numbers of the physical types BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY."""
_REPEATING = {0, 3, 4, 6}
"""Encodings in which a text takes at least its own bytes each time it occurs, and the encodings of levels."""
_UUID_BYTES, _UUID_TEXT = 16, 32
"""Bytes of a UUID, and of its digits."""

# Numbers of fields in parquet.thrift.
_SCHEMA, _ROW_GROUPS = 2, 4  # FileMetaData
_CHUNKS, _ROWS = 1, 3  # RowGroup
_CHUNK = 3  # ColumnChunk: its ColumnMetaData
_TYPE, _LENGTH, _NAME, _CHILDREN = 1, 2, 4, 5  # SchemaElement
_CHUNK_TYPE, _ENCODINGS, _PATH, _UNCOMPRESSED, _STATISTICS, _SIZES = 1, 2, 3, 6, 12, 16  # ColumnMetaData
_NULLS, _MAX, _MIN = 3, 5, 6  # Statistics; older fields for these have no defined order
_TEXT = 1  # SizeStatistics: bytes of all values without their lengths


def column_range(footer: bytes, columns: Mapping[str, pa.DataType]) -> tuple[int, int] | None:
    """The smallest and the largest value over all `columns` (name → Arrow type), which are integers or decimals without
    a fraction; None if a row group lacks statistics. `footer` comes without its length and the magic word.

    Raises ValueError if the footer cannot be read, or stores a column in another physical type than its schema has.
    """
    values: list[int] = []
    known = True
    for _, leaf, name, chunk in _chunks(footer, columns):
        own = None if name is None else _range(chunk.get(_STATISTICS), leaf.get(_TYPE), columns[name])
        known = known and own is not None
        values += own or ()
    return (min(values), max(values)) if known and values else None


def column_bytes(footer: bytes, columns: Collection[str]) -> tuple[int, ...]:
    """[row groups] uncompressed bytes of all `columns`. `footer` comes without its length and the magic word.

    Raises ValueError as `column_range` does, and for a column with a negative size or without a size.
    """
    sizes = [0] * len(_structs(read_fields(footer), _ROW_GROUPS))
    for group, _, name, chunk in _chunks(footer, columns):
        if name is not None:
            size = chunk.get(_UNCOMPRESSED)
            if not isinstance(size, int) or size < 0:
                raise ValueError(f"row group {group} has no size of column {name!r}")
            sizes[group] += size
    return tuple(sizes)


def mean_text_bytes(footer: bytes, columns: Collection[str]) -> list[float] | None:
    """[row groups with rows] upper bounds of the mean bytes of a text of all `columns`, which are text or UUIDs; None
    if the footer does not tell, as for dictionaries without statistics of sizes. `footer` comes without its length and
    the magic word.

    Raises ValueError as `column_range` does.
    """
    rows = [group.get(_ROWS) for group in _structs(read_fields(footer), _ROW_GROUPS)]
    texts = [0] * len(rows)
    for group, leaf, name, chunk in _chunks(footer, columns):
        found = None if name is None else _text_bytes(leaf, chunk, rows[group])
        if found is None:
            return None
        texts[group] += found
    return [text / (len(columns) * count) for text, count in zip(texts, rows, strict=True) if count]


def _text_bytes(leaf: Fields, chunk: Fields, rows: Any) -> int | None:
    """An upper bound of the bytes of all texts of a chunk, each as often as it occurs; None if it is not known."""
    if leaf.get(_TYPE) == _FIXED_BYTES and leaf.get(_LENGTH) == _UUID_BYTES and isinstance(rows, int):
        return _UUID_TEXT * rows
    if leaf.get(_TYPE) != _BYTES:
        return None
    sizes, encodings = chunk.get(_SIZES), chunk.get(_ENCODINGS)
    found = sizes.get(_TEXT) if isinstance(sizes, dict) else None
    if found is None and isinstance(encodings, list) and _REPEATING.issuperset(encodings):
        found = chunk.get(_UNCOMPRESSED)
    return found if isinstance(found, int) and found >= 0 else None


def column_bounds(footer: bytes, columns: Mapping[str, pa.DataType]) -> list[Bounds]:
    """[row groups] bounds of `columns` (name → Arrow type), as values that Arrow converts to scalars. Columns without
    statistics or with nulls are missing. `footer` comes without its length and the magic word.

    Raises ValueError as `column_range` does.
    """
    found: list[Bounds] = [{} for _ in _structs(read_fields(footer), _ROW_GROUPS)]
    for group, leaf, name, chunk in _chunks(footer, columns):
        statistics = chunk.get(_STATISTICS)
        if name is None or not isinstance(statistics, dict) or statistics.get(_NULLS) != 0:
            continue
        own = _bounds(statistics, leaf.get(_TYPE), columns[name])
        if own is not None:
            found[group][name] = own
    return found


def _bounds(statistics: Fields, physical: Any, kind: pa.DataType) -> tuple[Any, Any] | None:
    is_time = pa.types.is_date32(kind) or (
        pa.types.is_timestamp(kind) and kind.unit != "s"
    )  # seconds are stored in another unit
    if pa.types.is_integer(kind) or is_time:
        signed = pa.int32() if pa.types.is_date32(kind) else pa.int64() if is_time else kind
        return _range(statistics, physical, signed)
    least, most = statistics.get(_MIN), statistics.get(_MAX)
    if not isinstance(least, bytes) or not isinstance(most, bytes):
        return None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        try:
            return least.decode(), most.decode()  # truncated values are bounds as well
        except UnicodeDecodeError:
            return None
    if pa.types.is_float64(kind) and physical == _DOUBLE and len(least) == len(most) == 8:
        values = struct.unpack("<dd", least + most)
        return None if any(map(math.isnan, values)) else values
    return None


def _chunks(footer: bytes, columns: Collection[str]) -> Iterator[tuple[int, Fields, str | None, Fields]]:
    """Row group, schema element, name and metadata of each chunk; None and {} if its metadata are in another file."""
    content = read_fields(footer)
    leaves = [element for element in _structs(content, _SCHEMA)[1:] if not element.get(_CHILDREN)]
    for number, group in enumerate(_structs(content, _ROW_GROUPS)):
        chunks = [chunk.get(_CHUNK) for chunk in _structs(group, _CHUNKS)]
        if len(chunks) != len(leaves):
            raise ValueError(f"row group {number} has {len(chunks)} columns, and its schema {len(leaves)}")
        for leaf, chunk in zip(leaves, chunks, strict=True):
            if not isinstance(chunk, dict):
                yield number, leaf, None, {}
                continue
            name = _name(chunk.get(_PATH))
            if name is None or name not in columns:
                continue
            if (chunk.get(_CHUNK_TYPE), [name.encode()]) != (leaf.get(_TYPE), [leaf.get(_NAME)]):
                raise ValueError(f"row group {number} stores column {name!r} in another type than its schema has")
            yield number, leaf, name, chunk


def _structs(content: Fields, number: int) -> list[Fields]:
    found = content.get(number)
    if not isinstance(found, list) or not all(isinstance(element, dict) for element in found):
        raise ValueError(f"its field {number} is no list of structs")
    return found


def _name(path: Any) -> str | None:
    """The name of a top-level column; None for a nested one."""
    if isinstance(path, list) and len(path) == 1 and isinstance(path[0], bytes):
        return path[0].decode(errors="replace")
    return None


def _range(statistics: Any, physical: Any, kind: pa.DataType) -> tuple[int, int] | None:
    if not isinstance(statistics, dict) or not isinstance(physical, int):
        return None
    width = _WIDTHS.get(physical)
    is_decimal = pa.types.is_decimal(kind)
    signed = is_decimal or pa.types.is_signed_integer(kind)
    values = [value for key in (_MIN, _MAX) if isinstance(value := statistics.get(key), bytes)]
    if len(values) < 2 or ([len(value) for value in values] != [width, width] and (width or not is_decimal)):
        return None
    order: Literal["little", "big"] = "little" if width else "big"  # of decimals in bytes
    least, most = (int.from_bytes(value, order, signed=signed) for value in values)
    return (least, most) if least <= most else None  # Parquet lets readers ignore wrong statistics


def matching_row_groups(
    path: str,
    version: str | None,
    storage_options: Mapping[str, Any],
    row_groups: tuple[int, ...],
    types: Mapping[str, pa.DataType],
    condition: pc.Expression,
) -> tuple[int, ...]:
    """The members of `row_groups` that may have a row for which `condition` is true. `types` are those of its columns.

    Raises as `open_parquet` does.
    """
    with open_version(path, version, storage_options) as opened:
        content, _ = read_footer_bytes(opened)
    bounds = column_bounds(content, types)
    return tuple(group for group in row_groups if _can_match(bounds[group], types, condition))


def _can_match(bounds: Bounds, types: Mapping[str, pa.DataType], condition: pc.Expression) -> bool:
    if not bounds:
        return True
    known = None
    for name, (least, most) in bounds.items():
        own = (pc.field(name) >= pa.scalar(least, types[name])) & (pc.field(name) <= pa.scalar(most, types[name]))
        known = own if known is None else known & own
    format, files = ds.ParquetFileFormat(), LocalFileSystem()
    fragment = format.make_fragment("", filesystem=files, partition_expression=known)  # no path: nothing is opened
    table = ds.FileSystemDataset([fragment], pa.schema(list(types.items())), format, files)
    return any(True for _ in table.get_fragments(filter=condition))
