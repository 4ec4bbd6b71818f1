"""Attributes of vertices, such as names: looked up by id in the table that a run has published."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ..asking import AnyId, as_id
from ..calls.asked import AnyResult, opened
from ..lookup import look_up
from ..result import Result

__all__ = ["attribute_columns", "attributes_of", "label_column", "labels_of"]


def attribute_columns(result: Result) -> list[str]:
    """The names of the attributes of a result's vertices, in order; none if the run was given none."""
    found = result.manifest.input.vertices
    return [] if found is None else list(found.columns)


def label_column(result: Result) -> str | None:
    """The attribute that is shown beside the id of a vertex; None if there is none."""
    found = result.manifest.input.vertices
    return None if found is None else found.label


def attributes_of(result: AnyResult, ids: pa.Array | Sequence[AnyId], columns: Sequence[str] | None = None) -> pa.Table:
    """The attributes of some vertices: a row for each of `ids`, in their order; null where a vertex has none.

    `columns` are some of `attribute_columns(result)`; left out: all. Only row groups that can hold some of the ids are
    read, and what is in memory is the rows of these ids. Raises UsageError for what is no id, InputError for damage.
    """
    result = opened(result)
    names = attribute_columns(result) if columns is None else list(columns)
    wanted = _ids(result, ids)
    if not names:
        return pa.table({"id": wanted}).select([])
    table = look_up(result, "attributes")
    distinct = pc.unique(wanted)
    ascending = distinct.take(pc.sort_indices(distinct))
    schema = pa.schema([result.attributes.schema.field(name) for name in ["id", *names]])
    batches: list[pa.RecordBatch] = []
    for group, near in table.near(ascending):
        batches += table.scan([group], pc.field("id").isin(near), schema.names)
    found = pa.Table.from_batches(batches, schema)
    return found.select(names).take(pc.index_in(wanted, value_set=found["id"]))


def labels_of(result: AnyResult, ids: pa.Array | Sequence[AnyId]) -> list[str | None]:
    """The label of each of some vertices, as text, in their order; None for a vertex without one, and for all of them
    if the run was given no labels.

    Reads and raises as `attributes_of` does.
    """
    result = opened(result)
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
    return pa.array([as_id(id, result) for id in ids], id_type)
