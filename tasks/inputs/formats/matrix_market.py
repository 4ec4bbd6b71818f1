"""Reading Matrix Market files: the entries of a sparse matrix, whose rows and columns are vertices, as edges.

The first line names the kind of matrix, the first line that is no comment has the numbers of rows, columns and entries,
and each further line is an entry: row, column and, unless the matrix is a pattern, value. A byte range of the entries
is read alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from ...errors import InputError, clipped
from .form import Form
from .input_format import compression_of
from .lines import BYTE_ORDER_MARK, LineStream, chunks_of_lines, decompressed
from .unread import why_content_not_read

MATRIX_MARKET = b"%%matrixmarket"
"""The first bytes of a file, in lower case."""
HEAD_BYTES = 2**20
"""Bytes of a file, uncompressed, in which its entries begin."""

_ENDS = ("src", "dst")
_VALUE = "value"
_FIELDS = {"pattern", "real", "double", "integer", "unsigned-integer"}
"""Kinds of values that are read. `double` and `unsigned-integer` are extensions that some programs write."""
_SYMMETRIES = {"general", "symmetric"}
_MOST = 2**63 - 1
_MIN_ENTRY_BYTES = 4
"""Bytes of the shortest entry, with the end of its line."""


@dataclass(frozen=True)
class Matrix:
    """What the first lines of a Matrix Market file say."""

    rows: int
    columns: int

    entries: int
    """Lines with entries that the file must have."""

    has_values: bool

    is_symmetric: bool
    """Whether an entry stands for its mirror image, too."""

    start: int
    """Offset of the first entry, in bytes of the uncompressed file."""

    first_line: int
    """Number of the first line after the sizes, from 1."""

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Column → type."""
        return dict.fromkeys(_ENDS, pa.int64()) | ({_VALUE: pa.float64()} if self.has_values else {})


def read_matrix_head(file: Any, path: str, size: int) -> Matrix:
    """Read the first lines of an open file of `size` bytes.

    Raises InputError if it is no Matrix Market file, or of a kind that is not read, and READ_ERRORS for damaged
    compression.
    """
    compression = compression_of(path)
    head = decompressed(file, compression).read(HEAD_BYTES)
    whole = len(head) < HEAD_BYTES
    mark = len(BYTE_ORDER_MARK) if head.startswith(BYTE_ORDER_MARK) else 0
    if head[mark : mark + len(MATRIX_MARKET)].lower() != MATRIX_MARKET:
        raise InputError(
            why_content_not_read(path, head, whole)
            or f"{path} is no Matrix Market file: its first line is not like "
            "%%MatrixMarket matrix coordinate real general; add that line, or name another --input-format"
        )
    at, lines = _line_end(path, head, mark, whole), 1
    field, symmetry = _kind(path, head[mark:at].strip())
    line = b""
    while not line or line.startswith(b"%"):
        start, at, lines = at, _line_end(path, head, at, whole), lines + 1
        line = head[start:at].strip()
    rows, columns, entries = _sizes(path, line, lines)
    matrix = Matrix(rows, columns, entries, field != "pattern", symmetry == "symmetric", at, lines + 1)
    if whole:
        there = sum(1 for line in head[at:].split(b"\n") if line.strip())
        refuse_other_entries(path, matrix, there)
    elif compression is None and entries > (size - at) // _MIN_ENTRY_BYTES + 1:
        raise InputError(
            f"{path} says that it has {entries:,} entries, and its {size:,} bytes have room for fewer: it was cut "
            "short; write it again"
        )
    return matrix


def _line_end(path: str, head: bytes, start: int, whole: bool) -> int:
    """The end of the line that begins at `start`. Raises InputError if it is not within the head."""
    end = head.find(b"\n", start) + 1
    if not end and (not whole or start >= len(head)):
        raise InputError(f"{path} has no line with the numbers of rows, columns and entries: write it again")
    return end or len(head)


def _sizes(path: str, line: bytes, number: int) -> tuple[int, int, int]:
    """The numbers of rows, columns and entries, which the line with this `number` has. Raises InputError."""
    words = line.split()
    sizes = [int(word) for word in words if word.isdigit() and len(word) < 20]
    if len(sizes) != 3 or len(words) != 3 or max(sizes) > _MOST:
        raise InputError(
            f"{path}: line {number:,} has {_shown(line)}, but the numbers of rows, columns and entries stand there "
            "in a Matrix Market file: correct it"
        )
    rows, columns, entries = sizes
    return rows, columns, entries


def _kind(path: str, line: bytes) -> tuple[str, str]:
    """The field and the symmetry that the first line names. Raises InputError for those that are not read."""
    words = line.decode(errors="replace").lower().split()
    if len(words) != 5 or words[1] != "matrix" or words[2] not in ("coordinate", "array"):
        raise InputError(
            f"{path}: its first line is {_shown(line)}, but a matrix of edges begins like "
            "%%MatrixMarket matrix coordinate real general: correct it"
        )
    _, _, layout, field, symmetry = words
    read = f"scipy.io.mmread({path!r})"
    if layout == "array":
        code = f"scipy.io.mmwrite('edges.mtx', scipy.sparse.coo_array({read}), symmetry='general')"
        raise InputError(f"{path} is an array, a matrix with all its zeros: write its other entries with SciPy: {code}")
    if field not in _FIELDS or symmetry not in _SYMMETRIES:
        code = f"scipy.io.mmwrite('edges.mtx', {read}, field='pattern', symmetry='general')"
        raise InputError(
            f"{path} is {field} and {symmetry}, but edgemill reads matrices that are pattern, integer or real, and "
            f"general or symmetric: write its entries without values with SciPy: {code}"
        )
    return field, symmetry


