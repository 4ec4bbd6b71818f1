"""The dense groups and the vertices of an earlier result, from its tables."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....tasks.dense.earlier import EarlierGroups, GroupTables, earlier_groups
from ....tasks.publish.lambda_columns import BucketVertices
from ....tasks.update.merging import Change
from ...results.result import Result
from ..beside import beside
from ..start import Start


@dataclass(frozen=True)
class EarlierTables:
    """What the tables of an earlier result tell of its groups and vertices. Other threads read them.

    A result of a future raises InputError for damage.
    """

    groups: Future[EarlierGroups]
    values: Future[BucketVertices]
    """In the numbering of the change since."""

    @classmethod
    def of(cls, start: Start) -> EarlierTables | None:
        """Begin to read. None if λ is found from nothing, as all else is then."""
        if start.whole is not None:
            return None
        own = start.base, start.change
        return cls(beside(partial(_groups_of, *own)), beside(partial(_values_of, *own)))


def _groups_of(result: Result, change: Change) -> EarlierGroups:
    """The groups of a result, with vertices in the numbering of the change since."""
    with result.reading(), ThreadPoolExecutor(3) as readers:
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


def _values_of(result: Result, change: Change) -> BucketVertices:
    """The values of the vertices of a result, in the numbering of the change since."""
    with result.reading():
        table = result.vertices.to_table(columns=["degree", "triangles", "lambda"])

    def column(name: str, dtype: type[Any]) -> NDArray[Any]:
        values = np.zeros(len(change.ids), dtype)
        values[change.own] = table[name].to_numpy()
        return values

    lam = column("lambda", np.int32)
    return BucketVertices(0, column("degree", np.int64), column("triangles", np.int64), lam, lam)
