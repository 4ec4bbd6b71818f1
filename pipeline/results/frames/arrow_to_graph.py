"""Convert edges in Arrow batches to graphs of NetworkX and igraph, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...frames.optional import import_optional


def to_networkx(edges: Iterable[pa.RecordBatch], vertices: Iterable[pa.RecordBatch] = ()) -> Any:
    """A networkx.Graph.

    The first two columns of `edges` are the ends of each edge, the others are attributes of the edge. The first column
    of `vertices` is the node, the others are its attributes; nulls are left out. Raises UsageError if networkx is not
    installed.
    """
    graph = import_optional("networkx", "to_networkx()").Graph()
    for batch in vertices:
        ids, names = batch.column(0).to_pylist(), batch.schema.names[1:]
        graph.add_nodes_from(zip(ids, _attributes(batch, names, 1), strict=True))
    for batch in edges:
        ends, names = (batch.column(end).to_pylist() for end in (0, 1)), batch.schema.names[2:]
        graph.add_edges_from(zip(*ends, _attributes(batch, names, 2), strict=True))
    return graph


def forest_in_networkx(rows: Iterable[pa.RecordBatch], parent: str) -> Any:
    """A networkx.DiGraph with an arc from each parent to each child.

    The first column of `rows` is the node, the column `parent` is its parent, the others are attributes of the node.
    Raises UsageError if networkx is not installed.
    """
    graph = import_optional("networkx", "to_networkx()").DiGraph()
    for batch in rows:
        nodes = batch.column(0).to_pylist()
        attributes = batch.drop_columns([parent])
        graph.add_nodes_from(zip(nodes, _attributes(attributes, attributes.schema.names[1:], 1), strict=True))
        pairs = zip(batch.column(parent).to_pylist(), nodes, strict=True)
        graph.add_edges_from(pair for pair in pairs if pair[0] is not None)
    return graph


def to_igraph(edges: pa.Table, vertices: pa.Table | None = None) -> Any:
    """An undirected igraph.Graph. Ids are the attribute `name` of vertices; a column named `name` becomes `name_`.

    The first two columns of `edges` are the ends of each edge. The first column of `vertices` is the id. Without
    `vertices`, the vertices are the ends of the edges, ascending. Other columns are attributes. Raises UsageError if
    igraph is not installed.
    """
    igraph = import_optional("igraph", "to_igraph()")
    ends = [edges.column(end) for end in (0, 1)]
    if vertices is None:
        both = pa.chunked_array([chunk for end in ends for chunk in end.chunks], ends[0].type)
        ids = pc.unique(both)
        ids = ids.take(pc.sort_indices(ids))
        found: Any = ()
    else:
        ids = vertices.column(0).combine_chunks()
        found = _columns(vertices.select(vertices.column_names[1:])).items()
    pairs = np.stack([np.asarray(pc.index_in(end, ids), np.int64) for end in ends], axis=1)
    return igraph.Graph(
        n=len(ids),
        edges=pairs,
        vertex_attrs={"name": ids.to_pylist()} | {f"{name}_" if name == "name" else name: own for name, own in found},
        edge_attrs=_columns(edges.select(edges.column_names[2:])),
    )


def _columns(table: pa.Table) -> dict[str, list[Any]]:
    return {name: table[name].to_pylist() for name in table.column_names}


def _attributes(batch: pa.RecordBatch, names: list[str], first: int) -> Iterator[Mapping[str, Any]]:
    """For each row a mapping from name to value, of the columns from `first` on. Nulls are left out."""
    if not names:
        return ({} for _ in range(batch.num_rows))
    columns = [batch.column(first + at) for at in range(len(names))]
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    if not any(column.null_count for column in columns):
        return (dict(zip(names, row, strict=True)) for row in rows)
    return ({name: value for name, value in zip(names, row, strict=True) if value is not None} for row in rows)
