"""What the explorer asks of a result's tables, each with a bound on what it reads or holds.

The tables are sorted, so the statistics of their row groups tell which of them can hold an id: only these are read.
What no order helps with (children of a component, the largest DN-graphs, edges by their larger end) is read in a
stream, of which the few rows wanted are kept.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray

from ...tasks.errors import InputError, UsageError

if TYPE_CHECKING:
    from ..result import Result

__all__ = ["ORDERS", "Children", "Component", "DNGraph", "EdgesFound", "Queries", "Vertex", "whole"]

ORDERS = ("lambda", "vertices", "edges", "density", "triangles")
"""What DN-graphs can be ordered by, largest first."""

_HELD_ROWS = 1_000_000
"""A hierarchy of so many components, 36 MB, is held; a larger one is read for each question."""
_HELD_GROUPS = 4
"""Row groups of the hierarchy that are held at a time: a walk to its root stays within few."""
_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, slots=True)
class Component:
    """A row of the hierarchy."""

    component: int
    k: int
    parent: int | None
    vertices: int
    edges: int


@dataclass(frozen=True, slots=True)
class Children:
    """What lies directly in one component."""

    largest: list[Component]
    """By edges, largest first."""
    count: int
    """How many there are, with those not in `largest`."""
    edges: int
    """Edges of all of them."""


@dataclass(frozen=True, slots=True)
class DNGraph:
    """A row of the DN-graphs."""

    id: int
    lam: int
    vertices: int
    edges: int
    density: float
    triangles: int
    parent: int | None


@dataclass(frozen=True, slots=True)
class Vertex:
    """A row of the vertices."""

    id: int | str
    degree: int
    triangles: int
    lam: int
    component: int | None


@dataclass(frozen=True, slots=True)
class EdgesFound:
    """Edges with at least one end among some vertices."""

    table: pa.Table
    """The two ids and λ (`lambda`, int32), in the order of the search."""
    rows: int
    """Rows of the row groups that were looked at."""
    more_rows: bool
    """Whether there are row groups more, which were not looked at."""
    full: bool
    """Whether the search ended because so many were found."""


class Queries:
    """Small questions to a result with tables of dense groups; safe to ask from several threads.

    Raises UsageError for a result without these tables, and InputError and OSError for a damaged one.
    """

    def __init__(self, result: Result) -> None:
        self.result = result
        self._hierarchy = _SortedTable(result.hierarchy, "component")
        _ = result.dn_graphs, result.dn_graph_members, result.vertices, result.edges  # raise now, not at a question

    @property
    def id_type(self) -> pa.DataType:
        """Arrow type of the ids of vertices."""
        return self.result.vertices.schema.field("id").type

    def parse_vertex(self, text: str) -> pa.Scalar:
        """A vertex's id as someone types it. Raises UsageError if no vertex can have that id."""
        if not pa.types.is_integer(self.id_type):
            return pa.scalar(text, self.id_type)
        try:
            return pa.scalar(whole(text.strip()), self.id_type)
        except (ValueError, pa.ArrowInvalid, OverflowError):
            raise UsageError(f"vertices of this result are numbers ({self.id_type}); {text[:80]!r} is none") from None

    def vertex(self, id: pa.Scalar) -> Vertex | None:
        """The vertex of that id."""
        for row in self.result.vertices.scanner(filter=ds.field("id") == id).to_table().to_pylist():
            return Vertex(row["id"], row["degree"], row["triangles"], row["lambda"], row["component"])
        return None

    def next_vertices(self, id: pa.Scalar, most: int) -> list[int | str]:
        """The ids that follow one, in the order of the table."""
        rows = self.result.vertices.scanner(columns=["id"], filter=ds.field("id") > id, batch_readahead=1).head(most)
        return list(rows["id"].to_pylist())

    def component(self, id: int) -> Component | None:
        """A component by its id."""
        row = self._hierarchy.find(id)
        if row is None:
            return None
        return Component(id, row["k"], row["parent"], row["vertices"], row["edges"])

    def path(self, id: int) -> list[Component]:
        """A component and all that hold it, innermost first; none if it is unknown."""
        path: list[Component] = []
        at: int | None = id
        while at is not None:
            component = self.component(at)
            if component is None and not path:
                return []
            if component is None or (path and component.k >= path[-1].k):
                raise InputError(f"the result is damaged: component {at} cannot hold component {path[-1].component}")
            path.append(component)
            at = component.parent
        return path

    def children(self, parents: Sequence[int] | None, most: int) -> dict[int | None, Children]:
        """The `most` largest children of each of `parents` that has any; None: the connected components of the graph.

        One pass over the hierarchy, whatever the number of parents.
        """
        field = ds.field("parent")
        wanted = field.is_null() if parents is None else field.isin(pa.array(parents, pa.int64()))
        kept = _Largest(most)
        for batch in self._components.scanner(columns=list(_Largest.COLUMNS), filter=wanted).to_batches():
            kept.add(batch)
        return kept.by_parent(parents is None)

    @property
    def components(self) -> int:
        """Rows of the hierarchy."""
        assert self.result.manifest.dense is not None
        return self.result.manifest.dense.components

    @cached_property
    def _components(self) -> ds.Dataset:
        table = self.result.hierarchy
        return ds.InMemoryDataset(table.to_table()) if self.components <= _HELD_ROWS else table

    def dn_graph(self, id: int) -> DNGraph | None:
        """A DN-graph by its id."""
        found = self.result.dn_graphs.scanner(filter=ds.field("id") == id).to_table()
        return _dn_graphs(found)[0] if len(found) else None

    def largest_dn_graphs(self, by: str, most: int) -> list[DNGraph]:
        """The first `most` DN-graphs by one of ORDERS, largest first, equal ones by λ, vertices and id."""
        keys = [(by, "descending"), ("lambda", "descending"), ("vertices", "descending"), ("id", "ascending")]
        keys = [key for number, key in enumerate(keys) if key[0] not in dict(keys[:number])]
        kept = self.result.dn_graphs.schema.empty_table()
        for batch in self.result.dn_graphs.to_batches():
            if batch.num_rows:
                both = pa.concat_tables([kept, pa.Table.from_batches([batch])])
                kept = both.take(pc.select_k_unstable(both, k=min(most, len(both)), sort_keys=keys))
        return _dn_graphs(kept)

    def members(self, dn_graph: int, most: int) -> pa.Array:
        """Ids of the vertices of a DN-graph, ascending; at most the first `most` that are stored."""
        scan = self.result.dn_graph_members.scanner(columns=["vertex"], filter=ds.field("dn_graph") == dn_graph)
        ids = scan.head(most)["vertex"].combine_chunks()
        return ids.take(pc.array_sort_indices(ids))

    def edges_among(self, vertices: pa.Array, lam: int, most_rows: int, most_found: int) -> EdgesFound:
        """Edges of that λ between `vertices`, from the row groups that can hold some."""
        source, target = (ds.field(name).isin(vertices) for name in self._ends)
        return self._find(
            self._edges.holding(vertices, lam), source & target & (ds.field("lambda") == lam), most_rows, most_found
        )

    def edges_around(self, vertices: pa.Array, lam: int, most_rows: int, most_found: int) -> EdgesFound:
        """Edges of some vertices of a DN-graph of λ `lam` that are not its own: their λ is smaller.

        Edges lie by their smaller end, and nothing tells where those of a larger one are: they are looked for in the
        row groups that cannot hold a smaller end, after those that can, as far as `most_rows` reaches.
        """
        source, target = (ds.field(name).isin(vertices) for name in self._ends)
        wanted = (source | target) & (ds.field("lambda") < lam)
        first = self._edges.holding(vertices)
        taken = {id(group) for group in first}
        groups = first + [group for group in self._edges.groups if id(group) not in taken]
        return self._find(groups, wanted, most_rows, most_found)

    @property
    def _ends(self) -> tuple[str, str]:
        return self.result.manifest.input.source_column, self.result.manifest.input.target_column

    @cached_property
    def _edges(self) -> _SortedTable:
        return _SortedTable(self.result.edges, self._ends[0])

    def _find(self, groups: list[_RowGroup], wanted: pc.Expression, most_rows: int, most_found: int) -> EdgesFound:
        names = [*self._ends, "lambda"]
        sums = list(accumulate(group.rows for group in groups))
        taken = max(1, bisect_right(sums, most_rows))
        batches, size = [], 0
        for batch in self._edges.scan(groups[:taken], names, wanted):
            batches.append(batch)
            size += batch.num_rows
            if size >= most_found:
                break
        schema = pa.schema([self.result.edges.schema.field(name) for name in names])
        rows = sums[:taken][-1] if groups else 0
        return EdgesFound(
            pa.Table.from_batches(batches, schema).slice(0, most_found), rows, taken < len(groups), size >= most_found
        )


