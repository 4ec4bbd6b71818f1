"""The members of a group, and the number of edges of each inside the group."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....tasks.errors import InputError, UsageError
from ...calls.arguments import ResultOrPath, open_result
from ...messages.setting_names import naming_keywords
from ..lookup import sorted_table
from ..queries import as_group, edges_of, member_ids
from ..result import Result
from ..rows import Group
from .attributes import attributes_of

MEMBER_COLUMNS = ("id", "degree_inside", "degree", "triangles", "lambda")
"""Columns of the table of members; attributes follow."""


@naming_keywords()
def members_of(result: ResultOrPath, group: Group | SupportsIndex, limit: int | None = None) -> pa.Table:
    """The vertices in a group: a row for each, or for the first `limit` of them.

    `group` is a Group, or the id of a component or DN-graph. Columns: `id`; `degree_inside` (int64, edges of the vertex
    inside the group); `degree` (int64) and `triangles` (int64) in the whole graph; `lambda` (int32, the largest λ of
    the vertex's edges, equal in the group and in the graph); then the attributes of vertices. Sorted by
    `degree_inside`, largest first, then by id. Edges are read in batches; the members are in memory.

    Raises UsageError for a limit below 1 or if there is no such group, InputError for damage.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"limit must be at least 1, got {limit}")
    result = open_result(result)
    group = as_group(result, group)
    ids = member_ids(result, group)
    inside = _degrees_inside(result, group, ids)
    order = np.argsort(-inside, kind="stable")[:limit]
    chosen = ids.take(pa.array(order))
    own = pa.table({"id": chosen, "degree_inside": inside[order]})
    for part in (_vertices(result, chosen), attributes_of(result, chosen)):
        for name in part.column_names:
            own = own.append_column(part.schema.field(name), part[name])
    return own


def _degrees_inside(result: Result, group: Group, ids: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    inside = np.zeros(len(ids), np.int64)
    source, target = result.edges.schema.names[:2]
    for batch in edges_of(result, group, ids):
        for end in (source, target):
            at = pc.index_in(batch[end], value_set=ids)
            if at.null_count:
                raise InputError(
                    f"the result is damaged: {result.place}: an edge of component {group.component} has an end that "
                    "is not a member of it"
                )
            inside += np.bincount(at.to_numpy(), minlength=len(ids))
    return inside


def _vertices(result: Result, ids: pa.Array) -> pa.Table:
    """Degree, triangles and λ of the vertices `ids`, in their order."""
    table, names = sorted_table(result, "vertices"), ["id", "degree", "triangles", "lambda"]
    schema = pa.schema([result.vertices.schema.field(name) for name in names])
    ascending = ids.take(pc.sort_indices(ids))
    batches = [
        batch
        for group, near in table.near(ascending)
        for batch in table.scan([group], pc.field("id").isin(near), names)
    ]
    found = pa.Table.from_batches(batches, schema)
    at = pc.index_in(ids, value_set=found["id"])
    if at.null_count:
        missing = ids[pc.index(pc.is_null(at), True).as_py()].as_py()
        raise InputError(f"the result is damaged: {result.place}: member {missing} is not in the table of vertices")
    return found.select(names[1:]).take(at)
