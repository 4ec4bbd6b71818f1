"""Rows of a table in batches, and the first DN-graphs of a table that is read so.

Memory grows neither with the table nor with its row groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ...tasks.errors import InputError
from ...tasks.inputs.opening import READ_ERRORS, error_reason
from .result import Result

if TYPE_CHECKING:
    from .table import ResultTable


BATCH_ROWS = 1 << 13
_BUFFER_BYTES = 1 << 16
"""Bytes of a column that are read at once."""
_STORES = "py::fsspec"
"""Prefix of the names of Arrow's file systems for object stores."""


def batches(table: ResultTable, columns: Sequence[str], only: Any = None) -> Iterator[pa.RecordBatch]:
    """Batches as `stream` gives them. Raises InputError for a damaged file, and if the result is replaced meanwhile."""
    try:
        with table.reading():
            yield from stream(table, columns, only)
    except READ_ERRORS as error:
        raise InputError(f"the result is damaged: {error_reason(error)}") from error


def stream(
    table: ds.Dataset, columns: Sequence[str], only: Any = None, batch_rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Batches of the columns `columns`, in the order of the table, of at most `batch_rows` rows each.

    `only` is a pyarrow expression over some of the columns: rows that do not meet it are left out, and row groups
    without such rows are not read. Raises Arrow's errors for a damaged file.
    """
    for fragment in table.get_fragments(only):
        yield from stream_fragment(fragment, columns, only, batch_rows)


def stream_fragment(
    fragment: ds.Fragment, columns: Sequence[str], only: Any = None, batch_rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Batches of one fragment of a table, as `stream` gives them.

    Arrow's datasets decode several whole row groups at a time. For files on a disk, this function decodes page by page,
    which is as fast with one thread. Object stores have high latency, so it reads a row group at a time from them.
    """
    names = list(columns)
    if not isinstance(fragment, ds.ParquetFileFragment) or fragment.filesystem.type_name.startswith(_STORES):
        ahead = {"batch_readahead": 1, "fragment_readahead": 1, "batch_size": batch_rows}
        scan = ds.ParquetFragmentScanOptions(
            pre_buffer=False, page_checksum_verification=True, arrow_extensions_enabled=False
        )
        yield from fragment.to_batches(columns=names, filter=only, fragment_scan_options=scan, **ahead)
        return
    row_groups = [group.id for part in fragment.split_by_row_group(only) for group in part.row_groups]
    if not row_groups:
        return
    with (
        fragment.open() as source,
        pq.ParquetFile(
            source,
            metadata=fragment.metadata,
            buffer_size=_BUFFER_BYTES,
            pre_buffer=False,
            page_checksum_verification=True,
            arrow_extensions_enabled=False,
        ) as file,
    ):
        for batch in file.iter_batches(batch_rows, row_groups, names, use_threads=False):
            yield batch if only is None else batch.filter(only)


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
