"""The first DN-graphs of a table that comes in batches, in memory that does not grow with it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from .lookup import reading
from .result import Result
from .streaming import stream

__all__ = ["Foremost", "foremost"]

TIES = ("lambda", "vertices", "edges")
PENDING_ROWS = 1 << 13


class Foremost:
    """The first `most` of the rows added, by one column, largest first. Memory is O(most).

    Ties go to the larger λ, then to more vertices, more edges, the smaller id.
    """

    def __init__(self, schema: pa.Schema, by: str, most: int) -> None:
        self._schema, self._most = schema, most
        self._order = [(name, "descending") for name in dict.fromkeys([by, *TIES])] + [("id", "ascending")]
        self._batches: list[pa.RecordBatch] = []
        self._pending = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in rows of the table of DN-graphs, with the schema's columns."""
        self._batches.append(batch)
        self._pending += batch.num_rows
        if self._pending > 2 * self._most + PENDING_ROWS:
            self._batches = self.rows().to_batches()
            self._pending = self._most

    def rows(self) -> pa.Table:
        """Those of them that are the first, in order."""
        rows = pa.Table.from_batches(self._batches, self._schema)
        return rows.take(pc.select_k_unstable(rows, min(self._most, len(rows)), self._order)) if len(rows) else rows


def foremost(result: Result, by: str, most: int) -> pa.Table:
    """The first `most` DN-graphs of a result by a column, as rows of `Result.dn_graphs`. Raises InputError for damage,
    UsageError if it has none.
    """
    found = Foremost(result.dn_graphs.schema, by, most)
    with reading(result.place):
        for batch in stream(result.dn_graphs, result.dn_graphs.schema.names):
            found.add(batch)
    return found.rows()
