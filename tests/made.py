"""Results made by hand from λ of a few edges: any file cuts, row groups as small as one likes, and no run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq

from edgemill.pipeline import Result
from edgemill.pipeline.manifest import (
    BoundingRecord,
    Counts,
    DenseRecord,
    InputFile,
    InputRecord,
    LambdaRecord,
    Manifest,
    OutputRecord,
    versions,
    write_manifest,
)

Edge = tuple[Any, Any]
STARTED = datetime(2026, 11, 1, 12, tzinfo=UTC)


def dense_groups(lam: Mapping[Edge, int]) -> dict[frozenset[Edge], int]:
    """SLOW. The components of {λ ≥ k} for all k, as sets of edges, with the largest k of each."""
    found: dict[frozenset[Edge], int] = {}
    for k in range(max(lam.values(), default=-1) + 1):
        graph = nx.Graph([edge for edge, value in lam.items() if value >= k])
        for vertices in nx.connected_components(graph):
            found[frozenset((min(edge), max(edge)) for edge in graph.subgraph(vertices).edges)] = k
    return found


def made(
    folder: Path,
    lam: Mapping[Edge, int],
    *,
    id_type: pa.DataType | None = None,
    alone: Sequence[Any] = (),
    rows_per_file: int = 1000,
    rows_per_group: int = 1000,
    first_id: int = 5,
    dense: bool = True,
    names: tuple[str, str] = ("src", "dst"),
    converged: bool = True,
) -> Result:
    """A result with these λ, source < target, and vertices without edges; supports are made up.

    Ids of components descend from `first_id` by three, as those of larger edge sets come first.
    """
    kind = id_type or pa.int64()
    groups = dense_groups(lam)
    ordered = sorted(groups, key=lambda edges: (-len(edges), sorted(edges)))
    number = {edges: first_id - 3 * place for place, edges in enumerate(ordered)}
    vertices = {edges: {vertex for edge in edges for vertex in edge} for edges in groups}
    parent = {
        edges: min((other for other in groups if edges < other), key=len, default=None)  # they are nested
        for edges in groups
    }
    leaves = [edges for edges in groups if groups[edges] > 0 and edges not in parent.values()]
    triangles = {edges: sum(nx.triangles(nx.Graph(edges)).values()) // 3 for edges in leaves}
    ids = sorted({*alone, *(vertex for edge in lam for vertex in edge)})
    inner = {
        vertex: max((edges for edges in groups if vertex in vertices[edges]), key=groups.__getitem__, default=None)
        for vertex in ids
    }

    def upper(edges: frozenset[Edge]) -> int | None:
        above = parent[edges]
        return None if above is None else number[above]

    columns: dict[str, dict[str, tuple[pa.DataType, list[Any]]]] = {
        "edges": {
            names[0]: (kind, [edge[0] for edge in sorted(lam)]),
            names[1]: (kind, [edge[1] for edge in sorted(lam)]),
            "support": (pa.int32(), [lam[edge] + 1 for edge in sorted(lam)]),
            "lambda": (pa.int32(), [lam[edge] for edge in sorted(lam)]),
        },
        "vertices": {
            "id": (kind, ids),
            "degree": (pa.int64(), [sum(vertex in edge for edge in lam) for vertex in ids]),
            "triangles": (pa.int64(), [7] * len(ids)),
            "lambda": (pa.int32(), [max([0, *(lam[edge] for edge in lam if vertex in edge)]) for vertex in ids]),
        },
    }
    if dense:
        found = [inner[vertex] for vertex in ids]
        columns["vertices"]["component"] = pa.int64(), [None if edges is None else number[edges] for edges in found]
        rows = sorted(groups, key=number.__getitem__)
        columns["hierarchy"] = {
            "component": (pa.int64(), [number[edges] for edges in rows]),
            "k": (pa.int32(), [groups[edges] for edges in rows]),
            "parent": (pa.int64(), [upper(edges) for edges in rows]),
            "vertices": (pa.int64(), [len(vertices[edges]) for edges in rows]),
            "edges": (pa.int64(), [len(edges) for edges in rows]),
        }
        rows = sorted(leaves, key=number.__getitem__)
        sizes = [len(vertices[edges]) for edges in rows]
        columns["dn_graphs"] = {
            "id": (pa.int64(), [number[edges] for edges in rows]),
            "lambda": (pa.int32(), [groups[edges] for edges in rows]),
            "vertices": (pa.int64(), sizes),
            "edges": (pa.int64(), [len(edges) for edges in rows]),
            "density": (pa.float64(), [2 * len(edges) / (n * (n - 1)) for edges, n in zip(rows, sizes, strict=True)]),
            "triangles": (pa.int64(), [triangles[edges] for edges in rows]),
            "parent": (pa.int64(), [upper(edges) for edges in rows]),
        }
        members = [(number[edges], vertex) for edges in rows for vertex in sorted(vertices[edges])]
        columns["dn_graph_members"] = {
            "dn_graph": (pa.int64(), [graph for graph, _ in members]),
            "vertex": (kind, [vertex for _, vertex in members]),
        }
    outputs = []
    for name, parts in columns.items():
        table = pa.table([pa.array(values, type) for type, values in parts.values()], names=list(parts))
        outputs += _written(folder, name, table, rows_per_file, rows_per_group)
    histogram = [(value, sum(other == value for other in lam.values())) for value in sorted({*lam.values()})]
    manifest = Manifest(
        run="20261101T120000-abcdef",
        versions=versions(),
        settings={},
        started=STARTED,
        finished=STARTED + timedelta(seconds=1),
        input=InputRecord(
            files=[InputFile(path="edges.parquet", bytes=100, rows=len(lam))],
            id_type=str(kind),
            source_column=names[0],
            target_column=names[1],
        ),
        counts=Counts(
            rows=len(lam),
            self_loops=0,
            duplicates=0,
            nulls_dropped=0,
            edges=len(lam),
            vertices=len(ids),
            triangles=0,
        ),
        partitions=[],
        bounding=BoundingRecord(method="peel", steps=1, exchanges=0, evaluations=0),
        exchanges=[],
        stages=[],
        lam=LambdaRecord(max=max(lam.values(), default=0), sum=sum(lam.values()), histogram=histogram),
        converged=converged,
        dense=DenseRecord(
            components=len(groups),
            roots=sum(above is None for above in parent.values()),
            dn_graphs=len(leaves),
            members=sum(len(vertices[edges]) for edges in leaves),
        )
        if dense
        else None,
        outputs=outputs,
    )
    write_manifest(folder, manifest)
    return Result(folder)


def _written(folder: Path, name: str, table: pa.Table, rows_per_file: int, rows_per_group: int) -> list[OutputRecord]:
    (folder / name).mkdir(parents=True)
    outputs = []
    for number, start in enumerate(range(0, max(len(table), 1), rows_per_file)):
        path = folder / name / f"part-{number:05d}.parquet"
        rows = table.slice(start, rows_per_file)
        pq.write_table(rows, path, row_group_size=rows_per_group, write_page_checksum=True)
        content = path.read_bytes()
        outputs.append(
            OutputRecord(
                path=f"{name}/{path.name}",
                rows=len(rows),
                bytes=len(content),
                sha256=hashlib.sha256(content).hexdigest(),
            )
        )
    return outputs
