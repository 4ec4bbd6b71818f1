"""The explorer's queries of a result's tables. Each has a bound on the rows that it reads or the memory that it needs.

The tables are sorted, so a look-up by id reads only the row groups whose statistics admit the id. The children of a
component, the largest DN-graphs, edges by their larger end, and ids or labels that contain a text are in no useful
order: these queries read a table in batches and keep few rows. For a program, the list of its groups is in memory, and
the members of a group take a scan of the vertices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray

from ...tasks.errors import UsageError
from ...tasks.ids.display import display_id, parse_id
from ..queries.attributes import label_column, labels_of
from ..queries.groups import dn_graph_members, first_members, member_ids
from ..results.listed_groups import ListedGroups, listed_groups
from ..results.lookup import (
    Component,
    DNGraph,
    Group,
    SearchResult,
    Vertex,
    find,
    find_component,
    path_to_root,
    rows_of,
    sorted_groups,
    sorted_table,
)
from ..results.result import Result
from ..results.streaming import top_k
from ..settings.declared_programs import LAMBDA


@dataclass(frozen=True)
class DrawnGroup:
    """A group that the page can draw: a DN-graph, or any group of a program."""

    group: Group
    density: float
    triangles: int | None = None
    """Triangles, or butterflies, inside a DN-graph; None for a group of a program."""
    track: int | None = None


@dataclass(frozen=True)
class Children:
    """The children of one component."""

    largest: list[Component]
    """The largest children by edges, largest first."""
    count: int
    """The number of all children."""
    edges: int
    """Edges of all children."""


class LargestChildren:
    """Collects the `most` largest children of each parent from rows of the hierarchy."""

    COLUMNS = ("component", "k", "parent", "vertices", "edges")

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[str, NDArray[np.int64]] = {name: np.zeros(0, np.int64) for name in self.COLUMNS}
        self._counts: dict[int, tuple[int, int]] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows of the hierarchy. A null parent counts as 0."""
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
        """Parent → its children. `roots` says that the rows had no parent: their parent is then None."""
        found: dict[int, list[Component]] = {parent: [] for parent in self._counts}
        for component, k, parent, *sizes in zip(*(self._kept[name].tolist() for name in self.COLUMNS), strict=True):
            found[parent].append(Component(component, k, None if roots else parent, *sizes))
        return {None if roots else parent: Children(found[parent], *self._counts[parent]) for parent in found}


ORDERS = ("lambda", "vertices", "edges", "density", "triangles")
"""Orders of DN-graphs, largest first."""
PROGRAM_ORDERS = ("vertices", "edges", "density")
"""Orders of the groups of a program, largest first."""

_CACHED_ROWS = 1_000_000
"""A hierarchy of at most this many components, 36 MB, stays in memory. A larger one is read for each query."""


class BadRequest(UsageError):
    """The request is wrong, whatever the result."""


def kinds_of(result: Result) -> list[str]:
    """The groups that a result has: those of λ ("lambda"), and the names of programs that found some."""
    return [LAMBDA, *(record.name for record in result.manifest.programs if record.group_column is not None)]


