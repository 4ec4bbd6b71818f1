"""The tables of the dense groups of one bucket: hierarchy, DN-graphs and their members."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..dense import BucketGroups
from ..ids import identity
from ..ids.id_types import from_internal
from ..ids.identity import Ids
from .tables import slices, slices_by_text
from .writing import OutputFile, TableFormat, write_table

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
_MEMBERS = pa.schema([("dn_graph", pa.int64())])


def write_groups(
    how: TableFormat, ids: Ids, groups: BucketGroups, triangles: NDArray[np.int64], tracks: NDArray[np.int64]
) -> list[OutputFile]:
    """Write hierarchy/, dn_graphs/ and dn_graph_members/part-N.parquet, as `Result` describes them.

    `ids` are those of the bucket's vertices; `triangles` and `tracks` [DN-graphs] are of its DN-graphs.
    """
    components, graphs, names = groups.components, groups.dn_graphs, identity.to_host(ids)
    members = np.flatnonzero(groups.is_member)
    members = members[np.argsort(groups.innermost[members], kind="stable")]

    def hierarchy() -> Iterator[list[pa.Array]]:
        for rows in slices(how, len(components), files=1):
            own = components[rows]
            columns = [pa.array(column) for column in (own.id, own.level, own.vertices, own.edges)]
            yield [*columns[:2], _or_null(own.parent), *columns[2:]]

    def dn_graphs() -> Iterator[list[pa.Array]]:
        for rows in slices(how, len(graphs), files=1):
            own = graphs[rows]
            pairs = own.vertices * (own.vertices - 1) / 2
            columns = (own.id, own.level, own.vertices, own.edges, own.edges / pairs, triangles[rows])
            yield [*(pa.array(column) for column in columns), _or_null(own.parent), pa.array(tracks[rows])]

    def dn_graph_members() -> Iterator[list[pa.Array]]:
        for run in slices(how, len(members), files=1):
            for rows in slices_by_text(run, (names, members)):
                own = members[rows]
                yield [pa.array(groups.innermost[own]), from_internal(identity.take(names, own), how.source.id_type)]

    tables = [
        ("hierarchy", _HIERARCHY, 1, hierarchy()),
        ("dn_graphs", _DN_GRAPHS, 1, dn_graphs()),
        ("dn_graph_members", _MEMBERS.append(pa.field("vertex", how.source.id_type)), 2, dn_graph_members()),
    ]
    return [
        write_table(how.folder, f"{name}/part-{groups.bucket:05d}.parquet", schema, keys, batches, how.compression)
        for name, schema, keys, batches in tables
    ]


def _or_null(ids: NDArray[np.int64]) -> pa.Array:
    return pa.array(ids, mask=ids < 0)
