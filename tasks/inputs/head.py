"""The head of an input file: columns, types, rows and where it can be split, known before rows are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import pyarrow as pa

from ..errors import InputError
from .formats.form import Form
from .formats.input_format import TypedFormat, compression_of, format_called
from .formats.matrix_market import Matrix, read_matrix_head, refuse_matrix
from .formats.parquet import Footer, read_parquet_footer
from .formats.text_heads import TextHead, read_text_head
from .opening import READ_ERRORS, error_reason, open_bytes, size_and_version

SPLIT_BYTES = 2**24
"""Bytes of a part of a text file."""


@dataclass(frozen=True)
class Head:
    """The head of one file."""

    path: str
    bytes: int
    version: str | None

    names: tuple[str, ...]
    """Columns in the order of the file."""

    types: Mapping[str, pa.DataType]

    row_groups: tuple[int, ...]
    """Rows of each part that can be read alone. Estimated, except for Parquet."""

    spans: tuple[tuple[int, int | None], ...] = ()
    """[row groups] range of bytes (text) or parts (Arrow), end excluded; empty for Parquet."""

    is_empty: bool = False
    """Whether it is known to have no rows. Then the types of its columns mean nothing: writers choose any."""

    schema: pa.Schema = None
    """None except for Parquet."""

    footer: Footer | None = None
    """None except for Parquet."""

    text: TextHead | None = None
    """None except for CSV, TSV and JSON lines."""

    matrix: Matrix | None = None
    """None except for Matrix Market."""


def read_heads(
    readers: Executor, paths: Sequence[str], format: str, form: Form, options: Mapping[str, Any]
) -> list[Head]:
    """The heads of all files. Raises InputError for a damaged file, or one of another format.

    What the settings leave open about text is determined from the first file.
    """
    if format == "parquet":
        return list(readers.map(partial(_parquet, options=options), paths))
    if format == "mtx":
        return list(readers.map(partial(_matrix, form=form, options=options), paths))
    if isinstance(own := format_called(format), TypedFormat):
        return list(readers.map(partial(_table, own, options=options), paths))
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
        is_empty=not sum(footer.row_groups),
        schema=schema,
        footer=footer,
    )


def _table(format: TypedFormat, path: str, options: Mapping[str, Any]) -> Head:
    try:
        size, version = _size(path, options)
        with open_bytes(path, options) as file:
            found = format.read_head(file, path, size)
    except READ_ERRORS as error:
        raise InputError(
            f"{path} cannot be read as {format.title}: {error_reason(error)}; "
            "it is another kind of file, was cut short or is damaged: write it again"
        ) from error
    names, types = found.schema.names, found.schema.types
    columns = dict(zip(names, types, strict=True))
    return Head(path, size, version, tuple(names), columns, found.rows, found.spans, is_empty=not found.rows)


def _matrix(path: str, form: Form, options: Mapping[str, Any]) -> Head:
    try:
        size, version = _size(path, options)
        with open_bytes(path, options) as file:
            found = read_matrix_head(file, path, size)
    except READ_ERRORS as error:
        raise _unreadable_text(path, "mtx", error) from error
    refuse_matrix(path, found, form)
    spans = _spans(path, found.start, size)
    share = found.entries / max(1, size - found.start)
    rows = tuple(max(1, found.entries if stop is None else round((stop - start) * share)) for start, stop in spans)
    return Head(path, size, version, tuple(found.types), found.types, rows, spans, matrix=found)


def _spans(path: str, start: int, size: int) -> tuple[tuple[int, int | None], ...]:
    """The byte ranges of a text file from its first row on; a compressed file has one."""
    if compression_of(path) is not None:
        return ((0, None),)
    return tuple(pairwise([*range(start, size, SPLIT_BYTES), size]))


def _unreadable_text(path: str, format: str, error: BaseException) -> InputError:
    return InputError(
        f"{path} cannot be read as {format}: {error_reason(error)}; it was cut short or is damaged: write it again"
    )


def _text(path: str, format: str, form: Form, options: Mapping[str, Any], first: TextHead | None) -> Head:
    try:
        size, version = _size(path, options)
        with open_bytes(path, options) as file:
            found = read_text_head(file, path, size, format, form, first)
    except READ_ERRORS as error:
        raise _unreadable_text(path, format, error) from error
    spans = _spans(path, 0, size)
    sizes = [size if stop is None else stop - start for start, stop in spans]
    rows = tuple(
        max(1, round(own / found.row_bytes)) if found.row_bytes else 1 for own in sizes
    )  # at least 1: row groups with 0 rows are not read
    return Head(path, size, version, found.names, found.types, rows, spans, text=found)


def _size(path: str, options: Mapping[str, Any]) -> tuple[int, str | None]:
    size, version = size_and_version(path, options)  # first: a later change is then noticed
    if not size:
        raise InputError(f"{path} is empty (0 bytes); write it again or remove it")
    return size, version
