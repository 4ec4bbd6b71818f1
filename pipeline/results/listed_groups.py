"""The groups of a program that are listed: those of a level, or those that contain no smaller one. They are disjoint.

DN-graphs are those of λ that are listed, and have a table of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...tasks.dense.listing import Homes, homes_of
from ...tasks.dense.merge import HierarchyRows
from .result import Result
from .streaming import stream

COLUMNS = ("id", "k", "vertices", "edges", "density", "parent")
"""Columns of listed groups; `track` follows if the result has tracks."""


@dataclass(frozen=True)
class ListedGroups:
    """Disjoint groups of a program, in memory with the ids of all groups."""

    rows: pa.Table
    """The groups with COLUMNS of their table, and `track` if it has one, by ascending id."""
    column: str
    """The column of vertices with the innermost group of each."""
    homes: Homes
    """The listed group around each group inside them."""

    def of_vertices(self, innermost: pa.Array) -> pa.Array:
        """The listed group of each vertex, by its innermost group; null for a vertex in none."""
        found = self.homes.of(pc.fill_null(innermost, -1).to_numpy(zero_copy_only=False))
        return pa.array(found, mask=found < 0)

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
    names = [*COLUMNS, *(["track"] if "track" in table.schema.names else [])]
    with result.reading():
        every = table.to_table(columns=[*names, "is_leaf"]).sort_by("id")
    ids, k, vertices, edges = (every[name].to_numpy() for name in ("id", "k", "vertices", "edges"))
    parent = every["parent"].fill_null(-1).to_numpy()
    is_leaf = every["is_leaf"].to_numpy(zero_copy_only=False)
    homes = homes_of(HierarchyRows(ids, k, parent, vertices, edges, is_leaf), level)
    rows = every.select(names).take(pa.array(np.searchsorted(ids, np.unique(homes.listed))))
    return ListedGroups(rows, str(record.group_column), homes)
