"""From row groups to two columns of ids: nulls, damage and values out of range are found here, and named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..kernels.held import Held
from . import identity
from .errors import InputError
from .identity import Ids
from .sources import DAMAGE, Block, Piece, Source, open_file, reason

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

Nulls: TypeAlias = Literal["refuse", "drop"]
"""What to do with rows that have a null id."""


@dataclass(frozen=True)
class IdRows(Held):
    """The rows of a block, as they come."""

    source: Ids
    target: Ids

    nulls: int
    """Rows left out because an id is null."""

    def __len__(self) -> int:
        return len(self.source)


def read_rows(source: Source, block: Block, nulls: Nulls = "refuse") -> IdRows:
    """Read both id columns of a block, and nothing else.

    Raises InputError naming file and place for damage, null ids (unless dropped), ids above 2^63-1, strings that are
    no UTF-8 or longer than MOST_ID_BYTES.
    """
    none = IdRows(identity.no_ids(source.kind), identity.no_ids(source.kind), 0)
    parts = list(read_parts(source, block, nulls)) or [none]
    return IdRows(
        identity.concatenate([part.source for part in parts]),
        identity.concatenate([part.target for part in parts]),
        sum(part.nulls for part in parts),
    )


def read_parts(source: Source, block: Block, nulls: Nulls = "refuse") -> Iterator[IdRows]:
    """As `read_rows`, part by part: of strings a few rows at a time, as a row group may decode to far more than it has
    in the file.
    """
    for piece in block.pieces:
        for one in [Piece(piece.file, (group,)) for group in piece.row_groups] if source.kind == "string" else [piece]:
            rows = 0
            for table in _tables(source, one):
                whole = table
                if table.column(0).null_count or table.column(1).null_count:
                    if nulls == "refuse":
                        raise InputError(_where_nulls(source, one, _read_piece(source, one)))
                    whole = _without_nulls(table)
                first, second = (_ids(source, one, whole, position, rows) for position in range(2))
                yield IdRows(first, second, table.num_rows - whole.num_rows)
                rows += table.num_rows
            file = source.files[piece.file]
            if rows != sum(file.row_groups[group] for group in one.row_groups):
                raise InputError(_other_rows(file.path))


def read_batches(source: Source, piece: Piece, rows: int) -> Iterator[IdRows]:
    """The first `rows` rows of a piece, a few at a time, without those that have a null id: memory is bounded whatever
    the size of the row groups. Raises InputError as `read_rows` does.
    """
    read = 0
    for table in _batches(source, piece, min(rows, _batch_rows(source, piece)), ahead=False):
        whole = _without_nulls(table.slice(0, rows - read))
        first, second = (_ids(source, piece, whole, position, read) for position in range(2))
        yield IdRows(first, second, min(table.num_rows, rows - read) - whole.num_rows)
        read += table.num_rows
        if read >= rows:
            return
    raise InputError(_other_rows(source.files[piece.file].path))


def _tables(source: Source, piece: Piece) -> Iterator[pa.Table]:
    if source.kind == "integer":
        return iter([_read_piece(source, piece)])
    ahead = source.id_bytes(piece) <= TEXT_AHEAD_BYTES
    return _batches(source, piece, _batch_rows(source, piece), ahead)


def _batch_rows(source: Source, piece: Piece) -> int:
    """Rows of a batch of about TEXT_BATCH_BYTES, if each string is stored as often as it occurs."""
    if source.kind == "integer":
        return BATCH_ROWS
    rows = sum(source.files[piece.file].row_groups[group] for group in piece.row_groups)
    return min(MOST_TEXT_ROWS, max(LEAST_TEXT_ROWS, TEXT_BATCH_BYTES * rows // max(1, source.id_bytes(piece))))


def _without_nulls(table: pa.Table) -> pa.Table:
    if not (table.column(0).null_count or table.column(1).null_count):
        return table
    return table.filter(pc.and_(pc.is_valid(table.column(0)), pc.is_valid(table.column(1))))


def _batches(source: Source, piece: Piece, rows: int, ahead: bool) -> Iterator[pa.Table]:
    """The two columns of a piece, so many rows at a time; `ahead` fetches all of its bytes at once."""
    columns = [source.source_column, source.target_column]
    try:
        with open_file(source.files[piece.file], source.storage_options, pre_buffer=ahead) as opened:
            for batch in opened.iter_batches(rows, list(piece.row_groups), columns):
                yield pa.Table.from_batches([batch]).select(columns)
    except DAMAGE as error:
        raise _unreadable(source, piece, error) from error


def _read_piece(source: Source, piece: Piece) -> pa.Table:
    file = source.files[piece.file]
    columns = [source.source_column, source.target_column]
    try:
        with open_file(file, source.storage_options) as opened:
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
    columns = [source.source_column, source.target_column]
    for group in piece.row_groups:
        try:
            with open_file(file, source.storage_options) as opened:
                opened.read_row_groups([group], columns=columns)
        except DAMAGE:
            return f"row group {group}"
    return "row groups " + ", ".join(map(str, piece.row_groups))


def _ids(source: Source, piece: Piece, table: pa.Table, position: int, first: int) -> Ids:
    """A column of a table whose rows begin at row `first` of the piece."""
    column = table.column(position)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if source.kind == "string":
        return _text(source, piece, column.cast(pa.large_string()), table.column_names[position], first)
    if pa.types.is_uint64(column.type):
        too_large = pc.greater(column, pa.scalar(2**63 - 1, pa.uint64()))
        if pc.any(too_large).as_py():
            row = pc.index(too_large, True).as_py()
            raise InputError(
                f"{source.files[piece.file].path}: {_row_group_of(source, piece, row)}: column "
                f"{table.column_names[position]!r} has the id {column[row]}, above 2^63-1: use smaller ids or strings"
            )
    if column.type != pa.int64():
        column = column.cast(pa.int64())
    return column.to_numpy()


def _text(source: Source, piece: Piece, column: pa.ChunkedArray, name: str, first: int) -> pa.LargeStringArray:
    """As one array, checked: Parquet's readers take any bytes for text, of any length."""
    text = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    try:
        text.validate(full=True)
    except pa.ArrowInvalid as error:
        groups = ", ".join(map(str, piece.row_groups))
        raise InputError(
            f"{source.files[piece.file].path}: row groups {groups}: ids are not UTF-8 text: {reason(error)}; "
            "the file is damaged, or holds bytes and calls them text: write it again"
        ) from error
    length = pc.max(pc.binary_length(text)).as_py() or 0
    if length > MOST_ID_BYTES:
        row = first + pc.index(pc.binary_length(text), length).as_py()
        raise InputError(
            f"{source.files[piece.file].path}: {_row_group_of(source, piece, row)}: column {name!r} has an id of "
            f"{length:,} bytes, over the {MOST_ID_BYTES:,} allowed, near row {row:,} there: use shorter "
            "ids, such as hashes of these"
        )
    return text


def _groups(source: Source, piece: Piece) -> Iterator[tuple[int, int, int]]:
    """(row group, first row in the piece, rows) of each row group."""
    first = 0
    for group in piece.row_groups:
        rows = source.files[piece.file].row_groups[group]
        yield group, first, rows
        first += rows


def _row_group_of(source: Source, piece: Piece, row: int) -> str:
    return next(f"row group {group}" for group, first, rows in _groups(source, piece) if row < first + rows)


def _where_nulls(source: Source, piece: Piece, table: pa.Table) -> str:
    for group, first, rows in _groups(source, piece):
        counts: dict[str, Any] = {name: table.column(name).slice(first, rows).null_count for name in table.column_names}
        if any(counts.values()):
            found = " and ".join(f"{count} in column {name!r}" for name, count in counts.items() if count)
            path = source.files[piece.file].path
            return f'{path}: row group {group} has null ids: {found}; set input.nulls to "drop" to leave such rows out'
    raise AssertionError("nulls in a table and in none of its row groups")
