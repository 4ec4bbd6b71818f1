"""Walk two sorted tables side by side, a block of keys at a time, however their batches are cut."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ....tasks.errors import InputError
from ..streaming import stream

if TYPE_CHECKING:
    from ..frames.table import ResultTable

Key = tuple[Any, ...]

BLOCK_ROWS = 1 << 16
"""Rows that are compared at once. Small blocks of two similar tables are often equal, which is fast to test."""


def sorted_batches(table: ResultTable, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Batches of the columns `columns` of a table, in order. Raises InputError as `Result.reading` does."""
    with table.reading():
        yield from stream(table, columns, batch_rows=BLOCK_ROWS)


def aligned_blocks(
    old: Iterable[pa.RecordBatch], new: Iterable[pa.RecordBatch], keys: int
) -> Iterator[tuple[pa.RecordBatch | None, pa.RecordBatch | None]]:
    """All rows of both tables in pairs of blocks. A key of one block can occur only in the other block of its pair.

    Both tables ascend by their first `keys` columns, without duplicates. A block is at most as large as the batch that
    it comes from; None means no rows. Raises InputError if batches do not ascend.
    """
    left, right = _Side(old, keys), _Side(new, keys)
    while left.rows is not None and right.rows is not None:
        border = min(left.last, right.last)
        yield left.take_until(border), right.take_until(border)
    while left.rows is not None:
        yield left.take_until(left.last), None
    while right.rows is not None:
        yield None, right.take_until(right.last)


def join_blocks(old: pa.RecordBatch | None, new: pa.RecordBatch | None, keys: list[str]) -> pa.Table:
    """The full outer join of two blocks by `keys`, in no order. Other columns become NAME_old and NAME_new."""
    present = old if old is not None else new
    assert present is not None
    sides = [pa.Table.from_batches([] if side is None else [side], present.schema) for side in (old, new)]
    for side, end in zip((0, 1), ("old", "new"), strict=True):
        names = [name if name in keys else f"{name}_{end}" for name in sides[side].schema.names]
        sides[side] = sides[side].rename_columns(names)
    return sides[0].join(sides[1], keys, join_type="full outer")


class _Side:
    """The rows of one table that are read and not yet taken."""

    def __init__(self, batches: Iterable[pa.RecordBatch], keys: int) -> None:
        self._batches, self._keys = iter(batches), keys
        self.rows: pa.RecordBatch | None = None
        self.last: Key = ()
        """The largest key of `rows`."""
        self._read()

    def take_until(self, border: Key) -> pa.RecordBatch | None:
        """Remove and return the rows with a key of at most `border`; None if there are no such rows."""
        rows = self.rows
        if rows is None or (stop := bisect_right(range(len(rows)), border, key=self._key)) == 0:
            return None
        taken = rows.slice(0, stop)
        self.rows = rows.slice(stop)
        if not len(self.rows):
            self._read()
        return taken

    def _read(self) -> None:
        before = self.last
        self.rows = next((batch for batch in self._batches if batch.num_rows), None)
        if self.rows is None:
            return
        self.last = self._key(len(self.rows) - 1)
        if before and self._key(0) <= before:
            raise InputError(f"a table of the result is not sorted: {self._key(0)} comes after {before}")

    def _key(self, row: int) -> Key:
        assert self.rows is not None
        return tuple(self.rows.column(column)[row].as_py() for column in range(self._keys))
