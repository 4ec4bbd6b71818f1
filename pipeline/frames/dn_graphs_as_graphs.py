"""The edges and vertices inside DN-graphs, of all at once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["dn_graph_edges", "dn_graph_vertices"]


def dn_graph_vertices(dn_graphs: pa.Table, members: pa.Table) -> pa.Table:
    """The vertices of some DN-graphs: `vertex`, `dn_graph`, `lambda`.

    `dn_graphs` has the columns `id` and `lambda`; `members` are all rows of the table dn_graph_members.
    """
    place = pc.index_in(members["dn_graph"], dn_graphs["id"].combine_chunks())
    inside = pc.is_valid(place)
    kept, place = members.filter(inside), place.filter(inside)
    columns = [kept["vertex"], kept["dn_graph"], dn_graphs["lambda"].take(place)]
    return pa.table(columns, names=["vertex", "dn_graph", "lambda"])


def dn_graph_edges(vertices: pa.Table, edges: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """The edges inside the DN-graphs of these vertices, as rows of `edges`, whose schema is given.

    No edge of λ ≥ k leads out of a DN-graph of that k, so the source and λ of an edge tell whether it is inside.
    """
    ids = vertices["vertex"].combine_chunks()
    least = vertices["lambda"].to_numpy()
    kept = []
    for batch in edges:
        place = pc.index_in(batch.column(0), ids)
        member = np.asarray(pc.is_valid(place))
        inside = member.copy()
        inside[member] = batch.column("lambda").to_numpy()[member] >= least[np.asarray(place.drop_null())]
        kept.append(batch.filter(pa.array(inside)))
    return pa.Table.from_batches(kept, schema)
