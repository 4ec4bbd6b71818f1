"""Read two columns of ids, and weights, from files. Nulls, damage and values out of range are detected here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...kernels.runtime.sizes import SizedArrays
from ..errors import InputError
from ..ids import identity
from ..ids.display import type_name
from ..ids.id_types import to_internal, with_prefix
from ..ids.identity import Ids
from ..inputs.columns import plain_values, storage_values
from ..inputs.formats.input_format import TypedFormat, format_called, is_text
from ..inputs.formats.matrix_market import explain_matrix, matrix_batches
from ..inputs.formats.parquet import encrypted, open_parquet
from ..inputs.formats.statistics import matching_row_groups
from ..inputs.formats.text import Skipped, TextRange, explain_text, text_batches
from ..inputs.opening import READ_ERRORS, error_reason, open_version
from ..inputs.sources import InputBlock, Piece, Source, SourceFile
from .left_out import NONE, LeftOut
from .weights import Weight, first_unusable, unusable_weight, weights_of

_ROW = "\0row"
"""Name of a column of row numbers. No file has a column of this name."""

BATCH_ROWS = 65_536
"""Rows of a batch."""

MAX_ID_BYTES = 2**16
"""The most bytes of a string id in UTF-8."""

TEXT_BATCH_ROWS = 2**18
"""The most rows of a batch of strings."""
TEXT_BATCH_BYTES = 2**24
"""Target size of the strings of a batch."""
MAX_TEXT_ROWS = 8192
"""The most rows of a batch of strings of unknown length. With dictionary encoding, a long string can repeat in every
row.
"""
MIN_TEXT_ROWS = 64
"""The fewest rows of a batch of strings, except for the last batch."""
TEXT_AHEAD_BYTES = 2**28
"""Row groups with more bytes of strings are fetched in parts instead of at once."""


@dataclass(frozen=True)
class IdRows(SizedArrays):
    """Rows of a block in the order of the file, as internal ids. `len()` is the number of rows."""

    source: Ids
    target: Ids

    left_out: LeftOut = NONE
    """Rows that were read and left out."""

    weight: Weight | None = None
    """[rows] None if edges have no weights."""

    def __len__(self) -> int:
        return len(self.source)


def read_rows(source: Source, block: InputBlock) -> IdRows:
    """Read the two id columns of a block, weights, and the columns of the condition.

    Rows that do not meet the condition, and other rows with a null id, are counted and left out. Raises InputError with
    file and location for damage, ids that do not fit the input's id type, strings that are not UTF-8 or longer than
    MAX_ID_BYTES, and weights that cannot be used.
    """
    parts = list(read_parts(source, block)) or [_no_rows(source, NONE)]
    return IdRows(
        identity.concatenate([part.source for part in parts]),
        identity.concatenate([part.target for part in parts]),
        sum((part.left_out for part in parts), NONE),
        joined_weights(parts),
    )


def joined_weights(parts: Sequence[IdRows]) -> Weight | None:
    """[rows] the weights of all parts, in order; None if they have none."""
    found = [part.weight for part in parts if part.weight is not None]
    return np.concatenate(found) if found else None


def _no_rows(source: Source, left_out: LeftOut) -> IdRows:
    none = identity.no_ids(source.kind)
    return IdRows(none, none, left_out, None if source.weights is None else np.zeros(0))


def read_parts(source: Source, block: InputBlock) -> Iterator[IdRows]:
    """As `read_rows`, in parts. Strings come a few rows at a time: they can take far more memory than in the file."""
    for piece in block.pieces:
        file, groups = source.files[piece.file], tuple(_matching(source, piece))
        skipped = sum(file.row_groups[group] for group in piece.row_groups if group not in set(groups))
        if skipped:
            yield _no_rows(source, LeftOut(filtered=skipped))
        if source.kind == "string" and source.is_counted:
            for group in groups:
                yield from _read_piece(source, Piece(piece.file, (group,)))
        elif groups:
            yield from _read_piece(source, Piece(piece.file, groups))


def _read_piece(source: Source, piece: Piece) -> Iterator[IdRows]:
    file, rows, skipped = source.files[piece.file], 0, Skipped()
    for table in _tables(source, piece, skipped):
        yield _rows(source, piece, table, rows)
        rows += table.num_rows
    if skipped.comments:
        yield _no_rows(source, LeftOut(comments=skipped.comments, comment=f"{skipped.first!r} in {file.path}"))
    if source.is_counted and rows != sum(file.row_groups[group] for group in piece.row_groups):
        raise InputError(_other_rows(file.path))


def read_batches(source: Source, piece: Piece, rows: int | None) -> Iterator[IdRows]:
    """The first `rows` rows of a piece, or all rows, in batches. Memory does not depend on the size of row groups.

    Raises InputError as `read_rows` does.
    """
    read = 0
    most = _batch_rows(source, piece)
    for table in _batches(source, piece, most if rows is None else min(rows, most), ahead=False):
        part = table if rows is None else table.slice(0, rows - read)
        yield _rows(source, piece, part, read)
        read += part.num_rows
        if rows is not None and read >= rows:
            return
    if rows is not None and source.is_counted:
        raise InputError(_other_rows(source.files[piece.file].path))


def count_rows(source: Source) -> int:
    """The number of rows of the input, left-out rows included. Reads files that do not store it. Raises InputError."""
    if source.is_counted:
        return source.rows
    if is_text(source.format) and source.format != "jsonl":
        source = source.with_ids(pa.string())  # counting needs no integers
    pieces = (Piece(number, tuple(range(len(file.row_groups)))) for number, file in enumerate(source.files))
    return sum(
        table.num_rows
        for piece in pieces
        if piece.row_groups
        for table in _batches(source, piece, BATCH_ROWS, ahead=False)
    )


def _rows(source: Source, piece: Piece, table: pa.Table, first: int) -> IdRows:
    """The ids and weights of a table whose rows begin at row `first` of the piece."""
    if not table.num_rows:  # a file without rows may have other types
        return _no_rows(source, NONE)
    table = _plain_table(table)
    matching = _matching_rows(source, piece, table)
    ends = matching.select(_read_columns(source))
    nulls = [ends.column(position).null_count for position in range(2)]
    left_out = LeftOut(filtered=table.num_rows - matching.num_rows)
    if any(nulls):
        whole = _with_ends(ends)
        location = _location_of_null(source, piece, ends, first)
        left_out += LeftOut(ends.num_rows - whole.num_rows, nulls[0], nulls[1], location=location)
        ends = whole
    ids = [_ids(source, piece, ends.column(position), position, first) for position in range(2)]
    if is_text(source.format) and source.kind == "string":
        left_out += _padded(source, piece, [ends.column(position) for position in range(2)])
    weight = None
    if source.weights is not None:
        weight = weights_of(ends.column(2))
        wrong = first_unusable(weight, ends.column(2), source.weights.nonnegative)
        if wrong is not None:
            raise _unusable_weight(source, piece, table, first, *wrong)
    return IdRows(ids[0], ids[1], left_out, weight)


def _plain_table(table: pa.Table) -> pa.Table:
    """The table without dictionaries, runs and views, whose nulls Arrow does not count."""
    columns = [plain_values(column) for column in table.columns]
    return pa.table(columns, table.column_names)


def _matching_rows(source: Source, piece: Piece, table: pa.Table) -> pa.Table:
    """The rows that meet the condition."""
    if source.where is None:
        return table
    columns = [storage_values(column) for column in table.columns]  # conditions cannot compare extension types
    return pa.table(columns, table.column_names).filter(source.where.expression(_constants(source, piece)))


def _with_ends(ends: pa.Table) -> pa.Table:
    """The rows of a table without nulls in its first two columns."""
    return ends.filter(pc.and_(pc.is_valid(ends.column(0)), pc.is_valid(ends.column(1))))


def _padded(source: Source, piece: Piece, columns: Sequence[pa.ChunkedArray]) -> LeftOut:
    """The count of ids that begin or end with a blank, and the first of them."""
    found = LeftOut()
    for text in (chunk for column in columns if pa.types.is_string(column.type) for chunk in column.chunks):
        bounds = np.frombuffer(text.buffers()[1], np.int32)[text.offset : text.offset + len(text) + 1]
        codes = np.frombuffer(text.buffers()[2] or b"", np.uint8)
        filled = np.flatnonzero(bounds[1:] > bounds[:-1])
        ends = codes[bounds[:-1][filled]], codes[bounds[1:][filled] - 1]
        may = filled[(ends[0] <= ord(" ")) | (ends[0] > 127) | (ends[1] <= ord(" ")) | (ends[1] > 127)]
        if len(may):
            own = text.take(pa.array(may))
            padded = own.filter(pc.not_equal(own, pc.utf8_trim_whitespace(own)))
            if len(padded):
                found += LeftOut(padded=len(padded), pad=f"{padded[0].as_py()!r} in {source.files[piece.file].path}")
    return found


def _unusable_weight(
    source: Source, piece: Piece, table: pa.Table, first: int, position: int, value: str
) -> InputError:
    """The error for the weight of a row, which has this `position` among the rows of `table` that are kept."""
    assert source.weights is not None
    numbered = _matching_rows(source, piece, table.append_column(_ROW, pa.array(np.arange(table.num_rows))))
    kept = _with_ends(numbered.select([*_read_columns(source)[:2], _ROW]))
    row = first + kept.column(_ROW)[position].as_py()
    file, earlier = source.files[piece.file], Piece(piece.file, tuple(range(piece.row_groups[0])))
    if source.is_counted:
        group, start, _ = next(found for found in _groups(source, piece) if row < found[1] + found[2])
        row += sum(file.row_groups[:group]) - start
    elif earlier.row_groups:
        row += sum(part.num_rows for part in _text_or_table(source, file, earlier, Skipped()))
    ends = [kept.column(end)[position].as_py() for end in range(2)]
    return InputError(unusable_weight(file.path, row, value, ends, source.weights))


def _constants(source: Source, piece: Piece) -> dict[str, object]:
    return dict(source.files[piece.file].constants)


def _location_of_null(source: Source, piece: Piece, ends: pa.Table, first: int) -> str:
    path = source.files[piece.file].path
    if not source.is_counted or source.where is not None:
        return path
    is_null = pc.or_(pc.is_null(ends.column(0)), pc.is_null(ends.column(1)))
    return f"{path}: {_row_group_of(source, piece, first + pc.index(is_null, True).as_py())}"


def _read_columns(source: Source) -> list[str]:
    """The columns of ids, and the column of weights."""
    return [source.source_column, source.target_column, *([] if source.weights is None else [source.weights.column])]


def _columns(source: Source) -> list[str]:
    """The columns to read from each file."""
    others = source.where.columns if source.where is not None else ()
    return list(dict.fromkeys([*_read_columns(source), *others]))


def _tables(source: Source, piece: Piece, skipped: Skipped) -> Iterator[pa.Table]:
    if source.is_counted and source.kind == "integer":
        return iter([_read_whole(source, piece)])
    ahead = source.is_counted and _text_bytes(source, piece) <= TEXT_AHEAD_BYTES
    return _batches(source, piece, _batch_rows(source, piece), ahead, skipped)


def _text_bytes(source: Source, piece: Piece) -> int:
    return source.id_bytes(piece) if source.kind == "string" else 0


def _batch_rows(source: Source, piece: Piece) -> int:
    """Rows of a batch of about TEXT_BATCH_BYTES. Unless the footers tell the bytes of all strings, it is assumed that
    none is dictionary-encoded.
    """
    if source.kind == "integer":
        return BATCH_ROWS
    if source.most_id_bytes is not None:
        return min(TEXT_BATCH_ROWS, max(MIN_TEXT_ROWS, int(TEXT_BATCH_BYTES / max(1, 2 * source.most_id_bytes))))
    rows = sum(source.files[piece.file].row_groups[group] for group in piece.row_groups)
    return min(MAX_TEXT_ROWS, max(MIN_TEXT_ROWS, TEXT_BATCH_BYTES * rows // max(1, source.id_bytes(piece))))


def _batches(
    source: Source, piece: Piece, rows: int, ahead: bool, skipped: Skipped | None = None
) -> Iterator[pa.Table]:
    """The columns of a piece in batches, of `rows` rows if it is Parquet. `ahead` fetches all bytes of the piece at
    once. Comments are counted in `skipped`.
    """
    file, columns = source.files[piece.file], _columns(source)
    if not source.is_counted:
        yield from _text_or_table(source, file, piece, Skipped() if skipped is None else skipped)
        return
    try:
        with open_parquet(file.path, file.version, source.storage_options, pre_buffer=ahead) as opened:
            for batch in opened.iter_batches(rows, list(piece.row_groups), columns):
                yield pa.Table.from_batches([batch]).select(columns)
    except READ_ERRORS as error:
        raise _unreadable(source, piece, error) from error


def _text_or_table(source: Source, file: SourceFile, piece: Piece, skipped: Skipped) -> Iterator[pa.Table]:
    """The batches of a file of another format than Parquet. Comments are counted in `skipped`."""
    layout = source.layout
    assert layout is not None  # only Parquet has no layout
    format = format_called(layout.format)
    span = file.spans[piece.row_groups[0]][0], file.spans[piece.row_groups[-1]][1]
    own = TextRange(file.path, layout, file.names, span, file.line_end)
    try:
        with open_version(file.path, file.version, source.storage_options) as opened:
            if isinstance(format, TypedFormat):
                found = format.batches(opened, _columns(source), span)
            elif file.matrix is not None:
                found = matrix_batches(opened, file.path, file.matrix, _columns(source), span)
            else:
                found = text_batches(opened, own, skipped)
            for batch in found:
                yield pa.Table.from_batches([batch])
    except READ_ERRORS as error:
        explained = None
        if not isinstance(format, TypedFormat):
            with open_version(file.path, file.version, source.storage_options) as opened:
                if file.matrix is not None:
                    explained = explain_matrix(opened, file.path, file.matrix, span)
                else:
                    explained = explain_text(opened, own, error)
        raise explained or InputError(
            f"{file.path} cannot be read: {error_reason(error)}; the file is damaged or changed during the run: "
            "write it again"
        ) from error


def _matching(source: Source, piece: Piece) -> Sequence[int]:
    """The row groups of a piece whose statistics allow rows that meet the condition."""
    if source.where is None or not source.is_counted:
        return piece.row_groups
    file = source.files[piece.file]
    condition = source.where.expression(_constants(source, piece))
    types = {name: kind for name, kind in source.where.types if name in source.where.columns}
    try:
        return matching_row_groups(file.path, file.version, source.storage_options, piece.row_groups, types, condition)
    except READ_ERRORS as error:
        raise _unreadable(source, piece, error) from error


def _read_whole(source: Source, piece: Piece) -> pa.Table:
    file, columns = source.files[piece.file], _columns(source)
    try:
        with open_parquet(file.path, file.version, source.storage_options) as opened:
            return opened.read_row_groups(list(piece.row_groups), columns=columns).select(columns)
    except READ_ERRORS as error:
        raise _unreadable(source, piece, error) from error


def _unreadable(source: Source, piece: Piece, error: BaseException) -> InputError:
    return encrypted(source.files[piece.file].path, error) or InputError(
        f"{source.files[piece.file].path}: {_damaged_group(source, piece)} cannot be read: {error_reason(error)}; "
        "the file is damaged or changed during the run: write it again"
    )


def _other_rows(path: str) -> str:
    return f"{path} has other rows than its footer said: it changed during the run, or is damaged; write it again"


def _damaged_group(source: Source, piece: Piece) -> str:
    """The first row group of a piece that cannot be read by itself, for a message."""
    file = source.files[piece.file]
    for group in piece.row_groups:
        try:
            with open_parquet(file.path, file.version, source.storage_options) as opened:
                opened.read_row_groups([group], columns=_columns(source))
        except READ_ERRORS:
            return f"row group {group}"
    return "row groups " + ", ".join(map(str, piece.row_groups))


def _ids(source: Source, piece: Piece, column: pa.ChunkedArray, position: int, first: int) -> Ids:
    """The internal ids of a column whose rows begin at row `first` of the piece."""
    name = (source.source_column, source.target_column)[position]
    if source.prefixes is not None:
        return _text(source, piece, with_prefix(column, source.prefixes[position]), name, first)
    if pa.types.is_string(source.id_type) or pa.types.is_large_string(source.id_type):
        return _text(source, piece, column.cast(pa.large_string()), name, first)
    if pa.types.is_integer(source.id_type):
        _refuse_outside(source, piece, column, name, first)
    return to_internal(column, source.id_type)


def _refuse_outside(source: Source, piece: Piece, column: pa.ChunkedArray, name: str, first: int) -> None:
    """Raises InputError for a number that is no value of the input's type of ids."""
    least, most = _bounds(source.id_type)
    if pa.types.is_integer(column.type):
        own = _bounds(column.type)
        if least <= own[0] and own[1] <= most:
            return
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.decimal256(76, 0))  # Arrow compares decimals of all widths as this type
    else:
        return  # only nulls
    found = pc.min_max(column).as_py()
    for value in (found["min"], found["max"]):
        if value is not None and not least <= value <= most:
            row = pc.index(column, pa.scalar(value, column.type)).as_py()
            kind = type_name(source.id_type)
            raise InputError(
                f"{source.files[piece.file].path}: {_location(source, piece, first + row)}column {name!r} has the id "
                f"{int(value)}, and the ids of this input are {kind}, {least} to {most}: cast all to one type that "
                "holds them, such as uint64, or to text"
            )


