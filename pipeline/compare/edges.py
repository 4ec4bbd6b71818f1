"""Edges that differ between two results. Both tables are sorted, so they are compared block by block.

`sorted_batches` and `aligned_blocks` walk two sorted tables side by side, a block of keys at a time, however their
batches are cut. Vertices and members of DN-graphs are compared by them, too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ...tasks.errors import InputError
from ..results.result import Result
from ..results.streaming import stream

if TYPE_CHECKING:
    from ..results.table import ResultTable


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


CHANGES = ("appeared", "vanished", "rose", "fell")
VALUE_COLUMNS = ("change", "lambda_old", "lambda_new")
"""Columns of changed edges after the two ids."""


def changed_edges(old: Result, new: Result) -> Iterator[pa.Table]:
    """The edges that appeared, vanished, rose or fell, with the columns of `edge_schema`, in tables ascending by ids.

    One block of each result is in memory at a time. Both results must have exact λ, and equal names and types of ids.
    Raises InputError for damage.
    """
    schema = edge_schema(new)
    ids = schema.names[:2]
    before, after = (sorted_batches(result.edges, [*ids, "lambda"]) for result in (old, new))
    for blocks in aligned_blocks(before, after, keys=2):
        if blocks[0] is not None and blocks[1] is not None and blocks[0].equals(blocks[1]):
            continue
        rows = join_blocks(*blocks, ids)
        rows = rows.append_column("change", change_of(rows["lambda_old"], rows["lambda_new"]))
        changed = rows.filter(pc.is_valid(rows["change"]))
        if len(changed):
            yield changed.select(schema.names).sort_by([(name, "ascending") for name in ids]).cast(schema)


def edge_schema(result: Result) -> pa.Schema:
    """The columns of changed edges: the two ids as in `result`, change (one of CHANGES), lambda_old and lambda_new
    (int32, null if the result does not have the edge).
    """
    ids = [result.edges.schema.field(column) for column in (0, 1)]
    return pa.schema([*ids, *zip(VALUE_COLUMNS, (pa.string(), pa.int32(), pa.int32()), strict=True)])


def change_of(old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    """The change of each λ, one of CHANGES, or null if it is unchanged. A null λ means that the row is missing."""
    cases = (pc.is_null(old), pc.is_null(new), pc.greater(new, old), pc.less(new, old))
    return pc.case_when(pc.make_struct(*(pc.fill_null(case, False) for case in cases)), *CHANGES)
