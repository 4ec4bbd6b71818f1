"""Attributes of vertices, such as names, looked up by id in a result's table of attributes."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...calls.arguments import ResultOrPath, open_result
from ...messages.setting_names import naming_keywords
from ..lookup import sorted_table
from ..queries import AnyId, parse_vertex_id
from ..result import Result


def attribute_columns(result: Result) -> list[str]:
    """The names of the attributes of a result's vertices, in order; empty if the run had none."""
    found = result.manifest.input.vertices
    return [] if found is None else list(found.columns)


def label_column(result: Result) -> str | None:
    """The name of the attribute that is shown beside the id of a vertex, or None."""
    found = result.manifest.input.vertices
    return None if found is None else found.label


@naming_keywords()
def attributes_of(
    result: ResultOrPath, ids: pa.Array | Sequence[AnyId], columns: Sequence[str] | None = None
) -> pa.Table:
    """The attributes of some vertices: a row for each of `ids`, in their order, with nulls for missing values.

    `columns` are some of `attribute_columns(result)`; None means all. Only row groups that can hold some of the ids are
    read, and only the rows of these ids are in memory. Raises UsageError if one of `ids` is not an id, InputError for
    damage.
    """
    result = open_result(result)
    names = attribute_columns(result) if columns is None else list(columns)
    requested = _ids(result, ids)
    if not names:
        return pa.table({"id": requested}).select([])
    table = sorted_table(result, "attributes")
    distinct = pc.unique(requested)
    ascending = distinct.take(pc.sort_indices(distinct))
    schema = pa.schema([result.attributes.schema.field(name) for name in ["id", *names]])
    batches: list[pa.RecordBatch] = []
    for group, near in table.near(ascending):
        batches += table.scan([group], pc.field("id").isin(near), schema.names)
    found = pa.Table.from_batches(batches, schema)
    return found.select(names).take(pc.index_in(requested, value_set=found["id"]))


@naming_keywords()
def labels_of(result: ResultOrPath, ids: pa.Array | Sequence[AnyId]) -> list[str | None]:
    """The label of each vertex as text, in the order of `ids`; None for a vertex without a label.

    All are None if the run had no labels. Reads and raises as `attributes_of` does.
    """
    result = open_result(result)
    name = label_column(result)
    if name is None:
        return [None] * len(ids)
    column = attributes_of(result, ids, [name])[name]
    return [None if value is None else str(value) for value in column.cast(pa.large_string()).to_pylist()]


def _ids(result: Result, ids: pa.Array | Sequence[AnyId]) -> pa.Array:
    id_type = result.vertices.schema.field("id").type
    if isinstance(ids, pa.ChunkedArray):
        ids = pa.concat_arrays(ids.chunks) if ids.num_chunks else pa.array([], ids.type)
    if isinstance(ids, pa.Array):
        return ids.cast(id_type)
    return pa.array([parse_vertex_id(id, result) for id in ids], id_type)
