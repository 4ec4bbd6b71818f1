"""Reading a range of lines of CSV, TSV or JSON: record batches of some columns, and errors that name file and line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.json as arrow_json

from ...errors import InputError
from ..opening import error_reason
from .formats import compression_of
from .layout import Layout
from .lines import LineStream, chunks_of_lines, without_comments, without_header
from .text_heads import csv_options

_MAX_SHOWN = 60
"""Characters of a value or a line that a message shows."""


def text_batches(
    file: Any, path: str, layout: Layout, names: Sequence[str], span: tuple[int, int | None]
) -> Iterator[pa.RecordBatch]:
    """The columns of `layout` in the lines of the byte range `span` of an open file with the columns `names`.

    Raises READ_ERRORS; `explain_text` then finds the line.
    """
    chunks = _chunks(file, path, layout, span)
    first = next(chunks, b"")
    while first and not first.strip(b"\r\n"):  # Arrow rejects CSV that starts with empty lines
        first = next(chunks, b"")
    if not first:
        return
    stream = LineStream(_with_first(first, chunks))
    if layout.format == "jsonl":
        options = arrow_json.ParseOptions(explicit_schema=layout.schema, unexpected_field_behavior="ignore")
        reader = arrow_json.open_json(
            stream, read_options=arrow_json.ReadOptions(use_threads=False), parse_options=options
        )
    else:
        reader = arrow_csv.open_csv(stream, **csv_options(names, layout.delimiter, dict(layout.types)))
    for batch in reader:
        if batch.num_rows:
            yield batch.select([name for name, _ in layout.types])


def _with_first(first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from chunks


def _chunks(file: Any, path: str, layout: Layout, span: tuple[int, int | None]) -> Iterator[bytes]:
    comment = layout.comment.encode()
    found = chunks_of_lines(file, compression_of(path), *span)
    chunks = (kept for chunk in found if (kept := without_comments(chunk, comment)))
    return without_header(chunks) if layout.header and not span[0] else chunks


def explain_text(
    file: Any, path: str, layout: Layout, names: Sequence[str], span: tuple[int, int | None], error: BaseException
) -> InputError | None:
    """The error for the first bad line in a byte range, found by reading line by line; None if no line is bad."""
    if layout.format == "jsonl":
        found = _bad_json(file, path, layout, span)
    else:
        found = _bad_csv(file, path, layout, names, span, error)
    return None if found is None else InputError(found)


def _lines(file: Any, path: str, layout: Layout, span: tuple[int, int | None]) -> Iterator[tuple[int, bytes]]:
    """(line number in the file, line) of each row in a byte range."""
    number = 0
    if span[0]:
        for chunk in chunks_of_lines(file, None, 0, span[0]):
            number += chunk.count(b"\n")
    header = layout.header and not span[0]
    for chunk in chunks_of_lines(file, compression_of(path), *span):
        for line in chunk.split(b"\n")[: None if not chunk.endswith(b"\n") else -1]:
            number += 1
            kept = line.rstrip(b"\r")
            if not kept or (layout.comment and kept.startswith(layout.comment.encode())):
                continue
            if header:
                header = False
                continue
            yield number, kept


def _bad_csv(
    file: Any, path: str, layout: Layout, names: Sequence[str], span: tuple[int, int | None], error: BaseException
) -> str | None:
    text = str(error)
    row = re.search(r"Row #(\d+)", text)
    if row is None:
        return None
    bad_row = int(row[1])
    number, line = next(
        (found for at, found in enumerate(_lines(file, path, layout, span), 1) if at == bad_row), (None, b"")
    )
    if number is None:
        return None
    column = re.search(r"In CSV column #(\d+)", text)
    if column is not None:
        name = layout.types[int(column[1])][0] if int(column[1]) < len(layout.types) else "?"
        value = re.search(r"invalid value '(.*)'", text, re.DOTALL)
        return _other_type(path, number, name, repr(_clipped(value[1] if value else "?")), layout)
    counted = re.search(r"Expected (\d+) columns, got (\d+)", text)
    if counted is not None:
        shown = _clipped(line.decode(errors="replace"))
        return (
            f"{path}: line {number:,} has {counted[2]} fields, and the other lines have {counted[1]}: {shown!r}; "
            f"correct it, or convert the file with another program"
        )
    return f"{path}: line {number:,} cannot be read: {error_reason(error)}"


def _bad_json(file: Any, path: str, layout: Layout, span: tuple[int, int | None]) -> str | None:
    for number, line in _lines(file, path, layout, span):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            return f"{path}: line {number:,} is not JSON: {error}; write one object on each line"
        if not isinstance(row, dict):
            return f"{path}: line {number:,} is not a JSON object: write one object on each line"
        for name, kind in layout.types:
            value = row.get(name)
            if value is None:
                continue
            try:
                right = _fits_json(value, kind)
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                right = False
            if not right:
                return _other_type(path, number, name, _clipped(json.dumps(value)), layout)
    return None


def _fits_json(value: Any, kind: pa.DataType) -> bool:
    if pa.types.is_integer(kind):
        return type(value) is int and pa.scalar(value, kind).is_valid
    if pa.types.is_string(kind):
        return isinstance(value, str)
    if pa.types.is_floating(kind):
        return type(value) in (int, float)
    return pa.types.is_boolean(kind) and isinstance(value, bool)


def _other_type(path: str, number: int, name: str, value: str, layout: Layout) -> str:
    kind = dict(layout.types).get(name)
    return (
        f"{path}: line {number:,}: column {name!r} has {value}, and its first rows are {kind}; correct the line, or, "
        "if it is an id, set the type of all ids with --set input.id_type=string, int64 or uint64"
    )


def _clipped(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
