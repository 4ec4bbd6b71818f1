"""The first DN-graphs of a table that is read in batches, in memory that does not grow with the table."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from .result import Result
from .streaming import stream

TIES = ("lambda", "vertices", "edges")
"""Columns that break ties, largest first; then the smaller id is first."""
PENDING_ROWS = 1 << 13
"""Rows that are collected before they are sorted."""


class TopK:
    """Keeps the first `most` of the rows added, by the column `by`, largest first. Memory is O(most).

    Ties go to the larger λ, then to more vertices, more edges, the smaller id.
    """

    def __init__(self, schema: pa.Schema, by: str, most: int) -> None:
        self._schema, self._most = schema, most
        self._order = [(name, "descending") for name in dict.fromkeys([by, *TIES])] + [("id", "ascending")]
        self._batches: list[pa.RecordBatch] = []
        self._pending = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows of the table of DN-graphs, with the schema's columns."""
        self._batches.append(batch)
        self._pending += batch.num_rows
        if self._pending > 2 * self._most + PENDING_ROWS:
            self._batches = self.rows().to_batches()
            self._pending = self._most

    def rows(self) -> pa.Table:
        """The first `most` of the rows added so far, in order."""
        rows = pa.Table.from_batches(self._batches, self._schema)
        return rows.take(pc.select_k_unstable(rows, min(self._most, len(rows)), self._order)) if len(rows) else rows


def top_k(result: Result, by: str, most: int) -> pa.Table:
    """The first `most` DN-graphs of a result by the column `by`, as rows of `Result.dn_graphs`.

    Raises InputError for damage, UsageError if the result has no such table.
    """
    found = TopK(result.dn_graphs.schema, by, most)
    with result.reading():
        for batch in stream(result.dn_graphs, result.dn_graphs.schema.names):
            found.add(batch)
    return found.rows()
