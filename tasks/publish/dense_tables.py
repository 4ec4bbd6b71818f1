"""The tables of the dense groups of one bucket: hierarchy, DN-graphs and their members."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..dense import BucketGroups
from ..dense.merge import HierarchyRows
from ..ids import identity
from ..ids.id_types import from_internal
from ..ids.identity import Ids
from .tables import SIDE_FIELD, sides_of, slices, slices_by_text
from .writing import OutputFile, TableOptions, write_table

_HIERARCHY = pa.schema(
    [
        ("component", pa.int64()),
        ("k", pa.int32()),
        ("parent", pa.int64()),
        ("vertices", pa.int64()),
        ("edges", pa.int64()),
    ]
)
_DN_GRAPHS = pa.schema(
    [
        ("id", pa.int64()),
        ("lambda", pa.int32()),
        ("vertices", pa.int64()),
        ("edges", pa.int64()),
        ("density", pa.float64()),
        ("triangles", pa.int64()),
        ("parent", pa.int64()),
        ("track", pa.int64()),
    ]
)
_BICLIQUES = pa.schema(
    [pa.field("butterflies", own.type) if own.name == "triangles" else own for own in _DN_GRAPHS]
).append(pa.field("left_vertices", pa.int64()))
"""Columns of DN-graphs of a graph with two sides."""
GROUPS_OF_PROGRAM = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.int32()),
        ("parent", pa.int64()),
        ("vertices", pa.int64()),
        ("edges", pa.int64()),
        ("density", pa.float64()),
        ("is_leaf", pa.bool_()),
        ("track", pa.int64()),
    ]
)
_MEMBERS = pa.schema([("dn_graph", pa.int64())])


@dataclass(frozen=True)
class GroupTable:
    """One of the tables of the groups of a bucket. `len()` counts rows."""

    name: str
    schema: pa.Schema
    keys: int
    """The rows ascend by this many columns."""
    ids: NDArray[np.int64]
    """[rows] the first column."""
    batches: Callable[[slice], Iterator[list[pa.Array]]]
    """Rows → their columns, by row group."""

    def __len__(self) -> int:
        return len(self.ids)


def group_tables(
    how: TableOptions, ids: Ids, groups: BucketGroups, triangles: NDArray[np.int64], tracks: NDArray[np.int64]
) -> list[GroupTable]:
    """The tables hierarchy, dn_graphs and dn_graph_members, as `Result` describes them.

    `ids` are those of the bucket's vertices; `triangles` and `tracks` [DN-graphs] are of its DN-graphs.
    If the graph has two sides, `triangles` [2, DN-graphs] are their butterflies, and their vertices of the first side.
    """
    components, graphs, names = groups.components, groups.dn_graphs, identity.to_host(ids)
    members = np.flatnonzero(groups.is_member)
    members = members[np.argsort(groups.innermost[members], kind="stable")]

    def hierarchy(run: slice) -> Iterator[list[pa.Array]]:
        for rows in _row_groups(how, run):
            own = components[rows]
            columns = [pa.array(column) for column in (own.id, own.level, own.vertices, own.edges)]
            yield [*columns[:2], _or_null(own.parent), *columns[2:]]

    def dn_graphs(run: slice) -> Iterator[list[pa.Array]]:
        for rows in _row_groups(how, run):
            own = graphs[rows]
            inside, pairs, side = triangles[rows], own.vertices * (own.vertices - 1) / 2, list[pa.Array]()
            if how.source.two_sided:
                inside, left = triangles[:, rows]
                pairs, side = left * (own.vertices - left), [pa.array(left)]
            columns = (own.id, own.level, own.vertices, own.edges, own.edges / pairs, inside)
            yield [*map(pa.array, columns), _or_null(own.parent), pa.array(tracks[rows]), *side]

    def dn_graph_members(run: slice) -> Iterator[list[pa.Array]]:
        for part in _row_groups(how, run):
            for rows in slices_by_text(part, (names, members)):
                own = members[rows]
                columns = [
                    pa.array(groups.innermost[own]),
                    from_internal(identity.take(names, own), how.source.id_type),
                ]
                yield [*columns, sides_of(columns[1], how.source)] if how.source.two_sided else columns

    schema, of_graphs = _MEMBERS.append(pa.field("vertex", how.source.id_type)), _DN_GRAPHS
    if how.source.two_sided:
        schema, of_graphs = schema.append(SIDE_FIELD), _BICLIQUES
    return [
        GroupTable("hierarchy", _HIERARCHY, 1, components.id, hierarchy),
        GroupTable("dn_graphs", of_graphs, 1, graphs.id, dn_graphs),
        GroupTable("dn_graph_members", schema, 2, groups.innermost[members], dn_graph_members),
    ]


def write_groups(
    how: TableOptions, ids: Ids, groups: BucketGroups, triangles: NDArray[np.int64], tracks: NDArray[np.int64]
) -> list[OutputFile]:
    """Write hierarchy/, dn_graphs/ and dn_graph_members/part-N.parquet, with arguments as for `group_tables`."""
    tables = group_tables(how, ids, groups, triangles, tracks)
    return [write_group_file(how, table, groups.bucket, slice(0, len(table))) for table in tables]


def write_groups_of_program(
    how: TableOptions, table: str, bucket: int, groups: HierarchyRows, tracks: NDArray[np.int64]
) -> OutputFile:
    """Write part-N.parquet of a table of groups, such as core_groups, as `Result` describes it: the groups whose least
    vertex is in the bucket. `tracks` [groups] are -1 for groups without one.
    """

    def batches() -> Iterator[list[pa.Array]]:
        for rows in _row_groups(how, slice(0, len(groups))):
            own = groups[rows]
            density = own.edges / (own.vertices * (own.vertices - 1) / 2)
            sizes = (pa.array(column) for column in (own.vertices, own.edges, density, own.is_leaf))
            yield [pa.array(own.id), pa.array(own.level), _or_null(own.parent), *sizes, _or_null(tracks[rows])]

    name = f"{table}/part-{bucket:05d}.parquet"
    return write_table(how.folder, name, GROUPS_OF_PROGRAM, 1, batches(), how.compression)


def write_group_file(how: TableOptions, table: GroupTable, number: int, rows: slice) -> OutputFile:
    """Write some rows of a table to the file with this number."""
    name = f"{table.name}/part-{number:05d}.parquet"
    return write_table(how.folder, name, table.schema, table.keys, table.batches(rows), how.compression)


def _row_groups(how: TableOptions, run: slice) -> Iterator[slice]:
    for rows in slices(how, run.stop - run.start, files=1):
        yield slice(run.start + rows.start, run.start + rows.stop)


def _or_null(ids: NDArray[np.int64]) -> pa.Array:
    return pa.array(ids, mask=ids < 0)
