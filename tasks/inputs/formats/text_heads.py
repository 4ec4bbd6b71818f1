"""The beginning of a text file: the layout of its rows, the types of its columns, and bytes per row."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from ...errors import InputError, clipped
from ..opening import error_reason
from .form import Form
from .input_format import compression_of
from .lines import (
    BYTE_ORDER_MARK,
    comments_in,
    decompressed,
    line_end_of,
    with_single_blanks,
    without_comments,
    without_header,
    without_outer_blanks,
)
from .unread import why_content_not_read, why_not_read

HEAD_BYTES = 2**20
"""Bytes of each file that are inspected, uncompressed."""

_DELIMITERS = ("\t", ",", ";", "|", " ")
"""Tried in this order. The first wins that occurs in every line, equally often."""
_LINES_COMPARED = 100
csv.field_size_limit(max(csv.field_size_limit(), HEAD_BYTES))  # a field may be as long as the head
COMMENTS = ("#", "%")
"""Prefixes of comments, if the settings name none."""
WRITTEN_INTEGER = r"^(0|-?[1-9][0-9]*)$"
"""An integer as it prints."""
_USUAL_NAMES = {"src", "dst", "source", "target"}
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


@dataclass(frozen=True)
class WrittenValues:
    """How the values of a column are written in the first rows."""

    integers: bool = False
    """Whether some of them are written as integers."""

    other: str | None = None
    """The first other value; None without one."""

    line: int = 0
    """Its line."""

    @property
    def is_like_integers(self) -> bool:
        """Whether a reader may take the column for integers: it has some, or the first other value is a number."""
        return self.integers or (self.other is not None and _NUMBER.fullmatch(self.other.strip()) is not None)


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

    line_end: str = "\n"
    """A line feed, or a carriage return."""

    written: Mapping[str, WrittenValues] = field(default_factory=dict)
    """How the values of the columns of CSV and TSV are written."""


def read_text_head(file: Any, path: str, size: int, format: str, form: Form, first: TextHead | None) -> TextHead:
    """Inspect the beginning of an open file of `size` bytes. What the settings leave open is as in the `first` file.

    Raises InputError if it is not text of this format, and READ_ERRORS for damaged compression.
    """
    compression = compression_of(path)
    stream = decompressed(file, compression)
    head = stream.read(HEAD_BYTES)
    whole = len(head) < HEAD_BYTES
    while not whole and _has_only_comments(head, form):
        more = stream.read(HEAD_BYTES)
        head, whole = head + more, len(more) < HEAD_BYTES
    stored = min(file.tell(), size) if compression else len(head)
    if (why := why_content_not_read(path, head, whole, form.comment)) is not None:
        raise InputError(why)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{path} is UTF-16 text: write it as UTF-8")
    if b"\0" in head[:4096]:
        raise InputError(f"{path} is not text: name its format with --input-format, or write it as Parquet")
    if head.startswith(BYTE_ORDER_MARK):
        head = head[len(BYTE_ORDER_MARK) :]
    line_end = line_end_of(head)
    if not whole:
        end = head.rfind(line_end.encode()) + 1
        if not end:
            raise InputError(f"{path} has no line end in its first {HEAD_BYTES:,} bytes: it is not a {format} file")
        stored, head = round(stored * end / len(head)), head[:end]
    if format == "jsonl":
        return _json_head(path, head, stored)
    if line_end == "\r":
        head = head.replace(b"\r", b"\n")
    return replace(_csv_head(path, head, stored, format, form, first), line_end=line_end)


def _has_only_comments(head: bytes, form: Form) -> bool:
    """Whether all lines are comments: they begin with the setting, or with the same prefix and then a blank."""
    lines = head.removeprefix(BYTE_ORDER_MARK).replace(b"\r", b"\n").lstrip(b"\n")
    if form.comment is not None:
        comment = re.escape(form.comment.encode())
    else:
        comment = re.escape(lines[:1]) + rb"(?=\s)" if lines[:1].decode(errors="replace") in COMMENTS else b""
    return (
        bool(comment)
        and re.fullmatch(rb"(?:(?:" + comment + rb"[^\n]*)?\n)*(?:" + comment + rb"[^\n]*)?", lines) is not None
    )


def _csv_head(path: str, head: bytes, stored: int, format: str, form: Form, first: TextHead | None) -> TextHead:
    comment = _comment(path, head, form, first)
    text = without_comments(head, comment.encode()) if comment else head
    try:
        lines = _lines(text)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: byte {error.start:,} is invalid: write it as UTF-8") from error
    delimiter = form.delimiter or (first.delimiter if first else _delimiter(path, lines, format))
    if delimiter == " ":
        text = with_single_blanks(text)
    if form.strip:
        text = without_outer_blanks(text, delimiter)
    lines = _lines(text)
    rows = list(csv.reader(lines[:_LINES_COMPARED], delimiter=delimiter))
    if (advice := attributes_in_braces(path, rows, delimiter)) is not None:
        raise InputError(f"{path} has {advice}")
    header, certain = _header(rows, form, first)
    names = _names(path, rows, header, first)
    body = without_header(text)[0] if header else text
    types: dict[str, pa.DataType] = dict.fromkeys(names, pa.null())
    written: dict[str, WrittenValues] = {}
    if len(lines) > header:
        numbers = [number for number, line in enumerate(text.split(b"\n"), 1) if line.strip(b"\r")][header:]
        types, written = _types(path, body, names, delimiter, numbers)
    elif form.comment is None and comment:
        _refuse_rows_in_comments(path, head, comment, delimiter, len(names))
    row_bytes = stored / (len(lines) - header) if len(lines) > header else 0.0
    return TextHead(delimiter, header, comment, names, types, row_bytes, certain, written=written)


def _lines(text: bytes) -> list[str]:
    """The lines that are not empty."""
    return [line for line in re.split(r"[\r\n]+", text.decode()) if line]


def _comment(path: str, head: bytes, form: Form, first: TextHead | None) -> str:
    """The prefix of comments. Raises InputError for lines that may be comments or rows."""
    if form.comment is not None:
        return form.comment
    begins = head.lstrip(b"\r\n")[:1].decode(errors="replace")
    comment = first.comment if first is not None and first.comment else begins if begins in COMMENTS else ""
    if comment and not without_comments(head, comment.encode()).strip():
        for line in comments_in(head, comment.encode()):
            if line[len(comment) :].strip() and not line[len(comment) :][:1].isspace():
                raise InputError(f"{path}: a line {unclear_comment(line.decode(errors='replace'), comment)}")
    for other in () if comment else COMMENTS:
        for line in comments_in(head, other.encode())[:1]:
            raise InputError(f"{path}: a line {unclear_comment(line.decode(errors='replace'), other)}")
    return comment


def _refuse_rows_in_comments(path: str, head: bytes, comment: str, delimiter: str, width: int) -> None:
    """Raises InputError for a line that may be a comment or a row, of a file without rows."""
    for line in comments_in(head, comment.encode()):
        if is_comment_or_row(line, comment, delimiter, width):
            raise InputError(f"{path}: a line {unclear_comment(line.decode(errors='replace'), comment)}")


def is_comment_or_row(line: bytes, comment: str, delimiter: str, width: int) -> bool:
    """Whether a line that begins with the prefix of comments may be a row of text: it has as many fields as the rows,
    `width`, and no blank after the prefix.
    """
    rest = line[len(comment.encode()) :]
    if not rest.strip() or rest[:1].isspace():
        return False
    text = (with_single_blanks(line) if delimiter == " " else line).decode(errors="replace")
    try:
        return len(next(csv.reader([text], delimiter=delimiter))) == width
    except csv.Error:  # a field is longer than the head
        return True


def unclear_comment(line: str, comment: str) -> str:
    """What is wrong with a line that may be a comment or a row, and the setting that tells."""
    return (
        f"may be a comment or a row: {clipped(line)!r}: say --set input.comment={comment!r} if lines that begin with "
        f'{comment!r} are comments, or --set input.comment="" if there are no comments'
    )


def attributes_in_braces(path: str, rows: Sequence[Sequence[str]], delimiter: str) -> str | None:
    """What to do about edge attributes in braces, as NetworkX writes them, which the delimiter divides; None without
    any.
    """
    for row in rows:
        begins = next((field for field in row[2:] if field.startswith("{")), None)
        if begins is not None and not begins.endswith("}") and row[-1].endswith("}"):
            how = "" if delimiter == " " else f", delimiter={delimiter!r}"
            return (
                "attributes in braces, as networkx.write_edgelist writes them: write the edges with data=False, or "
                f"convert them: networkx.to_pandas_edgelist(networkx.read_edgelist({path!r}{how}))"
                ".to_parquet('edges.parquet')"
            )
    return None


def _delimiter(path: str, lines: Sequence[str], format: str) -> str:
    if format == "tsv":
        return "\t"
    compared = lines[:_LINES_COMPARED]
    for delimiter in _DELIMITERS:
        own = compared
        if delimiter == " ":
            own = with_single_blanks("\n".join(compared).encode()).decode().split("\n")
        rows = [row for row in csv.reader(own, delimiter=delimiter) if row]
        counts = {len(row) for row in rows}
        if len(counts) == 1 and min(counts) > 1:
            return delimiter
        if delimiter == " " and (advice := attributes_in_braces(path, rows, delimiter)) is not None:
            raise InputError(f"{path} has {advice}")
    if compared and not any(delimiter in line for line in compared for delimiter in _DELIMITERS):
        raise InputError(
            f"{path}: no tab, comma, semicolon, bar or space divides fields, as in {clipped(compared[0])!r}: name "
            "the character that does, with --set input.delimiter=…, or convert the file"
        )
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


def _types(
    path: str, body: bytes, names: Sequence[str], delimiter: str, numbers: Sequence[int]
) -> tuple[dict[str, pa.DataType], dict[str, WrittenValues]]:
    """The types of columns, and how their values are written. `numbers` are those of the lines of the rows."""
    try:
        text = arrow_csv.read_csv(io.BytesIO(body), **csv_options(names, delimiter, dict.fromkeys(names, pa.string())))
        guessed = arrow_csv.read_csv(io.BytesIO(body), **csv_options(names, delimiter))
    except pa.ArrowException as error:
        uneven = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error))
        if uneven is not None and int(uneven[1]) <= len(numbers):
            raise InputError(
                f"{path}: line {numbers[int(uneven[1]) - 1]:,} has {uneven[3]} fields, and the other lines have "
                f"{uneven[2]}, with {delimiter!r} between fields: correct it, or set input.delimiter, input.header or "
                "input.comment if these differ"
            ) from error
        raise InputError(
            f"{path} cannot be read as text with {delimiter!r} between fields: {error_reason(error)}; "
            "set input.delimiter, input.header or input.comment if these differ"
        ) from error
    types, written = {}, {}
    for name in names:
        kind = guessed[name].type
        is_integer = pc.match_substring_regex(text[name], WRITTEN_INTEGER)
        at = pc.index(is_integer, False).as_py()
        if at < 0:
            found, values = WrittenValues(bool(pc.any(is_integer).as_py())), text[name].to_pylist()
            if found.integers:
                kind = _int_type([int(value) for value in values if value is not None])
            if found.integers and kind == pa.string():
                at = next(at for at, value in enumerate(values) if value and not -(2**63) <= int(value) < 2**63)
                found = WrittenValues(True, values[at], numbers[at] if at < len(numbers) else 0)
        else:
            line = numbers[at] if at < len(numbers) else 0
            found = WrittenValues(bool(pc.any(is_integer).as_py()), text[name][at].as_py(), line)
            if pa.types.is_integer(kind):  # it is text for a condition, too, unless it has blanks around integers
                values = pc.utf8_trim_whitespace(text[name].drop_null())
                whole = pc.all(pc.match_substring_regex(values, WRITTEN_INTEGER)).as_py()
                kind = _int_type([int(value) for value in values.to_pylist()]) if whole else pa.string()
        types[name], written[name] = kind, found
    return types, written


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
