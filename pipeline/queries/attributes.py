"""Attributes of vertices, such as names, looked up by id in a result's table of attributes.

`EndAttributes` adds those of both ends to edges. The last functions write ids and attributes as text and JSON values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...tasks.errors import UsageError
from ...tasks.ids.display import display_id
from ..results.lookup import AnyId, parse_vertex_id, sorted_table
from ..results.result import Result, ResultOrPath, open_result
from ..settings.setting_names import naming_keywords


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


class EndAttributes:
    """Joins attributes of vertices to the edges between them.

    For each attribute NAME, edges get the columns `SOURCE_NAME` and `TARGET_NAME`, such as `src_name` and `dst_name`.
    The vertices and their attributes are in memory.
    """

    def __init__(self, result: Result, vertices: Iterable[pa.Array]) -> None:
        id_type = result.vertices.schema.field("id").type
        self._ids = pa.concat_arrays([pa.array([], id_type), *vertices])
        self._attributes = attributes_of(result, self._ids).combine_chunks()

    def schema_of(self, edges: pa.Schema) -> pa.Schema:
        """The schema of edges with the further columns. Raises UsageError if two columns would have the same name."""
        fields = [
            *edges,
            *(field.with_name(f"{end}_{field.name}") for end in edges.names[:2] for field in self._fields),
        ]
        names = [field.name for field in fields]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(
                    f"two columns would be named {name!r}: write GraphML, or run again with other names in "
                    "input.vertex_columns"
                )
        return pa.schema(fields)

    def added_to(self, edges: pa.RecordBatch) -> pa.RecordBatch:
        """The edges with the further columns."""
        columns = list(edges.columns)
        for end in edges.columns[:2]:
            own = self._attributes.take(pc.index_in(end, value_set=self._ids))
            columns += [column.combine_chunks() for column in own.columns]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema_of(edges.schema))

    @property
    def _fields(self) -> list[pa.Field]:
        return list(self._attributes.schema)


def as_text(value: Any) -> str:
    """An id or an attribute as text, without quotes and without thousands separators; empty for null."""
    return "" if value is None else str(display_id(value))


def json_value(value: Any) -> Any:
    """A value as JSON: numbers, text and booleans are unchanged, other values become text, NaN and infinity null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(display_id(value))


def json_rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of a table as JSON values, one at a time."""
    for batch in table.to_batches():
        for row in batch.to_pylist():
            yield json_row(row)


def json_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a row as JSON values."""
    return {name: json_value(value) for name, value in row.items()}