def whole(text: str) -> int:
    """A whole number in plain digits, of at most 64 bits. Raises ValueError."""
    if not re.fullmatch(r"-?[0-9]{1,19}", text) or not _INT64.min <= int(text) <= _INT64.max:
        raise ValueError(f"{text[:80]!r} is not a whole number of 64 bits")
    return int(text)


@dataclass(frozen=True, slots=True)
class _RowGroup:
    """Some rows of a file, by what its footer says of them."""

    fragment: Any
    """The pyarrow fragment of these rows alone."""
    rows: int
    low: Any
    """Smallest key, or None if the footer does not tell; `high` alike."""
    high: Any
    most_lambda: int | None


class _SortedTable:
    """A table sorted by a key over all files, by its row groups."""

    def __init__(self, table: ds.Dataset, key: str) -> None:
        self._table, self._key = table, key
        self._held: OrderedDict[int, pa.Table] = OrderedDict()
        self._lock = threading.Lock()

    @cached_property
    def groups(self) -> list[_RowGroup]:
        """All row groups, in the table's order."""
        groups = []
        for file in self._table.get_fragments():
            for fragment in file.split_by_row_group():
                (info,) = fragment.row_groups
                statistics = info.statistics or {}
                key, lam = statistics.get(self._key, {}), statistics.get("lambda", {})
                groups.append(_RowGroup(fragment, info.num_rows, key.get("min"), key.get("max"), lam.get("max")))
        return groups

    def holding(self, keys: pa.Array, lam: int = 0) -> list[_RowGroup]:
        """The row groups that can hold one of `keys` (ascending), and rows of λ `lam` at least."""
        ascending = keys.to_pylist()

        def can_hold(group: _RowGroup) -> bool:
            if group.most_lambda is not None and group.most_lambda < lam:
                return False
            if group.low is None or group.high is None:
                return True
            return bisect_left(ascending, group.low) < bisect_right(ascending, group.high)

        return [group for group in self.groups if can_hold(group)]

    def scan(self, groups: list[_RowGroup], columns: list[str], wanted: pc.Expression) -> Iterator[pa.RecordBatch]:
        """Batches of the rows wanted from these row groups."""
        if groups:
            fragments = [group.fragment for group in groups]
            part = ds.FileSystemDataset(fragments, self._table.schema, self._table.format, self._table.filesystem)
            yield from part.scanner(columns=columns, filter=wanted).to_batches()

    def find(self, key: int) -> dict[str, Any] | None:
        """The row of that key, from the one row group that can hold it, which is held for the next call."""
        for number, group in enumerate(self.groups):
            if group.low is None or group.low <= key <= group.high:
                rows = self._rows(number)
                at = int(np.searchsorted(rows[self._key].to_numpy(), key))
                if at < len(rows) and rows[self._key][at].as_py() == key:
                    return dict(rows.slice(at, 1).to_pylist()[0])
        return None

    def _rows(self, number: int) -> pa.Table:
        with self._lock:
            if number not in self._held:
                self._held[number] = self.groups[number].fragment.to_table().combine_chunks()
                while len(self._held) > _HELD_GROUPS:
                    self._held.popitem(last=False)
            self._held.move_to_end(number)
            return self._held[number]


