"""A dense group as a file that other programs read: Parquet, CSV or GraphML."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Any, Literal, Protocol
from xml.sax.saxutils import quoteattr

import pyarrow as pa
import pyarrow.csv as arrow_csv

from ..tasks.errors import UsageError
from ..tasks.sealed import sealed_writer
from ..tasks.spelling import spelled, spelled_column
from .asking import edges_of, members_of
from .result import Result
from .rows import Group

__all__ = ["FORMATS", "Format", "format_of", "write_group"]

Format = Literal["parquet", "graphml", "csv"]
FORMATS: tuple[Format, ...] = ("parquet", "graphml", "csv")

NODES = 1 << 16
"""Vertices of GraphML that are put into words at once."""

_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class _Sink(Protocol):
    def write(self, content: bytes, /) -> Any: ...

    def flush(self) -> None: ...


def format_of(name: str | None) -> Format:
    """The format that the ending of a file name stands for; CSV without one."""
    return next((form for form in FORMATS if name is not None and name.lower().endswith(f".{form}")), "csv")


def write_group(result: Result, group: Group, file: _Sink, form: Format) -> None:
    """Write the edges of a group to an open binary file, which stays open: the two ids, support and lambda.

    Edges pass through memory in batches, the ids of the vertices lie in it. Vertices of GraphML are those ids, and its
    edges have the attributes `support` and `lambda`. Raises UsageError for an id that XML cannot hold, InputError if
    the result is damaged.
    """
    members = members_of(result, group)
    edges = edges_of(result, group, members)
    match form:
        case "parquet":
            with sealed_writer(file, edges.schema, compression="zstd") as writer:
                for batch in edges:
                    writer.write_batch(batch)
        case "csv":
            _write_csv(edges, file)
        case "graphml":
            _write_graphml(members, edges, file)


def _write_csv(edges: pa.RecordBatchReader, file: _Sink) -> None:
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(edges.schema.names)
    file.write(header.getvalue().encode())
    for batch in edges:
        rows = pa.BufferOutputStream()
        texts = [spelled_column(column) for column in batch.columns]
        arrow_csv.write_csv(
            pa.record_batch(texts, batch.schema.names), rows, arrow_csv.WriteOptions(include_header=False)
        )
        file.write(rows.getvalue().to_pybytes())


def _write_graphml(members: pa.Array, edges: pa.RecordBatchReader, file: _Sink) -> None:
    def lines(texts: Iterable[str]) -> None:
        file.write("".join(f"{text}\n" for text in texts).encode())

    lines(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
            *(f'<key id="{name}" for="edge" attr.name="{name}" attr.type="int"/>' for name in ("support", "lambda")),
            '<graph edgedefault="undirected">',
        ]
    )
    for start in range(0, len(members), NODES):
        lines(f"<node id={_attribute(vertex)}/>" for vertex in members.slice(start, NODES).to_pylist())
    for batch in edges:
        lines(
            f"<edge source={_attribute(source)} target={_attribute(target)}>"
            f'<data key="support">{support}</data><data key="lambda">{lam}</data></edge>'
            for source, target, support, lam in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        )
    lines(["</graph>", "</graphml>"])


def _attribute(vertex: int | str | bytes) -> str:
    text = str(spelled(vertex))
    if _NOT_IN_XML.search(text):
        raise UsageError(f"vertex {vertex!r} has a character that XML cannot hold: choose parquet or csv")
    return quoteattr(text)