class Queries:
    """Queries of a result with tables of dense groups, and of one kind of its groups: one of `kinds_of`. Several
    threads may use it at once.

    Raises UsageError for a result without these tables, and InputError for damage.
    """

    def __init__(self, result: Result, groups: str = LAMBDA) -> None:
        self.result = result
        self.groups = groups
        if not result.manifest.has_lambda:
            names = ",".join(record.name for record in result.manifest.programs)
            raise UsageError(
                f"{result.place} was made without λ, and the explorer shows dense groups: edgemill show, top --by "
                f"COLUMN, of and report show columns of programs; for groups run again with --programs lambda,{names}"
            )
        _ = result.hierarchy, result.dn_graphs, result.dn_graph_members  # raise at the start, not in a query
        _ = result.vertices, result.edges, result.table(result.groups_table(groups))

    @property
    def of_lambda(self) -> bool:
        """Whether the groups are those of λ."""
        return self.groups == LAMBDA

    @property
    def orders(self) -> tuple[str, ...]:
        """The orders of the list of groups; the first is the default."""
        return ORDERS if self.of_lambda else PROGRAM_ORDERS

    @property
    def id_type(self) -> pa.DataType:
        """Arrow type of the vertices' ids."""
        return self.result.vertices.schema.field("id").type

    def parse_vertex(self, text: str) -> pa.Scalar:
        """Parse the id of a vertex from text. Raises BadRequest if the text cannot be an id."""
        try:
            return pa.scalar(parse_id(text, self.id_type), self.id_type)
        except ValueError:
            kind = f"numbers ({self.id_type})" if pa.types.is_integer(self.id_type) else "UUIDs"
            raise BadRequest(f"ids of this result are {kind}, and {text[:80]!r} is not") from None

    def vertex(self, id: pa.Scalar) -> Vertex | None:
        """The vertex with that id, or None."""
        return find(self.result, Vertex, id.as_py())

    def next_vertices(self, id: pa.Scalar, most: int) -> list[int | str]:
        """The `most` ids that follow `id` in the table."""
        after = {"columns": ["id"], "filter": ds.field("id") > id, "batch_readahead": 1}
        with self.result.reading():
            return [display_id(id) for id in self.result.vertices.scanner(**after).head(most)["id"].to_pylist()]

    def component(self, id: int) -> Component | None:
        """The component with that id, or None."""
        return find_component(self.result, self.groups, id)

    def path(self, id: int) -> list[Component]:
        """A component and its ancestors, innermost first; empty if there is no such component."""
        return [] if self.component(id) is None else list(path_to_root(self.result, id, self.groups))

    def innermost(self, vertex: Vertex) -> int | None:
        """The id of the innermost group of a vertex, or None."""
        if self.of_lambda:
            return vertex.component
        found: int | None = vertex.values[str(self.result.groups_record(self.groups).group_column)]
        return found

    def listed_group(self, vertex: Vertex) -> DrawnGroup | None:
        """The group of the list that contains a vertex, or None."""
        inner = self.innermost(vertex)
        if not self.of_lambda:
            inner = self._listed.of_vertices(pa.array([inner], pa.int64()))[0].as_py()
        return None if inner is None else self.drawn_group(inner)

    def children(self, parents: Sequence[int] | None, most: int) -> dict[int | None, Children]:
        """Parent → its `most` largest children, for each of `parents` with children, in one pass over the hierarchy.

        `parents` None asks for the connected components of the graph, under the key None.
        """
        field = ds.field("parent")
        where = field.is_null() if parents is None else field.isin(pa.array(parents, pa.int64()))
        largest = LargestChildren(most)
        with self.result.reading():
            for batch in self._components.to_batches(columns=self._component_columns, filter=where):
                largest.add(batch)
        return largest.by_parent(parents is None)

    @property
    def components(self) -> int:
        """Number of rows of the hierarchy."""
        table = self.result.groups_table(self.groups)
        return sum(own.rows for own in self.result.manifest.outputs if PurePosixPath(own.path).parent.name == table)

    @cached_property
    def _components(self) -> ds.Dataset:
        table = self.result.table(self.result.groups_table(self.groups))
        return ds.InMemoryDataset(table.to_table()) if self.components <= _CACHED_ROWS else table

    @property
    def _component_columns(self) -> dict[str, pc.Expression]:
        """The columns that LargestChildren needs. Tables of programs name the first one otherwise."""
        names = self.result.table(self.result.groups_table(self.groups)).schema.names
        return dict(zip(LargestChildren.COLUMNS, map(ds.field, names), strict=False))

    @cached_property
    def _listed(self) -> ListedGroups:
        """The groups of a program that are listed."""
        return listed_groups(self.result, self.groups)

    @property
    def count(self) -> int:
        """Number of groups that are listed."""
        if not self.of_lambda:
            return len(self._listed.rows)
        assert self.result.manifest.dense is not None
        return self.result.manifest.dense.dn_graphs

    def drawn_group(self, id: int) -> DrawnGroup | None:
        """The DN-graph with that id, or the group of the program; None without one."""
        if self.of_lambda:
            found = find(self.result, DNGraph, id)
            return None if found is None else _drawn(found)
        row = sorted_groups(self.result, self.groups).row(id)
        return None if row is None else self._drawn_of_program(row)

    def _drawn_of_program(self, row: Mapping[str, Any]) -> DrawnGroup:
        id, k, parent, vertices, edges = (row[name] for name in ("id", "k", "parent", "vertices", "edges"))
        group = Group(id, k, parent, vertices, edges, dn_graph=False, groups=self.groups)
        return DrawnGroup(group, row["density"], track=row.get("track"))

    def largest(self, by: str, most: int) -> list[DrawnGroup]:
        """The first `most` groups of the list by one of `orders`, largest first."""
        if not self.of_lambda:
            return [self._drawn_of_program(row) for row in self._listed.largest(by, most).to_pylist()]
        column = self.result.manifest.measure if by == "triangles" else by
        return [_drawn(found) for found in rows_of(DNGraph, top_k(self.result, column, most))]

    def members(self, group: Group, most: int) -> pa.Array:
        """The ids of the first `most` vertices of a group, ascending; of a DN-graph the first that are stored."""
        if group.dn_graph:
            return dn_graph_members(self.result, group.component, min(most, group.vertices))
        return member_ids(self.result, group).slice(0, most)

    def some_members(self, groups: Sequence[Group], most: int) -> list[pa.Array]:
        """The first `most` members of each of some groups of the list."""
        if self.of_lambda:
            return [self.members(group, most) for group in groups]
        found = first_members(self.result, self._listed, [group.component for group in groups], most)
        return [found[group.component] for group in groups]

    def edges_among(self, vertices: pa.Array, group: Group, most_rows: int, most_found: int) -> SearchResult:
        """The ids and λ of the edges of a group between `vertices`, which are some of its vertices. For a DN-graph
        these are edges of its λ.

        Reads at most `most_rows` rows, of row groups that can hold such edges, and returns at most `most_found` edges.
        """
        source, target = (ds.field(name).isin(vertices) for name in self._columns[:2])
        own = source & target & (ds.field("lambda") == group.k) if self.of_lambda else source & target
        edges = sorted_table(self.result, "edges")
        near = [part for part, _ in edges.near(vertices, group.k if self.of_lambda else 0)]
        return edges.search(near, own, self._columns, most_found, most_rows)

    def edges_around(self, vertices: pa.Array, group: Group, most_rows: int, most_found: int) -> SearchResult:
        """The edges at `vertices`, some of a group's, that are not edges of the group. For a DN-graph these are edges
        of a smaller λ, also between two of its vertices.

        Edges are sorted by their smaller end, and have no index by the larger one. Row groups that can hold one of
        `vertices` as the smaller end are read first, then all others until `most_rows` rows are read.
        """
        source, target = (ds.field(name) for name in self._columns[:2])
        if self.of_lambda:
            outside = (source.isin(vertices) | target.isin(vertices)) & (ds.field("lambda") < group.k)
        else:
            members = vertices if len(vertices) == group.vertices else member_ids(self.result, group)
            outside = (source.isin(vertices) & ~target.isin(members)) | (target.isin(vertices) & ~source.isin(members))
        edges = sorted_table(self.result, "edges")
        near = dict.fromkeys(part for part, _ in edges.near(vertices))
        parts = list(near | dict.fromkeys(edges.row_groups))
        return edges.search(parts, outside, self._columns, most_found, most_rows)

    @property
    def _columns(self) -> list[str]:
        named = self.result.manifest.input
        return [named.source_column, named.target_column, "lambda"]


