"""Reading Arrow IPC: any record batch of a file, and streams from their start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...errors import InputError

_MAGIC = b"ARROW1"
_FEATHER_1 = b"FEA1"


@dataclass(frozen=True)
class IpcHead:
    """Schema and sizes of an Arrow file or stream."""

    schema: pa.Schema

    is_stream: bool

    batches: int
    """Record batches of a file; 0 for a stream, which does not say."""

    rows: int
    """Of the first batch with rows; 0 if there is none."""

    row_bytes: float
    """Bytes of a row of that batch, in memory."""


def read_ipc_head(file: Any, path: str) -> IpcHead:
    """Read the schema and the first batch with rows of an open file.

    Raises READ_ERRORS, and InputError for Feather version 1.
    """
    magic = file.read(len(_MAGIC))
    file.seek(0)
    if magic.startswith(_FEATHER_1):
        raise InputError(
            f"{path} is Feather version 1, which edgemill does not read: write it again as Arrow IPC or Parquet"
        )
    if magic == _MAGIC:
        opened = pa.ipc.open_file(file)
        return _head(
            opened.schema, False, opened.num_record_batches, map(opened.get_batch, range(opened.num_record_batches))
        )
    stream = pa.ipc.open_stream(file)
    return _head(stream.schema, True, 0, stream)


def _head(schema: pa.Schema, is_stream: bool, batches: int, found: Iterable[pa.RecordBatch]) -> IpcHead:
    first = next((batch for batch in found if batch.num_rows), None)
    if first is None:
        return IpcHead(schema, is_stream, batches, 0, 0.0)
    return IpcHead(schema, is_stream, batches, first.num_rows, first.nbytes / first.num_rows)


def ipc_batches(file: Any, columns: Sequence[str], span: tuple[int, int | None]) -> Iterator[pa.RecordBatch]:
    """Some columns of the record batches in `span`, end excluded; of all batches if the open file is a stream."""
    is_stream = file.read(len(_MAGIC)) != _MAGIC
    file.seek(0)
    if is_stream:
        for batch in pa.ipc.open_stream(file):
            yield batch.select(list(columns))
        return
    schema = pa.ipc.open_file(file).schema
    read_options = pa.ipc.IpcReadOptions(included_fields=sorted(schema.get_field_index(name) for name in columns))
    file.seek(0)
    opened = pa.ipc.open_file(file, options=read_options)
    for number in range(span[0], span[1] if span[1] is not None else opened.num_record_batches):
        yield opened.get_batch(number).select(list(columns))