class _Largest:
    """Rows of the hierarchy that come in a stream, of which the largest of each parent are kept."""

    COLUMNS = ("component", "k", "parent", "vertices", "edges")

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[str, NDArray[np.int64]] = {name: np.zeros(0, np.int64) for name in self.COLUMNS}
        self._counts: dict[int, tuple[int, int]] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in rows, with 0 in place of no parent."""
        rows = {name: pc.fill_null(batch[name], 0).to_numpy(zero_copy_only=False) for name in self.COLUMNS}
        parents, index = np.unique(rows["parent"], return_inverse=True)
        edges = np.zeros(len(parents), np.int64)
        np.add.at(edges, index, rows["edges"])
        for parent, count, sum_ in zip(parents.tolist(), np.bincount(index).tolist(), edges.tolist(), strict=True):
            before = self._counts.get(parent, (0, 0))
            self._counts[parent] = before[0] + count, before[1] + sum_
        both = {name: np.concatenate([self._kept[name], rows[name].astype(np.int64)]) for name in self.COLUMNS}
        order = np.lexsort((both["component"], -both["edges"], both["parent"]))
        parent = both["parent"][order]
        rank = np.arange(len(order)) - np.searchsorted(parent, parent)
        self._kept = {name: both[name][order[rank < self._most]] for name in self.COLUMNS}

    def by_parent(self, roots: bool) -> dict[int | None, Children]:
        """What was kept, with what was counted; `roots`: the rows had no parent."""
        found: dict[int, list[Component]] = {parent: [] for parent in self._counts}
        for component, k, parent, *sizes in zip(*(self._kept[name].tolist() for name in self.COLUMNS), strict=True):
            found[parent].append(Component(component, k, None if roots else parent, *sizes))
        return {None if roots else parent: Children(found[parent], *self._counts[parent]) for parent in found}


def _dn_graphs(rows: pa.Table) -> list[DNGraph]:
    names = ("id", "lambda", "vertices", "edges", "density", "triangles", "parent")
    return [DNGraph(*(row[name] for name in names)) for row in rows.to_pylist()]
