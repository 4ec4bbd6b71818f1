"""The groups of a program that are listed: those of a level, or those that contain no smaller one. They are disjoint.

DN-graphs are those of λ that are listed, and have a table of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .result import Result
from .streaming import stream

COLUMNS = ("id", "k", "vertices", "edges", "density", "parent")


@dataclass(frozen=True)
class ListedGroups:
    """Disjoint groups of a program, in memory with the ids of all groups."""

    rows: pa.Table
    """The groups with COLUMNS of their table, by ascending id."""
    column: str
    """The column of vertices with the innermost group of each."""
    inner: NDArray[np.int64]
    """Ids of the groups inside them, and of themselves, ascending."""
    of_inner: NDArray[np.int64]
    """The id of the listed group that contains each."""

    def of_vertices(self, innermost: pa.Array) -> pa.Array:
        """The listed group of each vertex, by its innermost group; null for a vertex in none."""
        if not len(self.inner):
            return pa.nulls(len(innermost), pa.int64())
        wanted = pc.fill_null(innermost, -1).to_numpy(zero_copy_only=False)
        at = np.minimum(np.searchsorted(self.inner, wanted), len(self.inner) - 1)
        return pa.array(self.of_inner[at], mask=self.inner[at] != wanted)

    def largest(self, by: str, most: int) -> pa.Table:
        """The first `most` rows by a column. Ties go to more vertices, more edges, the smaller id."""
        order = [(name, "descending") for name in dict.fromkeys([by, "vertices", "edges"])]
        return self.rows.sort_by([*order, ("id", "ascending")]).slice(0, most)

    def members(self, result: Result) -> Iterator[pa.RecordBatch]:
        """The members of all groups by ascending vertex id: id, and the id of the group in a column `group`."""
        with result.reading():
            for batch in stream(result.vertices, ["id", self.column]):
                home = self.of_vertices(batch[self.column])
                found = pa.RecordBatch.from_arrays([batch["id"], home], names=["id", "group"])
                yield found.filter(home.is_valid())


def listed_groups(result: Result, program: str, level: int | None = None) -> ListedGroups:
    """The groups of a program at a level, by default the level that the program declares.

    Takes 40 bytes of memory for each of its groups. Raises UsageError if the result does not have them, InputError for
    damage.
    """
    record = result.groups_record(program)
    level = record.group_level if level is None else level
    table = result.table(result.groups_table(program))
    with result.reading():
        every = table.to_table(columns=[*COLUMNS, "is_leaf"]).sort_by("id")
    ids, k = every["id"].to_numpy(), every["k"].to_numpy()
    if level is None:
        home = np.where(every["is_leaf"].to_numpy(zero_copy_only=False), np.arange(len(ids)), -1)
    else:
        parent = every["parent"]
        up = np.where(parent.is_valid(), np.searchsorted(ids, parent.fill_null(0).to_numpy()), np.arange(len(ids)))
        home = np.arange(len(ids))
        while (rises := (up[home] != home) & (k[up[home]] >= level)).any():
            home = np.where(rises, up[home], home)
        home = np.where(k >= level, home, -1)
    inside = home >= 0
    rows = every.select(COLUMNS).take(pa.array(np.unique(home[inside])))
    return ListedGroups(rows, str(record.group_column), ids[inside], ids[home[inside]])
