"""The explorer's queries of a result's tables. Each has a bound on the rows that it reads or the memory that it needs.

The tables are sorted, so a look-up by id reads only the row groups whose statistics admit the id. The children of a
component, the largest DN-graphs, edges by their larger end, and ids or labels that contain a text are in no useful
order: these queries read a table in batches and keep few rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray

from ...tasks.errors import UsageError
from ...tasks.ids.display import display_id, parse_id
from ..queries.attributes import label_column, labels_of
from ..queries.groups import dn_graph_members
from ..results.lookup import Component, DNGraph, SearchResult, Vertex, find, path_to_root, rows_of, sorted_table
from ..results.result import Result
from ..results.streaming import top_k


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

_CACHED_ROWS = 1_000_000
"""A hierarchy of at most this many components, 36 MB, stays in memory. A larger one is read for each query."""


class BadRequest(UsageError):
    """The request is wrong, whatever the result."""


class Queries:
    """Queries of a result with tables of dense groups. Several threads may use it at once.

    Raises UsageError for a result without these tables, and InputError for damage.
    """

    def __init__(self, result: Result) -> None:
        self.result = result
        if not result.manifest.has_lambda:
            names = ",".join(record.name for record in result.manifest.programs)
            raise UsageError(
                f"{result.place} was made without λ, and the explorer shows dense groups: edgemill show, top --by "
                f"COLUMN, of and report show columns of programs; for groups run again with --programs lambda,{names}"
            )
        _ = result.hierarchy, result.dn_graphs, result.dn_graph_members  # raise at the start, not in a query
        _ = result.vertices, result.edges

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
        return find(self.result, Component, id)

    def path(self, id: int) -> list[Component]:
        """A component and its ancestors, innermost first; empty if there is no such component."""
        return [] if self.component(id) is None else list(path_to_root(self.result, id))

    def children(self, parents: Sequence[int] | None, most: int) -> dict[int | None, Children]:
        """Parent → its `most` largest children, for each of `parents` with children, in one pass over the hierarchy.

        `parents` None asks for the connected components of the graph, under the key None.
        """
        field = ds.field("parent")
        where = field.is_null() if parents is None else field.isin(pa.array(parents, pa.int64()))
        largest = LargestChildren(most)
        with self.result.reading():
            for batch in self._components.to_batches(columns=list(LargestChildren.COLUMNS), filter=where):
                largest.add(batch)
        return largest.by_parent(parents is None)

    @property
    def components(self) -> int:
        """Number of rows of the hierarchy."""
        assert self.result.manifest.dense is not None
        return self.result.manifest.dense.components

    @cached_property
    def _components(self) -> ds.Dataset:
        table = self.result.hierarchy
        return ds.InMemoryDataset(table.to_table()) if self.components <= _CACHED_ROWS else table

    def dn_graph(self, id: int) -> DNGraph | None:
        """The DN-graph with that id, or None."""
        return find(self.result, DNGraph, id)

    def largest_dn_graphs(self, by: str, most: int) -> list[DNGraph]:
        """The first `most` DN-graphs by one of ORDERS, largest first."""
        column = self.result.manifest.measure if by == "triangles" else by
        return rows_of(DNGraph, top_k(self.result, column, most))

    def members(self, dn_graph: int, most: int) -> pa.Array:
        """The ids of the first `most` stored vertices of a DN-graph, ascending."""
        return dn_graph_members(self.result, dn_graph, most)

    def edges_among(self, vertices: pa.Array, lam: int, most_rows: int, most_found: int) -> SearchResult:
        """The ids and λ of the edges with λ = `lam` between `vertices`, from row groups that can hold such edges.

        Reads at most `most_rows` rows and returns at most `most_found` edges.
        """
        source, target = (ds.field(name).isin(vertices) for name in self._columns[:2])
        edges = sorted_table(self.result, "edges")
        groups = [group for group, _ in edges.near(vertices, lam)]
        return edges.search(groups, source & target & (ds.field("lambda") == lam), self._columns, most_found, most_rows)

    def edges_around(self, vertices: pa.Array, lam: int, most_rows: int, most_found: int) -> SearchResult:
        """The edges with λ < `lam` at `vertices`, which are vertices of a DN-graph of λ `lam`.

        Edges are sorted by their smaller end, and have no index by the larger one. Row groups that can hold one of
        `vertices` as the smaller end are read first, then all others until `most_rows` rows are read.
        """
        source, target = (ds.field(name).isin(vertices) for name in self._columns[:2])
        edges = sorted_table(self.result, "edges")
        near = dict.fromkeys(group for group, _ in edges.near(vertices))
        groups = list(near | dict.fromkeys(edges.row_groups))
        return edges.search(
            groups, (source | target) & (ds.field("lambda") < lam), self._columns, most_found, most_rows
        )

    @property
    def _columns(self) -> list[str]:
        named = self.result.manifest.input
        return [named.source_column, named.target_column, "lambda"]


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
