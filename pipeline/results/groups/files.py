"""The edges of a group or of a k-truss as a file: Parquet, CSV or GraphML."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any, Literal, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.csv as arrow_csv

from ....tasks.ids.display import display_column
from ....tasks.storage.parquet_checksum import checksummed_writer
from ..frames.group_edges import GroupEdges
from ..queries import edges_of, member_ids
from ..result import Result
from ..rows import Group
from .attributes import attribute_columns
from .end_attributes import EndAttributes
from .graphml import write_graphml
from .trusses import ktruss, truss_group, truss_vertices

Format = Literal["parquet", "graphml", "csv"]
FORMATS: tuple[Format, ...] = ("parquet", "graphml", "csv")


Rows: TypeAlias = pa.RecordBatchReader | GroupEdges
"""Batches of rows, which can be read once."""


class Sink(Protocol):
    """An open binary file. Writers leave it open."""

    def write(self, content: bytes, /) -> Any:
        """Write all bytes of `content`."""

    def flush(self) -> None:
        """Write buffered bytes."""


def format_of(name: str | None) -> Format:
    """The format of a file by the suffix of its name; CSV for any other suffix."""
    return next((form for form in FORMATS if name is not None and name.lower().endswith(f".{form}")), "csv")


def write_group(result: Result, group: Group, file: Sink, form: Format) -> None:
    """Write the edges of a group: the two ids, support, lambda, and the attributes of both ends if the run had any.

    GraphML has the attributes at its vertices, and `support` and `lambda` at its edges. Edges are read in batches; the
    ids of the vertices and their attributes are in memory. Raises UsageError for text that XML cannot hold, InputError
    for damage.
    """
    members = member_ids(result, group)
    _write(result, edges_of(result, group, members), [members], file, form)


def write_truss(result: Result, k: int, component: int | None, file: Sink, form: Format) -> None:
    """Write the edges of the k-truss, or of one connected component of it, as `write_group` does.

    Edges are read in batches. For the whole k-truss, the ids of its vertices are in memory only if they have
    attributes. Raises as `ktruss` and `write_group` do.
    """
    if component is not None:
        write_group(result, truss_group(result, k, component), file, form)
    else:
        _write(result, ktruss(result, k), truss_vertices(result, k), file, form)


def write_table(table: pa.Table, file: Sink, form: Format) -> None:
    """Write a table as Parquet or CSV."""
    reader = table.to_reader()
    _write_parquet(reader, file) if form == "parquet" else _write_csv(reader, file)


def _write(result: Result, edges: Rows, vertices: Iterable[pa.Array], file: Sink, form: Format) -> None:
    if form == "graphml":
        write_graphml(result, vertices, edges, file)
        return
    if attribute_columns(result):
        edges = _with_attributes(result, edges, vertices)
    _write_parquet(edges, file) if form == "parquet" else _write_csv(edges, file)


def _with_attributes(result: Result, edges: Rows, vertices: Iterable[pa.Array]) -> Rows:
    ends = EndAttributes(result, vertices)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in edges:
            yield ends.added_to(batch)

    return pa.RecordBatchReader.from_batches(ends.schema_of(edges.schema), batches())


def _write_parquet(rows: Rows, file: Sink) -> None:
    with checksummed_writer(file, rows.schema, compression="zstd") as writer:
        for batch in rows:
            writer.write_batch(batch)


def _write_csv(rows: Rows, file: Sink) -> None:
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(rows.schema.names)
    file.write(header.getvalue().encode())
    for batch in rows:
        text = pa.BufferOutputStream()
        shown = pa.record_batch([display_column(column) for column in batch.columns], batch.schema.names)
        arrow_csv.write_csv(shown, text, arrow_csv.WriteOptions(include_header=False))
        file.write(text.getvalue().to_pybytes())