def refuse_matrix(path: str, matrix: Matrix, form: Form) -> None:
    """Raises InputError for a matrix that is no graph as the settings say."""
    if matrix.rows != matrix.columns and form.bipartite is None:
        raise InputError(
            f"{path} has {matrix.rows:,} rows and {matrix.columns:,} columns, so these are two sets of ids, and row 1 "
            "is not column 1: keep them apart with --bipartite prefix"
        )
    if matrix.is_symmetric and form.directed:
        raise InputError(
            f"{path} is symmetric, so each entry is an edge in both directions, and --directed would read one of them: "
            "leave it out, or write all entries with SciPy: "
            f"scipy.io.mmwrite('edges.mtx', scipy.io.mmread({path!r}), symmetry='general')"
        )


def refuse_other_entries(path: str, matrix: Matrix, there: int) -> None:
    """Raises InputError unless a file has as many entries as its first lines say."""
    if there != matrix.entries:
        raise InputError(
            f"{path} has {there:,} entries, and line {matrix.first_line - 1:,} says {matrix.entries:,}: it was cut "
            "short, or lines were added; write it again"
        )


def matrix_batches(
    file: Any, path: str, matrix: Matrix, columns: Sequence[str], span: tuple[int, int | None]
) -> Iterator[pa.RecordBatch]:
    """Columns of the entries in the byte range `span` of an open file.

    Raises READ_ERRORS; `explain_matrix` then finds the line.
    """
    chunks = map(_separated, _chunks(file, path, matrix, span))
    first = next((chunk for chunk in chunks if chunk.strip()), None)
    if first is None:
        return
    types = matrix.types
    reader = arrow_csv.open_csv(
        LineStream(chain((first.lstrip(),), chunks)),
        read_options=arrow_csv.ReadOptions(column_names=list(types), use_threads=False),
        parse_options=arrow_csv.ParseOptions(delimiter=" ", quote_char=False),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types, include_columns=list(columns), null_values=[], strings_can_be_null=False
        ),
    )
    for batch in reader:
        for end, most in zip(_ENDS, (matrix.rows, matrix.columns), strict=True):
            bounds = pc.min_max(batch.column(end)).as_py() if batch.num_rows else {"min": 1, "max": most}
            if bounds["min"] < 1 or bounds["max"] > most:
                raise ValueError(f"{end} is not within 1 to {most}")
        yield batch


def _chunks(file: Any, path: str, matrix: Matrix, span: tuple[int, int | None]) -> Iterator[bytes]:
    """The lines with entries in a byte range. A compressed file has one range, from its beginning."""
    skipped = matrix.first_line - 1 if not span[0] else 0
    for chunk in chunks_of_lines(file, compression_of(path), *span):
        while skipped and chunk:
            chunk, skipped = chunk[(chunk.find(b"\n") + 1) or len(chunk) :], skipped - 1
        yield chunk


def _separated(chunk: bytes) -> bytes:
    """Whole lines with one blank between fields and none around them. Raises ValueError for hexadecimal numbers."""
    if b"x" in chunk or b"X" in chunk:
        raise ValueError("it has a number with an x")
    chunk = chunk.replace(b"\t", b" ")
    is_blank = np.frombuffer(chunk, np.uint8) <= ord(" ")
    if is_blank[:1].any() or (is_blank[1:] & is_blank[:-1]).any():
        chunk = (
            re.sub(rb" +", b" ", chunk)
            .replace(b"\n ", b"\n")
            .replace(b" \n", b"\n")
            .replace(b" \r", b"\r")
            .lstrip(b" ")
        )
    return chunk.rstrip(b" ")


def explain_matrix(file: Any, path: str, matrix: Matrix, span: tuple[int, int | None]) -> InputError | None:
    """The error for the first bad line in a byte range, found by reading line by line; None if no line is bad."""
    number = matrix.first_line - 1
    if span[0] > matrix.start:
        number = sum(chunk.count(b"\n") for chunk in chunks_of_lines(file, None, 0, span[0]))
    for chunk in _chunks(file, path, matrix, span):
        for line in chunk.splitlines():
            number += 1
            why = _why_no_entry(line, matrix) if line.strip() else None
            if why is not None:
                return InputError(f"{path}: line {number:,} has {_shown(line.strip())}: {why}; correct it")
    return None


def _why_no_entry(line: bytes, matrix: Matrix) -> str | None:
    fields = line.split()
    if len(fields) != len(matrix.types):
        return f"an entry has {len(matrix.types)} numbers: {', '.join(matrix.types)}"
    for end, field, most in zip(("row", "column"), fields, (matrix.rows, matrix.columns), strict=False):
        if not field.isdigit() or len(field) > 19 or not 1 <= int(field) <= most:
            return f"the number of a {end} is from 1 to {most:,}, as line {matrix.first_line - 1:,} says"
    try:
        for value in fields[2:]:
            pa.scalar(value.decode()).cast(pa.float64())
    except (pa.ArrowException, ValueError):
        return "its value is no number"
    return None


def _shown(line: bytes) -> str:
    return repr(clipped(line.decode(errors="replace")))
