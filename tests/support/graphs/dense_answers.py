"""Dense groups computed differently from the product: SciPy's components at each level, and matrix products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from edgemill.pipeline import Result

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class DenseAnswers:
    """The tables, with vertices as positions among all of them."""

    hierarchy: Rows
    """component, k, parent (None), vertices, edges; sorted."""
    dn_graphs: Rows
    """id, lambda, vertices, edges, triangles, parent; sorted."""
    innermost: NDArray[np.int64]
    """[vertices] innermost component, -1 for none."""
    members: Rows
    """dn_graph, vertex; sorted."""


def dense_answers(
    low: NDArray[np.integer[Any]], high: NDArray[np.integer[Any]], level: NDArray[np.integer[Any]], vertices: int
) -> DenseAnswers:
    """The answers for edges between positions below `vertices`."""
    top = 1 << int(level.max(initial=0)).bit_length()
    innermost = np.full(vertices, -1)
    found: dict[int, list[Any]] = {}
    leaves: dict[int, bool] = {}
    outer = np.full(vertices, -1)  # the component, at its smallest vertex
    for k in sorted(set(level.tolist()), reverse=True):
        kept = level >= k
        graph = csr_array((np.ones(kept.sum(), np.int8), (low[kept], high[kept])), shape=(vertices, vertices))
        count, label = connected_components(graph, directed=False)
        touched = np.zeros(vertices, np.bool_)
        touched[low[kept]] = touched[high[kept]] = True
        sizes = np.bincount(label[touched], minlength=count)
        edges = np.bincount(label[low[kept]], minlength=count)
        _, least = np.unique(label, return_index=True)
        new = np.unique(label[low[level == k]])
        number = np.full(count, -1)
        number[new] = least[new] * top + k
        inside = np.flatnonzero(outer >= 0)
        inside = inside[number[label[inside]] >= 0]
        for x, around in zip(outer[inside].tolist(), number[label[inside]].tolist(), strict=True):
            found[x][2] = around
            leaves[around] = False
        outer[inside] = -1
        for c in new.tolist():
            x = int(number[c])
            found[x] = [x, k, None, int(sizes[c]), int(edges[c])]
            leaves.setdefault(x, True)
        outer[least[new]] = number[new]
        fresh = touched & (innermost < 0)
        innermost[fresh] = number[label[fresh]]

    graphs = {x for x, row in found.items() if leaves[x] and row[1] > 0}
    member = np.isin(innermost, list(graphs))
    own = (innermost[low] == innermost[high]) & member[low] & (level == innermost[low] % top)
    ones = np.ones(2 * int(own.sum()), np.int64)
    ends = (np.append(low[own], high[own]), np.append(high[own], low[own]))
    matrix = csr_array((ones, ends), shape=(vertices, vertices))
    around = np.asarray((matrix @ matrix).multiply(matrix).sum(axis=1)).ravel()
    triangles = dict.fromkeys(graphs, 0)
    for x, value in zip(innermost[member].tolist(), around[member].tolist(), strict=True):
        triangles[x] += value
    return DenseAnswers(
        sorted(tuple(row) for row in found.values()),
        sorted((x, k, v, e, triangles[x] // 6, parent) for x, k, parent, v, e in found.values() if x in graphs),
        innermost,
        sorted(zip(innermost[member].tolist(), np.flatnonzero(member).tolist(), strict=True)),
    )


def check_dense(result: Result) -> DenseAnswers:
    """Check that the tables of dense groups follow from the published λ."""
    edges, vertices = result.edges.to_table(), result.vertices.to_table()
    ids = vertices["id"].to_pylist()
    place = {vertex: number for number, vertex in enumerate(ids)}
    low, high = (np.array([place[end] for end in edges[name].to_pylist()], np.int64) for name in edges.column_names[:2])
    known = dense_answers(low, high, edges["lambda"].to_numpy(), len(ids))
    assert rows(result.hierarchy.to_table()) == known.hierarchy
    graphs = result.dn_graphs.to_table()
    assert rows(graphs.drop_columns(["density", "track"])) == known.dn_graphs
    size = graphs["vertices"].to_numpy()
    assert np.allclose(graphs["density"].to_numpy(), 2 * graphs["edges"].to_numpy() / (size * (size - 1)))
    assert vertices["component"].to_pylist() == [None if x < 0 else x for x in known.innermost.tolist()]
    members = result.dn_graph_members.to_table()
    assert sorted((graph, place[vertex]) for graph, vertex in rows(members)) == known.members
    for file in result.dn_graph_members.get_fragments():
        own = [(graph, place[vertex]) for graph, vertex in rows(file.to_table())]
        assert own == sorted(own)
    dense = result.manifest.dense
    assert dense is not None
    roots = sum(row[2] is None for row in known.hierarchy)
    counts = (len(known.hierarchy), roots, len(known.dn_graphs), len(known.members))
    assert (dense.components, dense.roots, dense.dn_graphs, dense.members) == counts
    return known


def rows(table: pa.Table) -> Rows:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
