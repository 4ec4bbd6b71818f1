"""What a file of the input says of itself before its rows are read: columns, types, rows, and where it can be cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import pyarrow as pa

from ..errors import InputError
from ..versions import look_at
from .form import Form
from .formats import Format, compression_of, is_text
from .heads import TextHead, read_text_head
from .ipc import read_ipc_head
from .opening import DAMAGE, open_bytes, reason
from .parquet import Footer, read_parquet_footer

__all__ = ["Head", "look_at_files"]

STRETCH_BYTES = 2**24
"""Of a text file, between the places where it is cut."""


@dataclass(frozen=True)
class Head:
    """What one file says of itself."""

    path: str
    bytes: int
    version: str | None

    names: tuple[str, ...]
    """Columns in the order of the file."""

    types: Mapping[str, pa.DataType]

    row_groups: tuple[int, ...]
    """Rows of each part that can be read alone; estimated, unless the file is Parquet."""

    spans: tuple[tuple[int, int | None], ...] = ()
    """[row groups] the bytes of text, or the record batches, from the first to one past the last; none of Parquet."""

    schema: pa.Schema = None
    """Of Parquet."""

    footer: Footer | None = None
    """Of Parquet."""

    text: TextHead | None = None
    """Of CSV, TSV and JSON lines."""


def look_at_files(
    readers: Executor, paths: Sequence[str], format: Format, form: Form, options: Mapping[str, Any]
) -> list[Head]:
    """The heads of all files. Raises InputError for a file that is not of the format, or damaged.

    What the settings leave open of text is found out from the first file that is not empty.
    """
    if format == "parquet":
        return list(readers.map(partial(_parquet, options=options), paths))
    if not is_text(format):
        return list(readers.map(partial(_ipc, options=options), paths))
    first = _text(paths[0], format, form, options, None)
    others = partial(_text, format=format, form=form, options=options, first=first.text)
    return [first, *readers.map(others, paths[1:])]


def _parquet(path: str, options: Mapping[str, Any]) -> Head:
    footer = read_parquet_footer(path, options)
    schema = footer.schema
    types = dict(zip(schema.names, schema.types, strict=True))
    return Head(
        path,
        footer.size,
        footer.version,
        tuple(schema.names),
        types,
        footer.row_groups,
        schema=schema,
        footer=footer,
    )


def _ipc(path: str, options: Mapping[str, Any]) -> Head:
    try:
        size, version = _size(path, options)
        with open_bytes(path, options) as file:
            found = read_ipc_head(file, path)
    except DAMAGE as error:
        raise InputError(
            f"{path} cannot be read as Arrow IPC: {reason(error)}; "
            "it is another kind of file, was cut short or is damaged: write it again"
        ) from error
    schema = found.schema
    if found.is_stream:
        rows: tuple[int, ...] = (max(1, round(size / found.row_bytes)) if found.row_bytes else 1,)
        spans: tuple[tuple[int, int | None], ...] = ((0, None),)
    else:
        rows = (max(1, found.rows),) * found.batches
        spans = tuple((batch, batch + 1) for batch in range(found.batches))
    types = dict(zip(schema.names, schema.types, strict=True))
    return Head(path, size, version, tuple(schema.names), types, rows, spans)


def _text(path: str, format: Format, form: Form, options: Mapping[str, Any], first: TextHead | None) -> Head:
    try:
        size, version = _size(path, options)
        with open_bytes(path, options) as file:
            found = read_text_head(file, path, size, format, form, first)
    except DAMAGE as error:
        raise InputError(
            f"{path} cannot be read as {format}: {reason(error)}; it was cut short or is damaged: write it again"
        ) from error
    spans: tuple[tuple[int, int | None], ...]
    if compression_of(path) is not None:
        spans = ((0, None),)
    else:
        ends = [*range(0, size, STRETCH_BYTES), size]
        spans = tuple(pairwise(ends))
    sizes = [size if stop is None else stop - start for start, stop in spans]
    rows = tuple(max(1, round(own / found.row_bytes)) if found.row_bytes else 1 for own in sizes)  # never 0: it is read
    return Head(path, size, version, found.names, found.types, rows, spans, text=found)


def _size(path: str, options: Mapping[str, Any]) -> tuple[int, str | None]:
    size, version = look_at(path, options)  # before the file is read: what changes meanwhile is noticed later
    if not size:
        raise InputError(f"{path} is empty (0 bytes); write it again or take it away")
    return size, version
