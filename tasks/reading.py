"""From files to two columns of ids: nulls, damage and values out of range are found here, and named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.held import Held
from . import identity
from .errors import InputError
from .id_types import kept, named
from .identity import Ids
from .inputs.ipc import ipc_batches
from .inputs.opening import DAMAGE, open_version, reason
from .inputs.parquet import open_parquet
from .inputs.pruning import matching_row_groups
from .inputs.text import explain_text, text_batches
from .left_out import NONE, LeftOut
from .sources import Block, Piece, Source, SourceFile

BATCH_ROWS = 65_536
"""Rows of a batch."""

MOST_ID_BYTES = 2**16
"""Length of an id that is a string, at most, in UTF-8."""

TEXT_BATCH_BYTES = 2**24
"""Strings of a batch take about so much."""
MOST_TEXT_ROWS = 8192
"""Rows of a batch of strings, at most: a few long ones may stand in the file once and in every row."""
LEAST_TEXT_ROWS = 64
TEXT_AHEAD_BYTES = 2**28
"""Row groups whose strings take more are fetched by and by."""


@dataclass(frozen=True)
class IdRows(Held):
    """The rows of a block, as they come."""

    source: Ids
    target: Ids

    left_out: LeftOut = NONE
    """Rows that are not among them."""

    def __len__(self) -> int:
        return len(self.source)


def read_rows(source: Source, block: Block) -> IdRows:
    """Read both id columns of a block, those that the condition names, and nothing else. Rows that the condition leaves
    out are counted, and those of the others that have a null id.

    Raises InputError naming file and place for damage, ids that do not fit the type of the input, strings that are
    no UTF-8 or longer than MOST_ID_BYTES.
    """
    none = IdRows(identity.no_ids(source.kind), identity.no_ids(source.kind))
    parts = list(read_parts(source, block)) or [none]
    return IdRows(
        identity.concatenate([part.source for part in parts]),
        identity.concatenate([part.target for part in parts]),
        sum((part.left_out for part in parts), NONE),
    )


def read_parts(source: Source, block: Block) -> Iterator[IdRows]:
    """As `read_rows`, part by part: of strings a few rows at a time, as a row group may decode to far more than it has
    in the file.
    """
    for piece in block.pieces:
        file, wanted = source.files[piece.file], tuple(_matching(source, piece))
        skipped = sum(file.row_groups[group] for group in piece.row_groups if group not in set(wanted))
        if skipped:
            none = identity.no_ids(source.kind)
            yield IdRows(none, none, LeftOut(filtered=skipped))
        if source.kind == "string" and source.is_counted:
            for group in wanted:
                yield from _read_piece(source, Piece(piece.file, (group,)))
        elif wanted:
            yield from _read_piece(source, Piece(piece.file, wanted))


def _read_piece(source: Source, piece: Piece) -> Iterator[IdRows]:
    file, rows = source.files[piece.file], 0
    for table in _tables(source, piece):
        yield _rows(source, piece, table, rows)
        rows += table.num_rows
    if source.is_counted and rows != sum(file.row_groups[group] for group in piece.row_groups):
        raise InputError(_other_rows(file.path))


def read_batches(source: Source, piece: Piece, rows: int | None) -> Iterator[IdRows]:
    """The first `rows` rows of a piece, or all, a few at a time, as `read_rows` has them: memory is bounded whatever
    the size of the row groups. Raises InputError as `read_rows` does.
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
    """The rows of the input, before any are left out; files that do not say how many are read. Raises InputError."""
    if source.is_counted:
        return source.rows
    pieces = (Piece(number, tuple(range(len(file.row_groups)))) for number, file in enumerate(source.files))
    return sum(
        table.num_rows
        for piece in pieces
        if piece.row_groups
        for table in _batches(source, piece, BATCH_ROWS, ahead=False)
    )


