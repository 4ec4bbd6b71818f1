"""The edges of a group or of a k-truss as a file: Parquet, CSV or GraphML, written in batches."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, Protocol, TypeAlias
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa
import pyarrow.csv as arrow_csv

from ...tasks.errors import UsageError
from ...tasks.ids.display import display_column, display_id
from ...tasks.storage.parquet_checksum import checksummed_writer
from ..results.lookup import Group
from ..results.result import Result
from .attributes import EndAttributes, attribute_columns, attributes_of
from .group_edges import GroupEdges
from .groups import edges_of, member_ids
from .trusses import ktruss, truss_group, truss_vertices

NODES = 1 << 16
"""Vertices that are formatted at once."""

_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class _Sink(Protocol):
    def write(self, content: bytes, /) -> Any: ...


def write_graphml(result: Result, vertices: Iterable[pa.Array], edges: GroupEdges, file: _Sink) -> None:
    """Write vertices with their attributes, and edges with their columns. `vertices` are arrays of ids.

    Raises UsageError for text that XML cannot hold.
    """

    def lines(texts: Iterable[str]) -> None:
        file.write("".join(f"{text}\n" for text in texts).encode())

    names, values = attribute_columns(result), list(edges.schema)[2:]
    types = [result.attributes.schema.field(name).type for name in names]
    lines(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
            *(
                f'<key id="v{number}" for="node" attr.name={_attribute(name, f"the attribute {name!r}")} '
                f'attr.type="{_xml_type(kind)}"/>'
                for number, (name, kind) in enumerate(zip(names, types, strict=True))
            ),
            *(
                f'<key id="{column.name}" for="edge" attr.name="{column.name}" attr.type="{_xml_type(column.type)}"/>'
                for column in values
            ),
            '<graph edgedefault="undirected">',
        ]
    )
    for ids in vertices:
        for start in range(0, len(ids), NODES):
            lines(_nodes(result, ids.slice(start, NODES)))
    for batch in edges:
        lines(
            f"<edge source={_vertex(source)} target={_vertex(target)}>{_edge_values(values, own)}</edge>"
            for source, target, *own in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        )
    lines(["</graph>", "</graphml>"])


def _edge_values(columns: Sequence[pa.Field], values: Sequence[Any]) -> str:
    """The values of an edge that are not null."""
    return "".join(
        f'<data key="{column.name}">{_plain(value)}</data>'
        for column, value in zip(columns, values, strict=True)
        if value is not None
    )


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _nodes(result: Result, ids: pa.Array) -> Iterable[str]:
    columns = [column.to_pylist() for column in attributes_of(result, ids).columns]
    for row, vertex in enumerate(ids.to_pylist()):
        data = "".join(
            f'<data key="v{number}">{_text(column[row], vertex)}</data>'
            for number, column in enumerate(columns)
            if column[row] is not None
        )
        yield f"<node id={_vertex(vertex)}>{data}</node>" if data else f"<node id={_vertex(vertex)}/>"


def _xml_type(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return "long"
    return "double" if pa.types.is_floating(kind) else "string"


def _vertex(vertex: int | str | bytes) -> str:
    return _attribute(str(display_id(vertex)), f"vertex {display_id(vertex)!r}")


def _attribute(text: str, what: str) -> str:
    return quoteattr(_checked(text, what))


def _text(value: Any, vertex: int | str) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return escape(_checked(text, f"an attribute of vertex {vertex!r}"), {"\r": "&#13;"})


def _checked(text: str, what: str) -> str:
    if _NOT_IN_XML.search(text):
        raise UsageError(f"{what} has a character that XML cannot hold: choose parquet or csv")
    return text


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
