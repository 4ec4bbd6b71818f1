"""What the explorer asks of a result's tables, each with a bound on what it reads or holds.

The tables are sorted, so the statistics of their row groups tell which of them can hold an id: only these are read.
What no order helps with (children of a component, the largest DN-graphs, edges by their larger end) is read in a
stream, of which the few rows wanted are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa
import pyarrow.dataset as ds

from ...tasks.errors import UsageError
from ...tasks.spelling import parse_id, spelled
from ..asking import dn_graph_members
from ..foremost import foremost
from ..lookup import Found, look_up, reading
from ..result import Result
from ..rows import Component, DNGraph, Vertex, find, path, rows_of
from .children import Children, Largest

__all__ = ["ORDERS", "BadQuestion", "Queries"]

ORDERS = ("lambda", "vertices", "edges", "density", "triangles")
"""What DN-graphs can be ordered by, largest first."""

_HELD_ROWS = 1_000_000
"""A hierarchy of so many components, 36 MB, is held; a larger one is read for each question."""


class BadQuestion(UsageError):
    """What was asked has no answer in any result; a result that cannot be read is another error."""


class Queries:
    """Small questions to a result with tables of dense groups; safe to ask from several threads.

    Raises UsageError for a result without these tables, and InputError for a damaged one.
    """

    def __init__(self, result: Result) -> None:
        self.result = result
        _ = result.hierarchy, result.dn_graphs, result.dn_graph_members  # raise now, not at a question
        _ = result.vertices, result.edges

    @property
    def id_type(self) -> pa.DataType:
        """Arrow type of the ids of vertices."""
        return self.result.vertices.schema.field("id").type

    def parse_vertex(self, text: str) -> pa.Scalar:
        """A vertex's id as someone types it. Raises BadQuestion if no vertex can have that id."""
        try:
            return pa.scalar(parse_id(text, self.id_type), self.id_type)
        except ValueError:
            kind = f"numbers ({self.id_type})" if pa.types.is_integer(self.id_type) else "UUIDs"
            raise BadQuestion(f"vertices of this result are {kind}; {text[:80]!r} is none") from None

    def vertex(self, id: pa.Scalar) -> Vertex | None:
        """The vertex of that id."""
        return find(self.result, Vertex, id.as_py())

    def next_vertices(self, id: pa.Scalar, most: int) -> list[int | str]:
        """The ids that follow one, in the order of the table."""
        after = {"columns": ["id"], "filter": ds.field("id") > id, "batch_readahead": 1}
        with reading(self.result.place):
            return [spelled(id) for id in self.result.vertices.scanner(**after).head(most)["id"].to_pylist()]

    def component(self, id: int) -> Component | None:
        """A component by its id."""
        return find(self.result, Component, id)

    def path(self, id: int) -> list[Component]:
        """A component and all that hold it, innermost first; none if it is unknown."""
        return [] if self.component(id) is None else list(path(self.result, id))

    def children(self, parents: Sequence[int] | None, most: int) -> dict[int | None, Children]:
        """The `most` largest children of each of `parents` that has any; None: the connected components of the graph.

        One pass over the hierarchy, whatever the number of parents.
        """
        field = ds.field("parent")
        wanted = field.is_null() if parents is None else field.isin(pa.array(parents, pa.int64()))
        kept = Largest(most)
        with reading(self.result.place):
            for batch in self._components.to_batches(columns=list(Largest.COLUMNS), filter=wanted):
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
        return find(self.result, DNGraph, id)

    def largest_dn_graphs(self, by: str, most: int) -> list[DNGraph]:
        """The first `most` DN-graphs by one of ORDERS, largest first."""
        return rows_of(DNGraph, foremost(self.result, by, most))

    def members(self, dn_graph: int, most: int) -> pa.Array:
        """Ids of the vertices of a DN-graph, ascending; at most the first `most` that are stored."""
        return dn_graph_members(self.result, dn_graph, most)

    def edges_among(self, vertices: pa.Array, lam: int, most_rows: int, most_found: int) -> Found:
        """Edges of that λ between `vertices`, from the row groups that can hold some: their ids and λ."""
        source, target = (ds.field(name).isin(vertices) for name in self._columns[:2])
        edges = look_up(self.result, "edges")
        groups = [group for group, _ in edges.near(vertices, lam)]
        return edges.search(groups, source & target & (ds.field("lambda") == lam), self._columns, most_found, most_rows)

    def edges_around(self, vertices: pa.Array, lam: int, most_rows: int, most_found: int) -> Found:
        """Edges of some vertices of a DN-graph of λ `lam` that are not its own: their λ is smaller.

        Edges lie by their smaller end, and nothing tells where those of a larger one are: they are looked for in the
        row groups that cannot hold a smaller end, after those that can, as far as `most_rows` reaches.
        """
        source, target = (ds.field(name).isin(vertices) for name in self._columns[:2])
        edges = look_up(self.result, "edges")
        near = dict.fromkeys(group for group, _ in edges.near(vertices))
        groups = list(near | dict.fromkeys(edges.row_groups))
        return edges.search(
            groups, (source | target) & (ds.field("lambda") < lam), self._columns, most_found, most_rows
        )

    @property
    def _columns(self) -> list[str]:
        named = self.result.manifest.input
        return [named.source_column, named.target_column, "lambda"]
