"""The k-truss of a result for one k, and its connected components.

k is defined as in NetworkX and cuGraph: each edge of the k-truss is in at least k - 2 triangles of the k-truss. So its
edges are those with λ ≥ k - 2 (Cohen, Trusses: cohesive subgraphs for social network analysis, 2008).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import takewhile
from typing import SupportsIndex

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ...tasks.errors import UsageError
from ..results.lookup import Group, RowGroup, path_to_root, sorted_table
from ..results.result import Result, ResultOrPath, open_result, plain_id
from ..settings.setting_names import naming_keywords
from .group_edges import GroupEdges
from .groups import edges_of, find_group

_GROUPS = pa.schema(
    [
        ("component", pa.int64()),
        ("vertices", pa.int64()),
        ("edges", pa.int64()),
        ("density", pa.float64()),
        ("highest_k", pa.int64()),
    ]
)


@naming_keywords()
def ktruss(result: ResultOrPath, k: int, component: SupportsIndex | None = None) -> GroupEdges:
    """The edges of the k-truss, as rows of `Result.edges`, in their order: the edges with λ ≥ k - 2.

    Every edge of the k-truss is in at least k - 2 triangles of the k-truss, as in `networkx.k_truss`. `component`, an
    id of `ktruss_groups(result, k)`, selects one connected component. Row groups without such edges are not read. One
    batch is in memory at a time, and with `component` its vertices. The answer is read, or converted to a frame or a
    graph, as that of `edges_of`.

    Raises UsageError for k < 2, for a component that is not one of the k-truss, and for a run that did not converge;
    InputError for damage, also while batches are read.
    """
    result = open_result(result)
    level = _level(result, k)
    if component is not None:
        return edges_of(result, truss_group(result, k, plain_id(component, "the id of a component")))
    return GroupEdges(result.edges.schema, partial(_edges, result, level), partial(_pieces, result, level))


def _pieces(result: Result, level: int) -> list[tuple[ds.ParquetFileFragment, pc.Expression]]:
    where = pc.field("lambda") >= level
    return [(row_group.fragment, where) for row_group in _row_groups(result, level)]


@naming_keywords()
def ktruss_groups(result: ResultOrPath, k: int) -> pa.Table:
    """The connected components of the k-truss, largest first.

    Columns: `component` (int64, its id in the hierarchy), `vertices` and `edges` (int64), `density` (float64, the share
    of the pairs of its vertices that are edges), `highest_k` (int64, the largest k for which the same edges are a
    component of the k-truss). Sorted by edges, then vertices, largest first, then by id. The components of the
    hierarchy at this level and above are in memory. Raises as `ktruss` does.
    """
    result = open_result(result)
    level = _level(result, k)
    with result.reading():
        rows = result.hierarchy.to_table(filter=pc.field("k") >= level)
    # A component whose parent is at this level too is part of that larger component.
    rows = rows.filter(pc.invert(pc.is_in(rows["parent"], value_set=rows["component"])))
    vertices, edges = (rows[name].to_numpy() for name in ("vertices", "edges"))
    columns = [
        rows["component"],
        rows["vertices"],
        rows["edges"],
        pa.array(2 * edges / (vertices.astype(np.float64) * (vertices - 1))),
        pa.array(rows["k"].to_numpy().astype(np.int64) + 2),
    ]
    order = [("edges", "descending"), ("vertices", "descending"), ("component", "ascending")]
    return pa.table(columns, schema=_GROUPS).sort_by(order)


def truss_group(result: Result, k: int, component: int) -> Group:
    """The connected component of the k-truss with the id `component`. Raises as `ktruss` does."""
    level = _level(result, k)
    group = find_group(result, component)
    listed = f"edgemill ktruss {result.place} -k {k} --list lists the components"
    if group.k < level:
        raise UsageError(f"component {component} is not in the {k}-truss, as its highest k is {group.k + 2}: {listed}")
    *_, whole = takewhile(lambda around: around.k >= level, path_to_root(result, component))
    if whole.component != component:
        raise UsageError(
            f"component {component} is part of component {whole.component} of the {k}-truss: name component "
            f"{whole.component}, or write the part alone by edgemill subgraph --component {component}"
        )
    return group


def truss_vertices(result: Result, k: int) -> Iterator[pa.Array]:
    """The ids of the vertices of the k-truss, ascending, in batches. Raises as `ktruss` does."""
    level = _level(result, k)
    table = sorted_table(result, "vertices")
    groups = [group for group in table.row_groups if group.bounds.get("lambda", (0, level))[1] >= level]
    where = (pc.field("lambda") >= level) & (pc.field("degree") > 0)
    for batch in table.scan(groups, where, ["id"]):
        yield batch["id"]


def _edges(result: Result, level: int) -> Iterator[pa.RecordBatch]:
    edges = sorted_table(result, "edges")
    for row_group in _row_groups(result, level):
        for batch in edges.scan([row_group], pc.field("lambda") >= level):
            if batch.num_rows:
                yield batch


def _row_groups(result: Result, level: int) -> list[RowGroup]:
    row_groups = sorted_table(result, "edges").row_groups
    return [row_group for row_group in row_groups if row_group.bounds.get("lambda", (0, level))[1] >= level]


def _level(result: Result, k: int) -> int:
    """The smallest λ of an edge of the k-truss."""
    if k < 2:
        raise UsageError(f"k must be at least 2, got {k}; the 2-truss is all edges")
    if not result.manifest.has_lambda:
        raise UsageError(f"{result.place} was made without λ, so it has no {k}-truss: run again with --programs lambda")
    if result.manifest.input.two_sided:
        raise UsageError(
            f"λ of {result.place} counts butterflies, and a {k}-truss is made of triangles: edgemill top and of list "
            "its groups"
        )
    if not result.manifest.exact:
        raise UsageError(
            f"{result.place} did not converge, so the edges of its {k}-truss are not known: run again without limits"
        )
    return k - 2
