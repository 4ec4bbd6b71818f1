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

    Raises InputError naming file and place for damage, null ids (unless dropped), ids above 2^63-1, and no UTF-8.
    """
    columns: tuple[list[Ids], list[Ids]] = ([], [])
    dropped = 0
    for piece in block.pieces:
        table = _read_piece(source, piece)
        if table.column(0).null_count or table.column(1).null_count:
            if nulls == "refuse":
                raise InputError(_where_nulls(source, piece, table))
            rows = table.num_rows
            table = table.filter(pc.and_(pc.is_valid(table.column(0)), pc.is_valid(table.column(1))))
            dropped += rows - table.num_rows
        for position, ids in enumerate(columns):
            ids.append(_ids(source, piece, table, position))
    if not block.pieces:
        return IdRows(identity.no_ids(source.kind), identity.no_ids(source.kind), 0)
    return IdRows(identity.concatenate(columns[0]), identity.concatenate(columns[1]), dropped)


def read_batches(source: Source, piece: Piece, rows: int) -> Iterator[IdRows]:
    """The first `rows` rows of a piece, a few at a time, without those that have a null id: memory is bounded whatever
    the size of the row groups. Raises InputError as `read_rows` does.
    """
    columns = [source.source_column, source.target_column]
    path = source.files[piece.file].path
    try:
        with open_file(source.files[piece.file], source.storage_options, pre_buffer=False) as opened:
            for batch in opened.iter_batches(min(rows, BATCH_ROWS), list(piece.row_groups), columns):
                table = pa.Table.from_batches([batch]).select(columns).slice(0, rows)
                whole = table.filter(pc.and_(pc.is_valid(table.column(0)), pc.is_valid(table.column(1))))
                source_ids, target_ids = (_ids(source, piece, whole, position) for position in range(2))
                yield IdRows(source_ids, target_ids, table.num_rows - whole.num_rows)
                rows -= table.num_rows
                if not rows:
                    return
        raise InputError(_other_rows(path))
    except DAMAGE as error:
        raise InputError(
            f"{path}: {_damaged(source, piece)} cannot be read: {reason(error)}; the file is damaged: write it again"
        ) from error


def _read_piece(source: Source, piece: Piece) -> pa.Table:
    file = source.files[piece.file]
    columns = [source.source_column, source.target_column]
    try:
        with open_file(file, source.storage_options) as opened:
            table = opened.read_row_groups(list(piece.row_groups), columns=columns).select(columns)
    except DAMAGE as error:
        raise InputError(
            f"{file.path}: {_damaged(source, piece)} cannot be read: {reason(error)}; "
            "the file is damaged or changed during the run: write it again"
        ) from error
    if table.num_rows != sum(file.row_groups[group] for group in piece.row_groups):
        raise InputError(_other_rows(file.path))
    return table


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


def _ids(source: Source, piece: Piece, table: pa.Table, position: int) -> Ids:
    column = table.column(position)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if source.kind == "string":
        return _text(source, piece, column.cast(pa.large_string()))
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


def _text(source: Source, piece: Piece, column: pa.ChunkedArray) -> pa.LargeStringArray:
    """As one array, checked: Parquet's readers take any bytes for text."""
    text = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    try:
        text.validate(full=True)
    except pa.ArrowInvalid as error:
        groups = ", ".join(map(str, piece.row_groups))
        raise InputError(
            f"{source.files[piece.file].path}: row groups {groups}: ids are not UTF-8 text: {reason(error)}; "
            "the file is damaged, or holds bytes and calls them text: write it again"
        ) from error
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
