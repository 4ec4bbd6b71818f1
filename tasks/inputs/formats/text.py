"""Reading a range of lines of CSV, TSV or JSON: record batches of some columns, and errors that name file and line.

Ids are integers only if they are written as integers print. Arrow also takes ` 7`, `007` and `0x7` for 7, so columns
of integers are read as text and then checked, except for chunks that have nothing but numbers without leading zeros.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.json as arrow_json

from ...errors import InputError, OtherType, clipped
from ..opening import error_reason
from .form import RowLayout
from .input_format import compression_of
from .lines import (
    LineStream,
    chunks_of_lines,
    comments_in,
    with_single_blanks,
    without_comments,
    without_header,
    without_outer_blanks,
)
from .text_heads import (
    COMMENTS,
    WRITTEN_INTEGER,
    attributes_in_braces,
    csv_options,
    is_comment_or_row,
    unclear_comment,
)

_NEGATIVE_ZERO = re.compile(rb"-0\s*[,}\]]")
_LINE_BREAK = "a quoted field that holds a line break: convert the file with another program, such as DuckDB"


@dataclass(frozen=True)
class TextRange:
    """A range of lines of a text file."""

    path: str

    layout: RowLayout

    names: Sequence[str]
    """Columns of the file, in its order."""

    span: tuple[int, int | None]
    """Range of bytes."""

    line_end: str = "\n"


@dataclass
class Skipped:
    """Lines that were skipped as comments, counted while a range is read."""

    comments: int = 0
    first: str = ""
    """The first of them."""


@dataclass
class _Chunks:
    """Chunks of lines, and the number of their lines that are not empty."""

    chunks: Iterator[bytes]
    count: Callable[[bytes], int]
    lines: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self.chunks:
            self.lines += self.count(chunk)
            yield chunk


class _BadLine(ValueError):
    """A line that cannot be read, and the reason."""

    def __init__(self, line: bytes, reason: str) -> None:
        super().__init__(reason)
        self.line = line.rstrip(b"\r")


class _BadValue(ValueError):
    """The value of a row of the range, counted from 1, that is not of the type of its column."""

    def __init__(self, row: int, name: str, value: str) -> None:
        super().__init__(f"row {row}: {name}: {value}")
        self.row, self.name, self.value = row, name, value


class _LineBreaks(ValueError):
    """A range has fewer rows than lines, as a row continues on the next line."""


def text_batches(file: Any, own: TextRange, skipped: Skipped) -> Iterator[pa.RecordBatch]:
    """The columns of the layout in the lines of a range of an open file.

    Raises READ_ERRORS; `explain_text` then finds the line.
    """
    if own.layout.format == "jsonl":
        chunks = chunks_of_lines(file, compression_of(own.path), *own.span, own.line_end)
        yield from _json_batches(chunks, own.layout)
        return
    from ....kernels.cpu.arrays.strings import are_plain_numbers  # compiled, for text alone

    types, delimiter = dict(own.layout.types), own.layout.delimiter
    integers = {name: kind for name, kind in types.items() if pa.types.is_integer(kind)}
    plain = partial(are_plain_numbers, delimiter=ord(delimiter))
    leading, rows = _Leading(_chunks(file, own, skipped, plain if integers else lambda _: False)), 0
    for batch in _csv_batches(leading, own.names, delimiter, types):
        rows += batch.num_rows
        yield batch
    counted, before = _Chunks(leading.rest, _count_lines), rows
    try:
        for batch in _csv_batches(counted, own.names, delimiter, types | dict.fromkeys(integers, pa.string())):
            yield _with_integers(batch, own.layout, integers, rows)
            rows += batch.num_rows
    except pa.ArrowException as error:
        numbered = re.sub(r"Row #(\d+)", lambda row: f"Row #{before + int(row[1])}", str(error))
        raise pa.ArrowInvalid(numbered) from error
    if rows - before != counted.lines:
        raise _LineBreaks


class _Leading:
    """The chunks before the first one that does not pass. Those from it on are the `rest`."""

    def __init__(self, chunks: Iterator[tuple[bytes, bool]]) -> None:
        self._chunks = chunks
        self.rest: Iterator[bytes] = iter(())

    def __iter__(self) -> Iterator[bytes]:
        for chunk, passes in self._chunks:
            if not passes:
                self.rest = chain([chunk], (other for other, _ in self._chunks))
                return
            yield chunk


def _count_lines(chunk: bytes) -> int:
    """The number of lines that are not empty."""
    codes = np.frombuffer(chunk, np.uint8)
    ends = (codes == ord("\n")) | (codes == ord("\r"))
    return int(np.count_nonzero(ends[:-1] & ~ends[1:])) + int(not ends[0])


def _csv_batches(
    chunks: Iterable[bytes], names: Sequence[str], delimiter: str, types: Mapping[str, pa.DataType]
) -> Iterator[pa.RecordBatch]:
    stream = _stream(chunks)
    if stream is not None:
        for batch in arrow_csv.open_csv(stream, **csv_options(names, delimiter, types)):
            if batch.num_rows:
                yield batch.select(list(types))


def _json_batches(chunks: Iterator[bytes], layout: RowLayout) -> Iterator[pa.RecordBatch]:
    integers = [name for name, kind in layout.types if pa.types.is_integer(kind)]
    counted, rows = _Chunks(chunks, lambda chunk: sum(1 for line in chunk.split(b"\n") if line.strip())), 0
    stream = _stream(_without_negative_zeros(counted, integers))
    if stream is None:
        return
    options = arrow_json.ParseOptions(explicit_schema=layout.schema, unexpected_field_behavior="ignore")
    reading = arrow_json.ReadOptions(use_threads=False)
    for batch in arrow_json.open_json(stream, read_options=reading, parse_options=options):
        if batch.num_rows:
            rows += batch.num_rows
            yield batch.select([name for name, _ in layout.types])
    if rows != counted.lines:
        raise _LineBreaks


def _without_negative_zeros(chunks: Iterable[bytes], integers: Sequence[str]) -> Iterator[bytes]:
    """The chunks. Raises _BadLine for a column of `integers` with -0, which Arrow reads as 0."""
    for chunk in chunks:
        if b"-0" in chunk and _NEGATIVE_ZERO.search(chunk):
            for line in chunk.split(b"\n"):
                if line.strip() and any(_json_row(line).get(name) == "-0" for name in integers):
                    raise _BadLine(line, "-0 is not written as an integer: write 0")
        yield chunk


def _json_row(line: bytes) -> dict[str, Any]:
    """The object on a line, with the texts of its integers; empty if there is none."""
    try:
        row = json.loads(line, parse_int=str)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def _stream(chunks: Iterable[bytes]) -> LineStream | None:
    """The chunks from the first line that is not empty, as Arrow rejects CSV that starts otherwise; None if none is."""
    own = iter(chunks)
    first = next((chunk for chunk in own if chunk.strip(b"\r\n")), None)
    return None if first is None else LineStream(chain([first], own))


def _with_integers(batch: pa.RecordBatch, layout: RowLayout, integers: Mapping[str, pa.DataType], rows: int) -> Any:
    """The batch, with columns of texts as `integers`. `rows` are before it in the range. Raises _BadValue."""
    for name, kind in integers.items():
        text = batch.column(name)
        if name not in layout.id_columns:  # the value of ` 7` is 7; an id is its text
            text = pc.utf8_trim_whitespace(text)
        position = batch.schema.get_field_index(name)
        try:
            batch = batch.set_column(position, name, pc.cast(_written_as_integers(text), kind))
        except pa.ArrowInvalid:
            at = next(at for at, value in enumerate(text.to_pylist()) if value is not None and not _is(value, kind))
            raise _BadValue(rows + at + 1, name, text[at].as_py()) from None
    return batch


def _written_as_integers(text: pa.Array) -> pa.Array:
    """The array. Raises ArrowInvalid if a value is not written as an integer prints."""
    starts = np.frombuffer(text.buffers()[1], np.int32)[text.offset : text.offset + len(text) + 1]
    codes = np.frombuffer(text.buffers()[2] or b"", np.uint8)
    sizes = np.diff(starts)
    digits = codes[starts[0] : starts[-1]] - np.uint8(ord("0"))
    if (digits <= 9).all() and np.count_nonzero(sizes == 0) == text.null_count:
        if not (codes[starts[:-1][sizes > 1]] == ord("0")).any():
            return text
    elif pc.all(pc.match_substring_regex(text, WRITTEN_INTEGER)).as_py() is not False:
        return text
    raise pa.ArrowInvalid("a value is not written as an integer")


def _is(value: str, kind: pa.DataType) -> bool:
    """Whether a text is an integer of a type, written as it prints."""
    if not re.fullmatch(WRITTEN_INTEGER, value):
        return False
    try:
        return bool(pa.scalar(int(value), kind).is_valid)
    except (pa.ArrowInvalid, OverflowError):
        return False


def _chunks(file: Any, own: TextRange, skipped: Skipped, test: Callable[[bytes], bool]) -> Iterator[tuple[bytes, bool]]:
    """The rows of CSV, in chunks of lines, and whether these pass a test that no comment, NUL or blank does."""
    layout = own.layout
    waiting = layout.header and not own.span[0]
    for chunk in chunks_of_lines(file, compression_of(own.path), *own.span, own.line_end):
        lines = with_single_blanks(chunk) if layout.delimiter == " " else chunk
        passes = not waiting and test(lines)
        if not passes:
            rows = _rows(chunk, own, skipped)
            if layout.delimiter == " ":
                rows = with_single_blanks(rows)
            if layout.strip:
                rows = without_outer_blanks(rows, layout.delimiter)
            if waiting:
                rows, waiting = without_header(rows)
            passes = rows is not chunk and test(rows)
            lines = rows
        if lines:
            yield lines, passes


def _rows(chunk: bytes, own: TextRange, skipped: Skipped) -> bytes:
    """The chunk without comments. Raises _BadLine for a NUL, and for a line that may be a comment or a row."""
    if (nul := chunk.find(b"\0")) >= 0:
        line = chunk[chunk.rfind(b"\n", 0, nul) + 1 :].partition(b"\n")[0]
        raise _BadLine(line, "has a NUL byte, so it is not text: correct it, or write the file again")
    layout, width = own.layout, len(own.names)
    ids_are_text = any(not pa.types.is_integer(kind) for _, kind in layout.types[:2])
    for comment in (layout.comment,) if layout.comment or not layout.comment_is_guessed else COMMENTS:
        lines = comments_in(chunk, comment.encode())
        if layout.comment_is_guessed:
            for line in lines:
                if not layout.comment or (ids_are_text and is_comment_or_row(line, comment, layout.delimiter, width)):
                    raise _BadLine(line, unclear_comment(line.decode(errors="replace"), comment))
        if lines:
            skipped.first = skipped.first or clipped(lines[0].decode(errors="replace"))
            skipped.comments += len(lines)
            chunk = without_comments(chunk, comment.encode())
    return chunk


def _with_single_delimiters(chunk: bytes, layout: RowLayout) -> bytes:
    """The chunk without blanks that are not part of a field."""
    if layout.delimiter == " ":
        chunk = with_single_blanks(chunk)
    return without_outer_blanks(chunk, layout.delimiter) if layout.strip else chunk


def explain_text(file: Any, own: TextRange, error: BaseException) -> InputError | None:
    """The error for the first bad line in a byte range, found by reading line by line; None if no line is bad."""
    if isinstance(error, _BadLine):
        number = next((number for number, line in _numbered(file, own) if line == error.line), 0)
        return InputError(f"{own.path}: line {number:,} {error}")
    if isinstance(error, _BadValue):
        number = next((number for at, (number, _) in enumerate(_lines(file, own), 1) if at == error.row), 0)
        return _other_type(own, number, error.name, error.value)
    if own.layout.format == "jsonl":
        return _bad_json(file, own)
    if isinstance(error, _LineBreaks):
        for number, line in _lines(file, own):
            if _is_unended(line, own.layout.delimiter):
                return InputError(f"{own.path}: line {number:,} has {_LINE_BREAK}")
    return _bad_csv(file, own, error)


def _is_unended(line: bytes, delimiter: str) -> bool:
    """Whether a line ends within quotes."""
    try:
        list(csv.reader([line.decode(errors="replace")], delimiter=delimiter, strict=True))
    except csv.Error as error:
        return "end of data" in str(error)
    return False


def _numbered(file: Any, own: TextRange) -> Iterator[tuple[int, bytes]]:
    """(line number in the file, line) of each line in a range, without line ends."""
    number = 0
    if own.span[0]:
        for chunk in chunks_of_lines(file, None, 0, own.span[0], own.line_end):
            number += chunk.count(b"\n")
    for chunk in chunks_of_lines(file, compression_of(own.path), *own.span, own.line_end):
        for line in chunk.removesuffix(b"\n").split(b"\n"):
            number += 1
            yield number, line.rstrip(b"\r")


def _lines(file: Any, own: TextRange) -> Iterator[tuple[int, bytes]]:
    """(line number in the file, line) of each row in a range."""
    layout = own.layout
    header = layout.header and not own.span[0]
    for number, line in _numbered(file, own):
        if layout.comment and line.startswith(layout.comment.encode()):
            continue
        kept = _with_single_delimiters(line, layout) if line else line
        if header and kept:
            header = False
        elif kept:
            yield number, kept


def _bad_csv(file: Any, own: TextRange, error: BaseException) -> InputError | None:
    text = str(error)
    row = re.search(r"Row #(\d+)", text)
    if row is None:
        return None
    bad_row = int(row[1])
    number, line = next((found for at, found in enumerate(_lines(file, own), 1) if at == bad_row), (None, b""))
    if number is None:
        return None
    column = re.search(r"In CSV column #(\d+)", text)
    if column is not None:
        name = own.names[int(column[1])] if int(column[1]) < len(own.names) else "?"
        value = re.search(r"invalid value '(.*)'", text, re.DOTALL)
        return _other_type(own, number, name, value[1] if value else "?")
    counted = re.search(r"Expected (\d+) columns, got (\d+)", text)
    if counted is None:
        return InputError(f"{own.path}: line {number:,} cannot be read: {error_reason(error)}")
    shown = clipped(line.decode(errors="replace"))
    if _is_unended(line, own.layout.delimiter):
        return InputError(f"{own.path}: line {number:,} has {_LINE_BREAK}")
    advice = attributes_in_braces(own.path, [shown.split(own.layout.delimiter)], own.layout.delimiter)
    return InputError(
        f"{own.path}: line {number:,} has {counted[2]} fields, and the other lines have {counted[1]}: {shown!r}; "
        f"{advice or 'correct it, or convert the file with another program'}"
    )


def _bad_json(file: Any, own: TextRange) -> InputError | None:
    for number, line in _lines(file, own):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            return InputError(f"{own.path}: line {number:,} is not JSON: {error}; write one object on each line")
        if not isinstance(row, dict):
            return InputError(f"{own.path}: line {number:,} is not a JSON object: write one object on each line")
        for name, kind in own.layout.types:
            value = row.get(name)
            if value is None:
                continue
            try:
                right = _fits_json(value, kind)
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                right = False
            if not right:
                return _other_type(own, number, name, json.dumps(value))
    return None


def _fits_json(value: Any, kind: pa.DataType) -> bool:
    if pa.types.is_integer(kind):
        return type(value) is int and pa.scalar(value, kind).is_valid
    if pa.types.is_string(kind):
        return isinstance(value, str)
    if pa.types.is_floating(kind):
        return type(value) in (int, float)
    return pa.types.is_boolean(kind) and isinstance(value, bool)


def _other_type(own: TextRange, number: int, name: str, value: str) -> InputError:
    """The error for a value that is not of the type of its column."""
    layout, kind = own.layout, dict(own.layout.types).get(name)
    is_json = layout.format == "jsonl"
    found = f"{own.path}: line {number:,}: column {name!r} has {clipped(value) if is_json else repr(clipped(value))}"
    if name not in layout.id_columns:
        return OtherType(f"{found}, and its first rows are {kind}: correct the line", name, value)
    if is_json:
        message = f"{found}, and other ids are {kind}: write all ids as integers, or all as text in quotes"
    elif pa.types.is_integer(kind):
        message = (
            f"{found}, which is not how an integer of the type {kind} is written: correct it, or have all ids as text"
        )
    else:
        message = f"{found}, and the ids are {kind}: correct the line"
    return OtherType(message, name, value) if layout.types_are_guessed else InputError(message)
