"""Arrow IPC: any record batch of a file, and streams from their start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from ....errors import InputError
from ..input_format import Span, TableHead, TypedFormat

_MAGIC = b"ARROW1"
_FEATHER_1 = b"FEA1"


class Arrow(TypedFormat):
    """Files and streams of record batches."""

    title = "Arrow IPC"
    suffixes = (".arrow", ".arrows", ".feather", ".ipc")
    marks = (_MAGIC,)
    reading = "a file by its record batches, a stream from its beginning"

    def read_head(self, file: Any, path: str, size: int) -> TableHead:
        """The first batch with rows tells how many a stream has, and how many each batch of a file."""
        magic = file.read(len(_MAGIC))
        file.seek(0)
        if magic.startswith(_FEATHER_1):
            raise InputError(
                f"{path} is Feather version 1, which edgemill does not read: write it again as Arrow IPC or Parquet"
            )
        if magic == _MAGIC:
            opened = pa.ipc.open_file(file)
            first = _first_with_rows(map(opened.get_batch, range(opened.num_record_batches)))
            numbers = range(opened.num_record_batches if first is not None else 0)
            rows = 0 if first is None else first.num_rows
            return TableHead(opened.schema, (rows,) * len(numbers), tuple((at, at + 1) for at in numbers))
        stream = pa.ipc.open_stream(file)
        first = _first_with_rows(stream)
        if first is None:
            return TableHead(stream.schema, (), ())
        row_bytes = first.nbytes / first.num_rows
        return TableHead(stream.schema, (max(1, round(size / row_bytes)) if row_bytes else 1,), ((0, None),))

    def batches(self, file: Any, columns: Sequence[str], span: Span) -> Iterator[pa.RecordBatch]:
        """Of all batches if the open file is a stream."""
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

    def whole(self, file: Any) -> pa.Table:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        return (pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)).read_all()


def _first_with_rows(batches: Any) -> pa.RecordBatch | None:
    return next((batch for batch in batches if batch.num_rows), None)
