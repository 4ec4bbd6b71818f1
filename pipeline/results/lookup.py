"""Look-ups by id in a sorted table, and its rows as value types, whose fields are the columns in order.

Only row groups whose statistics admit a match are read.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import accumulate
from math import inf
from operator import index
from threading import Lock
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ...tasks.errors import InputError, UsageError
from ...tasks.ids.display import display_id, parse_id
from ...tasks.inputs.sources import FOOTER_READERS
from ..messages.wording import shown
from ..settings.declared_programs import LAMBDA
from .result import Result

if TYPE_CHECKING:
    from .table import ResultTable


CACHED_ROW_GROUPS = {"hierarchy": 4}
"""Decoded row groups in a table's cache, 1 for tables not listed. The ancestors of a group lie in few row groups."""

_tables: WeakKeyDictionary[Result, dict[str, SortedTable]] = WeakKeyDictionary()
_tables_lock = Lock()


@dataclass(frozen=True, eq=False)
class RowGroup:
    """One row group of a file of a result, described by its footer."""

    fragment: ds.ParquetFileFragment
    rows: int
    bounds: Mapping[str, tuple[Any, Any]]
    """Column → its smallest and largest value. Columns without statistics are absent."""


@dataclass(frozen=True)
class SearchResult:
    """The rows that a search found."""

    table: pa.Table
    rows: int
    """Rows in the row groups that were searched."""
    more_rows: bool
    """Whether further row groups were not searched."""
    full: bool
    """Whether the search stopped because it had found as many rows as were asked for."""


def sorted_table(result: Result, name: str) -> SortedTable:
    """The table `name` of a result. Its footers are read once for each `Result`.

    Raises UsageError if the result has no such table, InputError for damage.
    """
    with _tables_lock:
        known = _tables.setdefault(result, {})
        if name not in known:
            known[name] = SortedTable(result.table(name), CACHED_ROW_GROUPS.get(name, 1))
        return known[name]


def sorted_groups(result: Result, groups: str) -> SortedTable:
    """The table of the groups `groups`: "lambda", or the name of a program. Raises as `sorted_table` does."""
    return sorted_table(result, result.groups_table(groups))


