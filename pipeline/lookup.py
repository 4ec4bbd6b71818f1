"""Reading little of a sorted table: the row groups whose statistics leave room for what is asked, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ..tasks.errors import InputError
from ..tasks.places import Place
from ..tasks.sources import FOOTER_READERS, reason
from .result import Result

__all__ = ["RowGroup", "SortedTable", "look_up", "reading"]

KEPT = 4
"""Row groups that a table keeps decoded: groups around the same vertices lie in few of them."""

_tables: WeakKeyDictionary[Result, dict[str, SortedTable]] = WeakKeyDictionary()


class RowGroup:
    """One row group of a file of a result."""

    def __init__(self, place: Place, fragment: ds.ParquetFileFragment) -> None:
        self.place, self.fragment = place, fragment

    @cached_property
    def _statistics(self) -> dict[str, dict[str, Any]]:
        return self.fragment.row_groups[0].statistics or {}

    def bounds(self, column: str) -> tuple[Any, Any] | None:
        """Its smallest and largest value; None where the file does not say."""
        found = self._statistics.get(column)
        return None if found is None else (found["min"], found["max"])

    def may_hold(self, column: str, value: Any) -> bool:
        """Whether the value may be in the column."""
        found = self.bounds(column)
        return found is None or found[0] <= value <= found[1]

    def read(self) -> pa.Table:
        """Its rows. Raises InputError if they are damaged."""
        with reading(self.place):
            return self.fragment.to_table()


def look_up(result: Result, table: str) -> SortedTable:
    """A table of a result by its name, whose footers are read once for all questions to this `Result`.

    Raises UsageError if the result has no such table, InputError for damage.
    """
    known = _tables.setdefault(result, {})
    if table not in known:
        known[table] = SortedTable(result.place, getattr(result, table))
    return known[table]


def _row_groups(place: Place, table: ds.Dataset) -> list[RowGroup]:
    with reading(place), ThreadPoolExecutor(FOOTER_READERS) as readers:
        files = readers.map(lambda file: file.split_by_row_group(), table.get_fragments())
        return [RowGroup(place, part) for parts in files for part in parts]


class SortedTable:
    """A table that ascends by its first column, the key, over all its files."""

    def __init__(self, place: Place, table: ds.Dataset) -> None:
        self.key: str = table.schema.names[0]
        self.type: pa.DataType = table.schema.types[0]
        self.row_groups = _row_groups(place, table)
        """In order."""
        groups = self.row_groups
        self._read = lru_cache(KEPT)(lambda number: groups[number].read())

    def row(self, key: int | str) -> dict[str, Any] | None:
        """The row of that key, which has one or none; None then. Raises InputError for damage."""
        for number, group in enumerate(self.row_groups):
            if not group.may_hold(self.key, key):
                continue
            rows = self._read(number)
            at = pc.index(rows[self.key], pa.scalar(key, self.type)).as_py()
            if at >= 0:
                found: dict[str, Any] = rows.slice(at, 1).to_pylist()[0]
                return found
        return None


@contextmanager
def reading(place: Place) -> Iterator[None]:
    """Within it, what reading tables raises becomes an InputError, or a UsageError where a store does not let read."""
    try:
        with place.reached("read"):
            yield
    except MemoryError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"the result is damaged: {place}: {reason(error)}") from error