def _bounds(kind: pa.DataType) -> tuple[int, int]:
    """The smallest and the largest integer of a type."""
    if pa.types.is_signed_integer(kind):
        return -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1
    return 0, 2**kind.bit_width - 1


def _text(source: Source, piece: Piece, column: pa.ChunkedArray, name: str, first: int) -> pa.LargeStringArray:
    """The column as one array, checked for UTF-8 and length, which Parquet readers do not check."""
    text = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
    path = source.files[piece.file].path
    try:
        text.validate(full=True)
    except pa.ArrowInvalid as error:
        where = f"row groups {', '.join(map(str, piece.row_groups))}: " if source.is_counted else ""
        raise InputError(
            f"{path}: {where}ids are not UTF-8 text: {error_reason(error)}; "
            "the file is damaged, or holds bytes and calls them text: write it again"
        ) from error
    length = pc.max(pc.binary_length(text)).as_py() or 0
    if length > MAX_ID_BYTES:
        row = first + pc.index(pc.binary_length(text), length).as_py()
        raise InputError(
            f"{path}: {_location(source, piece, row)}column {name!r} has an id of "
            f"{length:,} bytes, over the {MAX_ID_BYTES:,} allowed, near row {row:,} there: use shorter "
            "ids, such as hashes of these"
        )
    return text


def _location(source: Source, piece: Piece, row: int) -> str:
    return f"{_row_group_of(source, piece, row)}: " if source.is_counted else ""


def _groups(source: Source, piece: Piece) -> Iterator[tuple[int, int, int]]:
    """(row group, first row in the piece, rows) of each row group."""
    first = 0
    for group in piece.row_groups:
        rows = source.files[piece.file].row_groups[group]
        yield group, first, rows
        first += rows


def _row_group_of(source: Source, piece: Piece, row: int) -> str:
    return next(
        (f"row group {group}" for group, first, rows in _groups(source, piece) if row < first + rows), "its end"
    )