class SortedTable:
    """A table whose files are each sorted by the first column, the key. Several threads may use it at once.

    All methods raise InputError for damage.
    """

    def __init__(self, table: ResultTable, cached: int) -> None:
        self._table = table
        self._key: str = table.schema.names[0]
        self.row_groups = _row_groups(table)
        """All row groups, in the order of the table."""
        self._read = lru_cache(cached)(lambda group: group.fragment.to_table())
        self._read_lock = Lock()

    def row(self, key: int | str | bytes) -> dict[str, Any] | None:
        """The row with the key `key`, or None. The table must be sorted over all of its files.

        The row group that may hold the key is cached for the next call.
        """
        for group in self.row_groups:
            low, high = group.bounds.get(self._key, (key, key))
            if low <= key <= high:
                with self._read_lock, self._table.reading():
                    rows = self._read(group)
                at = bisect_left(range(len(rows)), key, key=_values(rows[self._key]))
                for found in rows.slice(at, 1).to_pylist():
                    if found[self._key] == key:
                        return dict(found)
        return None

    def near(self, keys: pa.Array, least_lambda: int = 0) -> list[tuple[RowGroup, pa.Array]]:
        """The row groups that can hold some of `keys`, each with the keys that it can hold. `keys` are ascending.

        In a table with λ, row groups whose λ are all below `least_lambda` are left out.
        """
        found = (
            (group, _between(keys, group.bounds.get(self._key)))
            for group in self.row_groups
            if group.bounds.get("lambda", (0, inf))[1] >= least_lambda
        )
        return [(group, inside) for group, inside in found if len(inside)]

    def scan(
        self, groups: Sequence[RowGroup], where: pc.Expression, columns: list[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Batches of the rows of `groups` that meet `where`, in the order of `groups`."""
        if groups:
            fragments = [group.fragment for group in groups]
            part = ds.FileSystemDataset(fragments, self._table.schema, self._table.format, self._table.filesystem)
            with self._table.reading():
                yield from part.to_batches(columns=columns, filter=where)

    def search(
        self,
        groups: Sequence[RowGroup],
        where: pc.Expression,
        columns: list[str],
        most_found: int,
        most_rows: float = inf,
    ) -> SearchResult:
        """The first `most_found` rows of `groups` that meet `where`.

        Searches whole row groups while their rows add up to at most `most_rows`, and at least one row group.
        """
        sums = list(accumulate(group.rows for group in groups))
        taken = max(1, bisect_right(sums, most_rows))
        batches, size = [], 0
        for batch in self.scan(groups[:taken], where, columns):
            batches.append(batch)
            size += batch.num_rows
            if size >= most_found:
                break
        table = pa.Table.from_batches(batches, pa.schema([self._table.schema.field(name) for name in columns]))
        rows = sums[:taken][-1] if groups else 0
        return SearchResult(table.slice(0, most_found), rows, taken < len(groups), size >= most_found)


def _row_groups(table: ResultTable) -> list[RowGroup]:
    def of_file(file: ds.ParquetFileFragment) -> list[RowGroup]:
        parts = []
        for fragment in file.split_by_row_group():
            (info,) = fragment.row_groups
            bounds = {name: (found["min"], found["max"]) for name, found in (info.statistics or {}).items()}
            parts.append(RowGroup(fragment, info.num_rows, bounds))
        return parts

    with table.reading(), ThreadPoolExecutor(FOOTER_READERS) as readers:
        return [part for parts in readers.map(of_file, table.get_fragments()) for part in parts]


def _between(ascending: pa.Array, bounds: tuple[Any, Any] | None) -> pa.Array:
    """The values in the closed interval `bounds`; all of them if it is None."""
    if bounds is None:
        return ascending
    start = bisect_left(range(len(ascending)), bounds[0], key=_values(ascending))
    stop = bisect_right(range(len(ascending)), bounds[1], key=_values(ascending))
    return ascending.slice(start, stop - start)


def _values(column: Any) -> Any:
    """A function from index to value. Arrow orders text by its UTF-8, which equals Python's order."""
    return lambda at: column[at].as_py()


@dataclass(frozen=True)
class Vertex:
    """A vertex of a result."""

    id: int | str
    """A UUID is text."""
    degree: int
    triangles: int | None
    """Triangles that contain it, or butterflies in a graph with two sides; None in a result without λ."""
    lam: int | None
    """The largest λ of its edges; None in a result without λ."""
    component: int | None
    """The innermost group that contains it; None for a vertex without edges, and in a result without λ."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The columns of vertex programs, by name."""
    side: str | None = None
    """The column of the input that has it, in a graph with two sides; None in others."""


@dataclass(frozen=True)
class Component:
    """A component of the hierarchy: a connected component of the edges with λ ≥ k. Or one of the edges of level k or
    more, of a program that finds groups: a connected k-core, or a community of level k.
    """

    component: int
    """Its id. A DN-graph has the same id."""
    k: int
    parent: int | None
    """The next larger group; None for the largest."""
    vertices: int
    edges: int


@dataclass(frozen=True)
class Group(Component):
    """A component, whether it is a DN-graph, and which groups it belongs to."""

    dn_graph: bool
    groups: str = LAMBDA
    """The program that found it."""
    two_sided: bool = False
    """Whether its graph has two sides."""

    @property
    def density(self) -> float | None:
        """The share of the pairs of its vertices that are edges; None if its graph has two sides, as `hierarchy` does
        not say how many vertices are of each.
        """
        if self.two_sided:
            return None
        return 2 * self.edges / (self.vertices * (self.vertices - 1))


@dataclass(frozen=True)
class DNGraph:
    """A component with k > 0 that contains no other component."""

    id: int
    lam: int
    vertices: int
    edges: int
    density: float
    triangles: int
    """Triangles with all three edges in it, or butterflies with all four in a graph with two sides."""
    parent: int | None
    track: int | None = None
    """The number that it keeps from night to night in a series; None in results of earlier releases."""
    left_vertices: int | None = None
    """Its vertices of the first side; None unless the graph has two sides."""


Row = TypeVar("Row", Vertex, Component, DNGraph)
_TABLES: dict[type, str] = {
    Vertex: "vertices",
    Component: "hierarchy",
    DNGraph: "dn_graphs",
}


def rows_of(kind: type[Row], table: pa.Table) -> list[Row]:
    """The rows of a table as values of the type `kind`."""
    return [kind(*row.values()) for row in table.to_pylist()]


def find(result: Result, kind: type[Row], id: int | str | bytes) -> Row | None:
    """The row with the id `id`, or None. Raises UsageError if the result has no such table, InputError for damage."""
    row = sorted_table(result, _TABLES[kind]).row(id)
    if row is None:
        return None
    values = {name: display_id(value) for name, value in row.items()}
    if kind is not Vertex:
        return kind(*values.values())
    added = {name: values[name] for program in result.manifest.programs for name in program.columns}
    of_vertex = values.get(result.manifest.measure), values.get("lambda"), values.get("component")
    return kind(values["id"], values["degree"], *of_vertex, added, values.get("side"))


def find_component(result: Result, groups: str, id: int) -> Component | None:
    """The group with the id `id` among `groups`, or None. Raises as `find` does."""
    row = sorted_groups(result, groups).row(id)
    return None if row is None else Component(*list(row.values())[: len(fields(Component))])


def path_to_root(result: Result, component: int | None, groups: str = LAMBDA) -> Iterator[Component]:
    """A group and its ancestors, innermost first; empty for None.

    Raises as `find` does, and InputError if a component is missing or has no smaller k than its child.
    """
    inner: Component | None = None
    while component is not None:
        found = find_component(result, groups, component)
        if found is None:
            raise InputError(f"the result is damaged: {result.place}: there is no component {component}")
        if inner is not None and found.k >= inner.k:
            raise InputError(
                f"the result is damaged: {result.place}: component {component} cannot be the parent of component "
                f"{inner.component}"
            )
        yield found
        inner, component = found, found.parent


def parse_int64(text: str) -> int:
    """The integer of 64 bits that `text` writes in plain digits. Raises ValueError."""
    if not re.fullmatch(r"-?[0-9]{1,19}", text) or not -(2**63) <= int(text) < 2**63:
        raise ValueError(f"{text[:80]!r} is not a whole number of 64 bits")
    return int(text)


AnyId: TypeAlias = SupportsIndex | str | bytes | UUID
"""The id of a vertex, or its text."""


def parse_vertex_id(vertex: AnyId, result: Result) -> int | str | bytes:
    """The id of a vertex in the result's type of ids. Raises UsageError if `vertex` does not have that type."""
    id_type = result.vertices.schema.field("id").type
    vertex = getattr(vertex, "as_py", lambda: vertex)()  # Arrow's scalars
    try:
        if isinstance(vertex, str):
            return parse_id(vertex, id_type)
        key = vertex.bytes if isinstance(vertex, UUID) else vertex if isinstance(vertex, bytes) else index(vertex)
        pa.scalar(key, id_type)
    except (TypeError, ValueError, OverflowError, pa.ArrowException):
        kinds = result.manifest.input.id_type
        raise UsageError(f"{shown(vertex)} is not an id of {result.place}: its ids are {kinds}") from None
    return key
