"""Rows of a table in batches, in memory that grows neither with the table nor with its row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

__all__ = ["BATCH_ROWS", "stream", "stream_fragment"]

BATCH_ROWS = 1 << 13
_BUFFER_BYTES = 1 << 16
"""Read at once of each column."""
_STORES = "py::fsspec"
"""How the names of those of Arrow's file systems begin that stand for object stores."""


def stream(
    table: ds.Dataset, columns: Sequence[str], only: Any = None, batch_rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Batches of these columns, of at most `batch_rows` rows each, in order.

    `only` is an expression over some of the columns: other rows are left out, and row groups without such rows are not
    read. Raises what Arrow raises for a damaged file.
    """
    for fragment in table.get_fragments(only):
        yield from stream_fragment(fragment, columns, only, batch_rows)


def stream_fragment(
    fragment: ds.Fragment, columns: Sequence[str], only: Any = None, batch_rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """The same of one fragment of a table.

    Arrow's datasets decode whole row groups, and several at a time. Files on a disk are decoded page by page here,
    which is as quick for one thread. From an object store a row group is read at a time: it answers slowly.
    """
    names = list(columns)
    if not isinstance(fragment, ds.ParquetFileFragment) or fragment.filesystem.type_name.startswith(_STORES):
        ahead = {"batch_readahead": 1, "fragment_readahead": 1, "batch_size": batch_rows}
        scan = ds.ParquetFragmentScanOptions(
            pre_buffer=False, page_checksum_verification=True, arrow_extensions_enabled=False
        )
        yield from fragment.to_batches(columns=names, filter=only, fragment_scan_options=scan, **ahead)
        return
    wanted = [group.id for part in fragment.split_by_row_group(only) for group in part.row_groups]
    if not wanted:
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
        for batch in file.iter_batches(batch_rows, wanted, names, use_threads=False):
            yield batch if only is None else batch.filter(only)
