"""Two sorted tables side by side, a block of keys at a time, whatever batches each of them comes in."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from ..tasks.errors import InputError
from ..tasks.places import Place
from .lookup import reading
from .streaming import stream

__all__ = ["paired", "side_by_side", "sorted_batches"]

Key = tuple[Any, ...]

BLOCK_ROWS = 1 << 16
"""Rows compared at once: few enough for most blocks of two similar tables to be the same."""


def sorted_batches(place: Place, table: ds.Dataset, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The columns of a table of the result at `place`, in order. Raises InputError for damage."""
    with reading(place):
        yield from stream(table, columns, batch_rows=BLOCK_ROWS)


def side_by_side(
    old: Iterable[pa.RecordBatch], new: Iterable[pa.RecordBatch], keys: int
) -> Iterator[tuple[pa.RecordBatch | None, pa.RecordBatch | None]]:
    """All rows of both, in pairs of blocks: a key of one block is in none but its partner on the other side.

    Both ascend by their first `keys` columns, without repetition. A block is no larger than the batch it is from; None
    stands for no rows. Raises InputError if batches do not ascend.
    """
    left, right = _Side(old, keys), _Side(new, keys)
    while left.rows is not None and right.rows is not None:
        border = min(left.last, right.last)
        yield left.take_until(border), right.take_until(border)
    while left.rows is not None:
        yield left.take_until(left.last), None
    while right.rows is not None:
        yield None, right.take_until(right.last)


def paired(old: pa.RecordBatch | None, new: pa.RecordBatch | None, keys: list[str]) -> pa.Table:
    """All keys of two blocks, in no order, with the other columns of both: NAME_old and NAME_new, null for no row."""
    present = old if old is not None else new
    assert present is not None
    sides = [pa.Table.from_batches([] if side is None else [side], present.schema) for side in (old, new)]
    for side, end in zip((0, 1), ("old", "new"), strict=True):
        names = [name if name in keys else f"{name}_{end}" for name in sides[side].schema.names]
        sides[side] = sides[side].rename_columns(names)
    return sides[0].join(sides[1], keys, join_type="full outer")


class _Side:
    """What has been read of one table and not been taken."""

    def __init__(self, batches: Iterable[pa.RecordBatch], keys: int) -> None:
        self._batches, self._keys = iter(batches), keys
        self.rows: pa.RecordBatch | None = None
        self.last: Key = ()
        """The largest key of `rows`."""
        self._read()

    def take_until(self, border: Key) -> pa.RecordBatch | None:
        """The rows whose key is not above the border, which are gone then; None if there are none."""
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
        return tuple(self.rows.column(place)[row].as_py() for place in range(self._keys))
