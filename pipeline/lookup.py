"""Reading little of a sorted table: the row groups whose statistics leave room for what is asked, and no others."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import inf
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ..tasks.places import Place
from ..tasks.sources import FOOTER_READERS
from .frames.reading import reading
from .result import Result

__all__ = ["Found", "RowGroup", "SortedTable", "look_up", "reading"]

KEPT = {"hierarchy": 4}
"""Row groups that a table keeps decoded, one if it is not here: those around a group, up to its root, lie in few."""

_tables: WeakKeyDictionary[Result, dict[str, SortedTable]] = WeakKeyDictionary()
_making = Lock()


@dataclass(frozen=True, eq=False)
class RowGroup:
    """One row group of a file of a result, by what its footer says."""

    fragment: ds.ParquetFileFragment
    rows: int
    bounds: Mapping[str, tuple[Any, Any]]
    """Smallest and largest value of columns; without those of which the footer does not say."""


@dataclass(frozen=True)
class Found:
    """Rows that a search has found."""

    table: pa.Table
    rows: int
    """Rows of the row groups that were looked at."""
    more_rows: bool
    """Whether there are row groups more, which were not looked at."""
    full: bool
    """Whether the search ended because so many were found."""


def look_up(result: Result, table: str) -> SortedTable:
    """A table of a result by its name, whose footers are read once for all questions to this `Result`.

    Raises UsageError if the result has no such table, InputError for damage.
    """
    with _making:
        known = _tables.setdefault(result, {})
        if table not in known:
            known[table] = SortedTable(result.place, getattr(result, table), KEPT.get(table, 1))
        return known[table]


class SortedTable:
    """A table that ascends by its first column, the key, in each file; safe to ask from several threads.

    All methods raise InputError for damage.
    """

    def __init__(self, place: Place, table: ds.Dataset, kept: int) -> None:
        self._place, self._table = place, table
        self._key: str = table.schema.names[0]
        self.row_groups = _row_groups(place, table)
        """In order."""
        self._read = lru_cache(kept)(lambda group: group.fragment.to_table())
        self._reading = Lock()

    def row(self, key: int | str | bytes) -> dict[str, Any] | None:
        """The row of that key, of which there is one or none, in a table that ascends over all files.

        The row group that it is in is kept for the next call.
        """
        for group in self.row_groups:
            low, high = group.bounds.get(self._key, (key, key))
            if low <= key <= high:
                with self._reading, reading(self._place):
                    rows = self._read(group)
                at = bisect_left(range(len(rows)), key, key=_values(rows[self._key]))
                for found in rows.slice(at, 1).to_pylist():
                    if found[self._key] == key:
                        return dict(found)
        return None

    def near(self, keys: pa.Array, least_lambda: int = 0) -> list[tuple[RowGroup, pa.Array]]:
        """The row groups that can hold some of `keys`, which ascend, each with these; and such λ, if it has λ."""
        found = (
            (group, _between(keys, group.bounds.get(self._key)))
            for group in self.row_groups
            if group.bounds.get("lambda", (0, inf))[1] >= least_lambda
        )
        return [(group, inside) for group, inside in found if len(inside)]

    def scan(
        self, groups: Sequence[RowGroup], wanted: pc.Expression, columns: list[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Batches of the rows wanted from some row groups, in their order."""
        if groups:
            fragments = [group.fragment for group in groups]
            part = ds.FileSystemDataset(fragments, self._table.schema, self._table.format, self._table.filesystem)
            with reading(self._place):
                yield from part.to_batches(columns=columns, filter=wanted)

    def search(
        self,
        groups: Sequence[RowGroup],
        wanted: pc.Expression,
        columns: list[str],
        most_found: int,
        most_rows: float = inf,
    ) -> Found:
        """The first rows wanted of some row groups, as far as `most_rows` of theirs reach, which is one at least."""
        sums = list(accumulate(group.rows for group in groups))
        taken = max(1, bisect_right(sums, most_rows))
        batches, size = [], 0
        for batch in self.scan(groups[:taken], wanted, columns):
            batches.append(batch)
            size += batch.num_rows
            if size >= most_found:
                break
        table = pa.Table.from_batches(batches, pa.schema([self._table.schema.field(name) for name in columns]))
        rows = sums[:taken][-1] if groups else 0
        return Found(table.slice(0, most_found), rows, taken < len(groups), size >= most_found)


def _row_groups(place: Place, table: ds.Dataset) -> list[RowGroup]:
    def of_file(file: ds.ParquetFileFragment) -> list[RowGroup]:
        parts = []
        for fragment in file.split_by_row_group():
            (info,) = fragment.row_groups
            bounds = {name: (found["min"], found["max"]) for name, found in (info.statistics or {}).items()}
            parts.append(RowGroup(fragment, info.num_rows, bounds))
        return parts

    with reading(place), ThreadPoolExecutor(FOOTER_READERS) as readers:
        return [part for parts in readers.map(of_file, table.get_fragments()) for part in parts]


def _between(ascending: pa.Array, bounds: tuple[Any, Any] | None) -> pa.Array:
    """Those in the closed interval; all without one."""
    if bounds is None:
        return ascending
    start = bisect_left(range(len(ascending)), bounds[0], key=_values(ascending))
    stop = bisect_right(range(len(ascending)), bounds[1], key=_values(ascending))
    return ascending.slice(start, stop - start)


def _values(column: Any) -> Any:
    """From place to value. Arrow orders text by UTF-8, which is Python's order too."""
    return lambda place: column[place].as_py()
