"""Results written from given λ of a few edges, without a run, with any files and row groups."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import oracles
from edge_values import edge_values
from edgemill.pipeline import Result
from edgemill.pipeline.output.manifest import (
    BoundingRecord,
    Counts,
    DenseRecord,
    InputFile,
    InputRecord,
    LambdaRecord,
    Manifest,
    OutputRecord,
    ProgramRecord,
    TracksRecord,
    VerticesRecord,
    versions,
    write_manifest,
)
from edgemill.pipeline.settings.declared_programs import shipped, shipped_names

Edge = tuple[Any, Any]
STARTED = datetime(2026, 11, 1, 12, tzinfo=UTC)


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
    attributes: Mapping[str, tuple[pa.DataType, Mapping[Any, Any]]] | None = None,
    label: str | None = None,
    tracks: bool = True,
    programs: Mapping[str, Mapping[str, tuple[pa.DataType, Mapping[Any, Any]]]] | None = None,
    settings: Mapping[str, Any] | None = None,
    searched: bool = True,
) -> Result:
    """A result with these λ (source < target) and vertices without edges. Supports are made up.

    `programs` are the columns of each, as types and values by vertex; `settings` are the parameters of all of them.
    Without `searched` the result has no λ, as that of a run of programs alone.

    `attributes` are types and values by vertex, of which `label` is shown beside ids.

    Ids of components descend from `first_id` by three, as those of larger edge sets come first. Without `tracks` it is
    as of an earlier release.
    """
    kind = id_type or pa.int64()
    groups = oracles.networkx_hierarchy(dict(lam))
    ordered = sorted(groups, key=lambda edges: (-len(edges), sorted(edges)))
    number: dict[frozenset[Edge] | None, int | None] = {None: None}
    number |= {edges: first_id - 3 * place for place, edges in enumerate(ordered)}
    leaves = {edges for _, edges in oracles.maximal_dn_graphs(dict(lam))}
    ids = sorted({*alone, *(vertex for edge in lam for vertex in edge)})
    home: dict[Any, frozenset[Edge]] = {}
    for edges, own in sorted(groups.items(), key=lambda item: item[1].k):
        home |= dict.fromkeys(own.vertices, edges)
    columns: dict[str, dict[str, tuple[pa.DataType, list[Any]]]] = {
        "edges": {
            names[0]: (kind, [edge[0] for edge in sorted(lam)]),
            names[1]: (kind, [edge[1] for edge in sorted(lam)]),
            **edge_values([lam[edge] + 1 for edge in sorted(lam)], [lam[edge] for edge in sorted(lam)]),
        },
        "vertices": {
            "id": (kind, ids),
            "degree": (pa.int64(), [sum(vertex in edge for edge in lam) for vertex in ids]),
            "triangles": (pa.int64(), [7] * len(ids)),
            "lambda": (pa.int32(), [max([0, *(lam[edge] for edge in lam if vertex in edge)]) for vertex in ids]),
        },
    }
    if dense:
        columns["vertices"]["component"] = pa.int64(), [number[home.get(vertex)] for vertex in ids]
        ascending = sorted(groups, key=lambda edges: number[edges] or 0)
        columns["hierarchy"] = {
            "component": (pa.int64(), [number[edges] for edges in ascending]),
            "k": (pa.int32(), [groups[edges].k for edges in ascending]),
            "parent": (pa.int64(), [number[groups[edges].parent] for edges in ascending]),
            "vertices": (pa.int64(), [len(groups[edges].vertices) for edges in ascending]),
            "edges": (pa.int64(), [len(edges) for edges in ascending]),
        }
        graphs = [edges for edges in ascending if edges in leaves]
        sizes = [len(groups[edges].vertices) for edges in graphs]
        columns["dn_graphs"] = {
            "id": (pa.int64(), [number[edges] for edges in graphs]),
            "lambda": (pa.int32(), [groups[edges].k for edges in graphs]),
            "vertices": (pa.int64(), sizes),
            "edges": (pa.int64(), [len(edges) for edges in graphs]),
            "density": (pa.float64(), [2 * len(edges) / (n * (n - 1)) for edges, n in zip(graphs, sizes, strict=True)]),
            "triangles": (pa.int64(), [len(oracles.brute_force_triangles(edges)) for edges in graphs]),
            "parent": (pa.int64(), [number[groups[edges].parent] for edges in graphs]),
        }
        if tracks:
            columns["dn_graphs"]["track"] = pa.int64(), list(range(1, len(graphs) + 1))
        members = [(number[edges], vertex) for edges in graphs for vertex in sorted(groups[edges].vertices)]
        columns["dn_graph_members"] = {
            "dn_graph": (pa.int64(), [graph for graph, _ in members]),
            "vertex": (kind, [vertex for _, vertex in members]),
        }
    if not searched:
        columns = {"vertices": {name: columns["vertices"][name] for name in ("id", "degree")}}
        dense = tracks = False
    for program in (programs or {}).values():
        for name, (type, values) in program.items():
            columns["vertices"][name] = type, [values.get(id) for id in ids]
    if attributes is not None:
        given = {name: (type, [values.get(id) for id in ids]) for name, (type, values) in attributes.items()}
        columns["attributes"] = {"id": (kind, ids), **given}
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
            vertices=_vertices_record(attributes, label, ids),
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
        how_bounded=BoundingRecord(method="peel", steps=1, exchanges=0, evaluations=0) if searched else None,
        exchanges=[],
        stages=[],
        lambda_low=LambdaRecord(max=max(lam.values(), default=0), sum=sum(lam.values()), histogram=histogram)
        if searched
        else None,
        lambda_high=None if converged else LambdaRecord(max=len(lam), sum=0, histogram=[]),
        converged=converged,
        dense=DenseRecord(
            components=len(groups),
            roots=sum(own.parent is None for own in groups.values()),
            dn_graphs=len(leaves),
            members=sum(len(groups[edges].vertices) for edges in leaves),
        )
        if dense
        else None,
        tracks=TracksRecord(previous=None, continued=0, again=0, new=len(leaves), next=len(leaves) + 1)
        if dense and tracks
        else None,
        outputs=outputs,
        programs=[_program_record(name, [*own], settings or {}) for name, own in (programs or {}).items()],
    )
    write_manifest(folder, manifest)
    return Result(folder)


def _program_record(name: str, columns: list[str], settings: Mapping[str, Any]) -> ProgramRecord:
    return ProgramRecord(
        name=name,
        parameters=dict(settings),
        columns=columns,
        id_columns=_id_columns(name),
        supersteps=3,
        converged=True,
        moved=0,
        groups=1,
        carrier="memory",
        entries=10,
        bytes=0,
        seconds=0.5,
    )


def _vertices_record(
    attributes: Mapping[str, tuple[pa.DataType, Mapping[Any, Any]]] | None, label: str | None, ids: Sequence[Any]
) -> VerticesRecord | None:
    if attributes is None:
        return None
    known = {id for _, values in attributes.values() for id in values}
    return VerticesRecord(
        files=[InputFile(path="people.parquet", bytes=100, rows=len(known))],
        id_column="id",
        columns=list(attributes),
        label=label,
        rows=len(known),
        unknown=len(known - {*ids}),
        missing=len({*ids} - known),
    )


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


def _id_columns(program: str) -> list[str]:
    """The columns of ids of a program, if it is one of edgemill."""
    own = shipped(program).columns if program in shipped_names() else ()
    return [column.name for column in own if column.kind == "id"]
