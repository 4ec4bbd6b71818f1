"""Apache ORC: any stripe of a file. Hive and Spark write such files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import orc

from ..input_format import Span, TableHead, TypedFormat

_TOLD_BY = 512
"""First bytes that tell a file from text. Those of an ORC file have lengths, which are small numbers."""
BATCH_ROWS = 65_536
"""Most rows of a batch. A stripe is decompressed at once."""


class Orc(TypedFormat):
    """Columns in stripes, with a footer at the end."""

    title = "ORC"
    suffixes = (".orc",)
    marks = (b"ORC",)
    reading = "by its stripes, only the needed columns"

    def begins(self, head: bytes) -> bool:
        """Text may begin with these letters, too, such as ORC1, the name of a protein; it has no control characters."""
        return super().begins(head) and any(byte < ord("\t") for byte in head[:_TOLD_BY])

    def read_head(self, file: Any, path: str, size: int) -> TableHead:
        """The footer tells the rows of the file, not those of each stripe."""
        opened = orc.ORCFile(file)
        stripes = range(opened.nstripes if opened.nrows else 0)
        rows = -(-opened.nrows // max(1, len(stripes)))
        return TableHead(opened.schema, (rows,) * len(stripes), tuple((at, at + 1) for at in stripes))

    def batches(self, file: Any, columns: Sequence[str], span: Span) -> Iterator[pa.RecordBatch]:
        opened = orc.ORCFile(file)
        for number in range(span[0], opened.nstripes if span[1] is None else span[1]):
            stripe = opened.read_stripe(number, columns=list(columns)).select(list(columns))
            for start in range(0, stripe.num_rows, BATCH_ROWS):
                yield stripe.slice(start, BATCH_ROWS)

    def whole(self, file: Any) -> pa.Table:
        return orc.ORCFile(file).read()