def _rows(source: Source, piece: Piece, table: pa.Table, first: int) -> IdRows:
    """What is wanted of a table whose rows begin at row `first` of the piece."""
    wanted = table
    if source.where is not None:
        columns = [_plain(column) for column in table.columns]
        wanted = pa.table(columns, table.column_names).filter(source.where.expression(_constants(source, piece)))
    ends = wanted.select([source.source_column, source.target_column])
    nulls = [ends.column(position).null_count for position in range(2)]
    left_out = LeftOut(filtered=table.num_rows - wanted.num_rows)
    if any(nulls):
        whole = ends.filter(pc.and_(pc.is_valid(ends.column(0)), pc.is_valid(ends.column(1))))
        place = _place_of_null(source, piece, ends, first)
        left_out += LeftOut(ends.num_rows - whole.num_rows, nulls[0], nulls[1], place=place)
        ends = whole
    ids = [_ids(source, piece, ends.column(position), position, first) for position in range(2)]
    return IdRows(ids[0], ids[1], left_out)


def _constants(source: Source, piece: Piece) -> dict[str, object]:
    return dict(source.files[piece.file].constants)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as conditions can compare it."""
    if isinstance(column.type, pa.BaseExtensionType):
        return pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _place_of_null(source: Source, piece: Piece, ends: pa.Table, first: int) -> str:
    path = source.files[piece.file].path
    if not source.is_counted or source.where is not None:
        return path
    is_null = pc.or_(pc.is_null(ends.column(0)), pc.is_null(ends.column(1)))
    return f"{path}: {_row_group_of(source, piece, first + pc.index(is_null, True).as_py())}"


def _columns(source: Source) -> list[str]:
    """What is read of each file."""
    others = source.where.columns if source.where is not None else ()
    return list(dict.fromkeys([source.source_column, source.target_column, *others]))


def _tables(source: Source, piece: Piece) -> Iterator[pa.Table]:
    if source.is_counted and source.kind == "integer":
        return iter([_read_whole(source, piece)])
    ahead = source.is_counted and _text_bytes(source, piece) <= TEXT_AHEAD_BYTES
    return _batches(source, piece, _batch_rows(source, piece), ahead)


def _text_bytes(source: Source, piece: Piece) -> int:
    return source.id_bytes(piece) if source.kind == "string" else 0


def _batch_rows(source: Source, piece: Piece) -> int:
    """Rows of a batch of about TEXT_BATCH_BYTES, if each string is stored as often as it occurs."""
    if source.kind == "integer":
        return BATCH_ROWS
    rows = sum(source.files[piece.file].row_groups[group] for group in piece.row_groups)
    return min(MOST_TEXT_ROWS, max(LEAST_TEXT_ROWS, TEXT_BATCH_BYTES * rows // max(1, source.id_bytes(piece))))


def _batches(source: Source, piece: Piece, rows: int, ahead: bool) -> Iterator[pa.Table]:
    """The columns of a piece, so many rows at a time if it is Parquet; `ahead` fetches all of its bytes at once."""
    file, columns = source.files[piece.file], _columns(source)
    if not source.is_counted:
        yield from _unfooted(source, file, piece)
        return
    try:
        with open_parquet(file.path, file.version, source.storage_options, pre_buffer=ahead) as opened:
            for batch in opened.iter_batches(rows, list(piece.row_groups), columns):
                yield pa.Table.from_batches([batch]).select(columns)
    except DAMAGE as error:
        raise _unreadable(source, piece, error) from error


def _unfooted(source: Source, file: SourceFile, piece: Piece) -> Iterator[pa.Table]:
    """The batches of text or of Arrow IPC."""
    layout = source.layout
    assert layout is not None  # only Parquet has none
    span = file.spans[piece.row_groups[0]][0], file.spans[piece.row_groups[-1]][1]
    try:
        with open_version(file.path, file.version, source.storage_options) as opened:
            if layout.format == "arrow":
                found = ipc_batches(opened, _columns(source), span)
            else:
                found = text_batches(opened, file.path, layout, file.names, span)
            for batch in found:
                yield pa.Table.from_batches([batch])
    except DAMAGE as error:
        explained = None
        if layout.format != "arrow":
            with open_version(file.path, file.version, source.storage_options) as opened:
                explained = explain_text(opened, file.path, layout, file.names, span, error)
        raise explained or InputError(
            f"{file.path} cannot be read: {reason(error)}; the file is damaged or changed during the run: "
            "write it again"
        ) from error


def _matching(source: Source, piece: Piece) -> Sequence[int]:
    """The row groups of a piece that can have rows that are wanted."""
    if source.where is None or not source.is_counted:
        return piece.row_groups
    file = source.files[piece.file]
    wanted = source.where.expression(_constants(source, piece))
    types = {name: kind for name, kind in source.where.types if name in source.where.columns}
    try:
        return matching_row_groups(file.path, file.version, source.storage_options, piece.row_groups, types, wanted)
    except DAMAGE as error:
        raise _unreadable(source, piece, error) from error


def _read_whole(source: Source, piece: Piece) -> pa.Table:
    file, columns = source.files[piece.file], _columns(source)
    try:
        with open_parquet(file.path, file.version, source.storage_options) as opened:
            return opened.read_row_groups(list(piece.row_groups), columns=columns).select(columns)
    except DAMAGE as error:
        raise _unreadable(source, piece, error) from error


def _unreadable(source: Source, piece: Piece, error: BaseException) -> InputError:
    return InputError(
        f"{source.files[piece.file].path}: {_damaged(source, piece)} cannot be read: {reason(error)}; "
        "the file is damaged or changed during the run: write it again"
    )


def _other_rows(path: str) -> str:
    return f"{path} has other rows than its footer said: it changed during the run, or is damaged; write it again"


def _damaged(source: Source, piece: Piece) -> str:
    """The first row group of a piece that cannot be read on its own."""
    file = source.files[piece.file]
    for group in piece.row_groups:
        try:
            with open_parquet(file.path, file.version, source.storage_options) as opened:
                opened.read_row_groups([group], columns=_columns(source))
        except DAMAGE:
            return f"row group {group}"
    return "row groups " + ", ".join(map(str, piece.row_groups))


def _ids(source: Source, piece: Piece, column: pa.ChunkedArray, position: int, first: int) -> Ids:
    """A column of ids whose rows begin at row `first` of the piece."""
    name = (source.source_column, source.target_column)[position]
    if source.prefixes is not None:
        return _text(source, piece, named(column, source.prefixes[position]), name, first)
    if pa.types.is_string(source.id_type) or pa.types.is_large_string(source.id_type):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return _text(source, piece, column.cast(pa.large_string()), name, first)
    if pa.types.is_uint64(column.type) and not pa.types.is_uint64(source.id_type):
        too_large = pc.greater(column, pa.scalar(2**63 - 1, pa.uint64()))
        if pc.any(too_large).as_py():
            row = pc.index(too_large, True).as_py()
            raise InputError(
                f"{source.files[piece.file].path}: {_place(source, piece, row)}column {name!r} has the id "
                f"{column[row]}, above 2^63-1, and others of the input are of signed types: cast all to uint64, or use "
                "strings"
            )
    return kept(column, source.id_type)


def _text(source: Source, piece: Piece, column: pa.ChunkedArray, name: str, first: int) -> pa.LargeStringArray:
    """As one array, checked: Parquet's readers take any bytes for text, of any length."""
    text = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    path = source.files[piece.file].path
    try:
        text.validate(full=True)
    except pa.ArrowInvalid as error:
        where = f"row groups {', '.join(map(str, piece.row_groups))}: " if source.is_counted else ""
        raise InputError(
            f"{path}: {where}ids are not UTF-8 text: {reason(error)}; "
            "the file is damaged, or holds bytes and calls them text: write it again"
        ) from error
    length = pc.max(pc.binary_length(text)).as_py() or 0
    if length > MOST_ID_BYTES:
        row = first + pc.index(pc.binary_length(text), length).as_py()
        raise InputError(
            f"{path}: {_place(source, piece, row)}column {name!r} has an id of "
            f"{length:,} bytes, over the {MOST_ID_BYTES:,} allowed, near row {row:,} there: use shorter "
            "ids, such as hashes of these"
        )
    return text


def _place(source: Source, piece: Piece, row: int) -> str:
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
