"""Edges of a group or of a k-truss as a file that other programs read: Parquet, CSV or GraphML."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any, Literal, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.csv as arrow_csv

from ...tasks.sealed import sealed_writer
from ...tasks.spelling import spelled_column
from ..asking import edges_of, member_ids
from ..frames.group_edges import GroupEdges
from ..result import Result
from ..rows import Group
from .attributes import attribute_columns
from .graphml import write_graphml
from .labelled import EndAttributes
from .trusses import ktruss, truss_group, truss_vertices

__all__ = ["FORMATS", "Format", "Sink", "format_of", "write_group", "write_table", "write_truss"]

Format = Literal["parquet", "graphml", "csv"]
FORMATS: tuple[Format, ...] = ("parquet", "graphml", "csv")


Rows: TypeAlias = pa.RecordBatchReader | GroupEdges
"""Rows that come in batches, once."""


class Sink(Protocol):
    """An open binary file, which stays open."""

    def write(self, content: bytes, /) -> Any:
        """Write all of it."""

    def flush(self) -> None:
        """Let nothing wait."""


def format_of(name: str | None) -> Format:
    """The format that the ending of a file name stands for; CSV without one."""
    return next((form for form in FORMATS if name is not None and name.lower().endswith(f".{form}")), "csv")


def write_group(result: Result, group: Group, file: Sink, form: Format) -> None:
    """Write the edges of a group: the two ids, support and lambda, and the attributes of both ends, if there are any.

    Edges pass through memory in batches; the ids of the vertices and their attributes lie in it. Vertices of GraphML
    are those ids with their attributes, and its edges have the attributes `support` and `lambda`. Raises UsageError for
    text that XML cannot hold, InputError if the result is damaged.
    """
    members = member_ids(result, group)
    _write(result, edges_of(result, group, members), [members], file, form)


def write_truss(result: Result, k: int, component: int | None, file: Sink, form: Format) -> None:
    """Write the edges of the k-truss, or of one connected component of it, as `write_group` does.

    Edges pass through memory in batches. Of the whole k-truss the ids of its vertices lie in memory only if they have
    attributes. Raises as `ktruss` and `write_group`.
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
    with sealed_writer(file, rows.schema, compression="zstd") as writer:
        for batch in rows:
            writer.write_batch(batch)


def _write_csv(rows: Rows, file: Sink) -> None:
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(rows.schema.names)
    file.write(header.getvalue().encode())
    for batch in rows:
        text = pa.BufferOutputStream()
        shown = pa.record_batch([spelled_column(column) for column in batch.columns], batch.schema.names)
        arrow_csv.write_csv(shown, text, arrow_csv.WriteOptions(include_header=False))
        file.write(text.getvalue().to_pybytes())
