"""The dense groups of an earlier result, from its tables."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....tasks.dense.earlier import EarlierGroups, GroupTables, earlier_groups
from ....tasks.update.merging import Change
from ...results.read_errors import read_errors
from ...results.result import Result


def groups_of(result: Result, change: Change) -> EarlierGroups:
    """The groups of a result, with vertices in the numbering of the change since. Raises InputError for damage."""
    with read_errors(result.place), ThreadPoolExecutor(3) as readers:
        hierarchy, graphs, vertices = readers.map(
            lambda wanted: wanted[0].to_table(columns=wanted[1]),
            [
                (result.hierarchy, ["component", "k", "parent", "edges"]),
                (result.dn_graphs, ["id", "triangles"]),
                (result.vertices, ["component"]),
            ],
        )
    found = earlier_groups(
        GroupTables(
            component=_integers(hierarchy["component"]),
            level=_integers(hierarchy["k"]).astype(np.int32),
            parent=_integers(hierarchy["parent"]),
            edges=_integers(hierarchy["edges"]),
            innermost=_integers(vertices["component"]),
            dn_graph=_integers(graphs["id"]),
            triangles=_integers(graphs["triangles"]),
        )
    )
    vertex = np.full(len(change.ids), -1, np.int32)
    vertex[change.own] = found.vertex
    return replace(found, vertex=vertex)


def _integers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """A column as int64, -1 for null."""
    values: NDArray[np.int64] = column.fill_null(-1).to_numpy().astype(np.int64, copy=False)
    return values
