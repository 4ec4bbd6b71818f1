"""The attributes of the ends of edges, as further columns of the edges."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from ....tasks.errors import UsageError
from ..result import Result
from .attributes import attributes_of


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
