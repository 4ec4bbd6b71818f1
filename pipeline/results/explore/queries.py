"""The explorer's queries of a result's tables. Each has a bound on the rows that it reads or the memory that it needs.

The tables are sorted, so a look-up by id reads only the row groups whose statistics admit the id. The children of a
component, the largest DN-graphs and edges by their larger end are in no useful order: these queries read a table in
batches and keep few rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa
import pyarrow.dataset as ds

from ....tasks.errors import UsageError
from ....tasks.ids.display import display_id, parse_id
from ..lookup import SearchResult, sorted_table
from ..queries import dn_graph_members
from ..result import Result
from ..rows import Component, DNGraph, Vertex, find, path_to_root, rows_of
from ..top_k import top_k
from .children import Children, LargestChildren

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
        return rows_of(DNGraph, top_k(self.result, by, most))

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
