"""The beginning of a text file: the layout of its rows, the types of its columns, and bytes per row."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from ...errors import InputError
from ..opening import error_reason
from .form import Form
from .formats import Format, compression_of
from .lines import BYTE_ORDER_MARK, decompressed, without_comments, without_header
from .unread import why_content_not_read, why_not_read

HEAD_BYTES = 2**20
"""Bytes of each file that are inspected, uncompressed."""

_DELIMITERS = ("\t", ",", ";", "|", " ")
"""Tried in this order. The first wins that occurs in every line, equally often."""
_LINES_COMPARED = 100
_COMMENTS = ("#", "%")
_USUAL_NAMES = {"src", "dst", "source", "target"}
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_WHOLE = re.compile(r"[-+]?[0-9]+")
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]")


@dataclass(frozen=True)
class TextHead:
    """Layout and column types at the beginning of a text file."""

    delimiter: str
    header: bool
    comment: str

    names: tuple[str, ...]
    """Columns in the order of the file. For JSON lines: columns that occur in the first rows."""

    types: Mapping[str, pa.DataType]
    """Types of the columns in the first rows; null if these are empty."""

    row_bytes: float
    """Mean bytes of a row as stored in the file, compressed or not; 0 without rows."""

    header_certain: bool = True
    """Whether `header` is certain, not guessed."""


def read_text_head(file: Any, path: str, size: int, format: Format, form: Form, first: TextHead | None) -> TextHead:
    """Inspect the beginning of an open file of `size` bytes. What the settings leave open is as in the `first` file.

    Raises InputError if it is not text of this format, and READ_ERRORS for damaged compression.
    """
    compression = compression_of(path)
    head = decompressed(file, compression).read(HEAD_BYTES)
    whole = len(head) < HEAD_BYTES
    stored = min(file.tell(), size) if compression else len(head)
    if (why := why_content_not_read(path, head, whole, form.comment)) is not None:
        raise InputError(why)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{path} is UTF-16 text: write it as UTF-8")
    if b"\0" in head[:4096]:
        raise InputError(f"{path} is not text: name its format with --input-format, or write it as Parquet")
    if head.startswith(BYTE_ORDER_MARK):
        head = head[len(BYTE_ORDER_MARK) :]
    if not whole:
        end = head.rfind(b"\n") + 1
        if not end:
            raise InputError(f"{path} has no line end in its first {HEAD_BYTES:,} bytes: it is not a {format} file")
        stored, head = round(stored * end / len(head)), head[:end]
    if format == "jsonl":
        return _json_head(path, head, stored)
    return _csv_head(path, head, stored, format, form, first)


def _csv_head(path: str, head: bytes, stored: int, format: Format, form: Form, first: TextHead | None) -> TextHead:
    comment = _comment(head, form, first)
    text = without_comments(head, comment.encode())
    try:
        lines = [line for line in text.decode().splitlines() if line]
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: byte {error.start:,} is invalid: write it as UTF-8") from error
    delimiter = form.delimiter or (first.delimiter if first else _delimiter(lines, format))
    rows = list(csv.reader(lines[:_LINES_COMPARED], delimiter=delimiter))
    header, certain = _header(rows, form, first)
    names = _names(path, rows, header, first)
    body = b"".join(without_header(iter([text]))) if header else text
    types: dict[str, pa.DataType] = dict.fromkeys(names, pa.null())
    if len(lines) > header:
        types = _types(path, body, names, delimiter)
    row_bytes = stored / (len(lines) - header) if len(lines) > header else 0.0
    return TextHead(delimiter, header, comment, names, types, row_bytes, certain)


def _comment(head: bytes, form: Form, first: TextHead | None) -> str:
    if form.comment is not None:
        return form.comment
    begins = head.lstrip(b"\r\n")[:1].decode(errors="replace")
    if first is not None and first.comment:
        return first.comment
    return begins if begins in _COMMENTS else ""


def _delimiter(lines: Sequence[str], format: Format) -> str:
    if format == "tsv":
        return "\t"
    compared = lines[:_LINES_COMPARED]
    for delimiter in _DELIMITERS:
        counts = {len(row) for row in csv.reader(compared, delimiter=delimiter)}
        if len(counts) == 1 and min(counts) > 1:
            return delimiter
    return ","


def _header(rows: Sequence[Sequence[str]], form: Form, first: TextHead | None) -> tuple[bool, bool]:
    """Whether the first row has column names, and whether that is certain."""
    if form.header is not None:
        return form.header, True
    if first is not None:
        return first.header, first.header_certain
    if not rows:
        return False, True
    top = [field.strip() for field in rows[0]]
    if any(_NUMBER.fullmatch(field) or _UUID.fullmatch(field) for field in top):
        return False, True
    if _USUAL_NAMES & set(top) or any(_NUMBER.fullmatch(field.strip()) for row in rows[1:] for field in row):
        return True, True
    return True, False


def _names(path: str, rows: Sequence[Sequence[str]], header: bool, first: TextHead | None) -> tuple[str, ...]:
    if header and rows:
        names = tuple(rows[0])
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"{path} has {names.count(name)} columns named {name!r}; rename all but one")
        return names
    width = len(rows[0]) if rows else len(first.names) if first is not None else 2
    if first is not None and width != len(first.names):
        raise InputError(
            f"{path} has {width} columns in its first line, and the first file of the input has {len(first.names)}: "
            "they are not parts of one table"
        )
    return ("src", "dst", *(f"column_{number}" for number in range(3, width + 1)))[: max(width, 1)]


def csv_options(names: Sequence[str], delimiter: str, types: Mapping[str, pa.DataType] | None = None) -> dict[str, Any]:
    """Options of Arrow's CSV reader. An empty field is null; a quoted empty field is the empty string."""
    return {
        "read_options": arrow_csv.ReadOptions(column_names=list(names), use_threads=False),
        "parse_options": arrow_csv.ParseOptions(delimiter=delimiter),
        "convert_options": arrow_csv.ConvertOptions(
            column_types=dict(types or {}),
            include_columns=list(types or names),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    }


def _types(path: str, body: bytes, names: Sequence[str], delimiter: str) -> dict[str, pa.DataType]:
    try:
        text = arrow_csv.read_csv(io.BytesIO(body), **csv_options(names, delimiter, dict.fromkeys(names, pa.string())))
        guessed = arrow_csv.read_csv(io.BytesIO(body), **csv_options(names, delimiter))
    except pa.ArrowException as error:
        raise InputError(
            f"{path} cannot be read as text with {delimiter!r} between fields: {error_reason(error)}; "
            "set input.delimiter, input.header or input.comment if these differ"
        ) from error
    types = {}
    for name in names:
        kind = guessed[name].type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            values = [value.strip() for value in text[name].drop_null().to_pylist()]
            if all(_WHOLE.fullmatch(value) for value in values):
                kind = _whole_type(values)
        types[name] = kind
    return types


def _whole_type(values: Collection[str]) -> pa.DataType:
    """The type of ids in digits: string if one has a leading zero, which an integer would lose."""
    if any(_LEADING_ZERO.match(value) for value in values):
        return pa.string()
    return _int_type([int(value) for value in values])


def _int_type(numbers: Collection[int]) -> pa.DataType:
    least, most = min(numbers, default=0), max(numbers, default=0)
    if most < 2**63:
        return pa.int64() if least >= -(2**63) else pa.string()
    return pa.uint64() if most < 2**64 and least >= 0 else pa.string()


def _json_head(path: str, head: bytes, stored: int) -> TextHead:
    lines = [line for line in head.split(b"\n") if line.strip()]
    if lines and lines[0].lstrip()[:1] == b"[":
        why = why_not_read(path if path.endswith(".json") else f"{path}.json") or ""
        raise InputError(f"{path} is one JSON array, not JSON lines: {why.partition('convert it, ')[2]}")
    columns: dict[str, list[Any]] = {}
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines) > 1:
                break  # incomplete: the inspected part ends here; an error here is found when rows are read
            raise InputError(f"{path}: line {number} is not JSON: {error}; write one object on each line") from error
        if not isinstance(row, dict):
            raise InputError(f"{path}: line {number} is not a JSON object: write one object on each line")
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    types = {name: _json_type(values) for name, values in columns.items()}
    return TextHead("", False, "", tuple(columns), types, stored / len(lines) if lines else 0.0)


def _json_type(values: Sequence[Any]) -> pa.DataType:
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pa.null()
    if kinds == {int}:
        return _int_type(values := [value for value in values if value is not None])
    if kinds <= {int, float}:
        return pa.float64()
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {str}:
        return pa.string()
    return pa.null() if kinds - {str, int, float, bool} else pa.string()
