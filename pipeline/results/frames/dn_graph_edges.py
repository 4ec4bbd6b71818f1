"""The edges and vertices inside several DN-graphs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def dn_graph_vertices(dn_graphs: pa.Table, members: pa.Table) -> pa.Table:
    """The vertices of some DN-graphs, as a table of `vertex`, `dn_graph`, `lambda`.

    `dn_graphs` has the columns `id` and `lambda`; `members` has all rows of the table dn_graph_members.
    """
    index = pc.index_in(members["dn_graph"], dn_graphs["id"].combine_chunks())
    inside = pc.is_valid(index)
    kept, index = members.filter(inside), index.filter(inside)
    columns = [kept["vertex"], kept["dn_graph"], dn_graphs["lambda"].take(index)]
    return pa.table(columns, names=["vertex", "dn_graph", "lambda"])


def dn_graph_edges(vertices: pa.Table, edges: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """The edges inside DN-graphs, as rows of `edges`. `vertices` come from `dn_graph_vertices`; `schema` is of `edges`.

    No edge with λ ≥ k leaves a DN-graph of that k, so the source and λ of an edge decide whether it is inside.
    """
    ids = vertices["vertex"].combine_chunks()
    least = vertices["lambda"].to_numpy()
    kept = []
    for batch in edges:
        index = pc.index_in(batch.column(0), ids)
        member = np.asarray(pc.is_valid(index))
        inside = member.copy()
        inside[member] = batch.column("lambda").to_numpy()[member] >= least[np.asarray(index.drop_null())]
        kept.append(batch.filter(pa.array(inside)))
    return pa.Table.from_batches(kept, schema)