def _drawn(found: DNGraph) -> DrawnGroup:
    group = Group(found.id, found.lam, found.parent, found.vertices, found.edges, dn_graph=True)
    return DrawnGroup(group, found.density, found.triangles, found.track)


MOST_MATCHES = 50
"""Vertices that one search finds."""
MOST_ROWS = 50_000_000
"""Rows of a table that one search reads, which takes seconds."""


@dataclass(frozen=True)
class Match:
    """A vertex that was found."""

    vertex: Vertex
    label: str | None

    @property
    def id(self) -> str:
        """The vertex's id as text."""
        return str(display_id(self.vertex.id))


@dataclass(frozen=True)
class Matches:
    """The vertices that a search found."""

    found: list[Match]
    """Matches of a whole id or label first, then of its beginning, then the others; each in the order of the table."""
    more: bool
    """Whether there may be more, because the search stopped at one of its bounds."""


def search(result: Result, text: str, id: int | str | None = None) -> Matches:
    """The vertices with `text` in their id or label, ignoring case, and the vertex `id`; at most MOST_MATCHES.

    Ids are searched if they are text or integers. Raises InputError for damage.
    """
    ids: dict[Any, None] = {} if id is None else {id: None}
    more = False
    label = label_column(result)
    for table, column in (("attributes", label), ("vertices", "id")):
        if column is None:
            continue
        found, stopped = _matching(result, table, column, text)
        ids.update(dict.fromkeys(found))
        more |= stopped
    chosen = list(ids)[:MOST_MATCHES]
    rows = [find(result, Vertex, id) for id in chosen]
    labels = labels_of(result, chosen)
    matches = [Match(row, name) for row, name in zip(rows, labels, strict=True) if row is not None]
    matches.sort(key=lambda match: _rank(match, text.casefold()))
    return Matches(matches, more or len(ids) > len(chosen))


def _matching(result: Result, table: str, column: str, text: str) -> tuple[list[Any], bool]:
    """The ids of the first rows with the text in `column`, and whether there may be more rows."""
    field, kind = ds.field(column), getattr(result, table).schema.field(column).type
    if pa.types.is_integer(kind):
        field = field.cast(pa.string())
    elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return [], False
    where = pc.match_substring(field, text, ignore_case=True)
    rows = sorted_table(result, table)
    found = rows.search(rows.row_groups, where, ["id"], MOST_MATCHES, MOST_ROWS)
    return found.table["id"].to_pylist(), found.more_rows or found.full


def _rank(match: Match, text: str) -> int:
    names = [match.id.casefold(), (match.label or "").casefold()]
    return 0 if text in names else 1 if any(name.startswith(text) for name in names) else 2
