"""A graph as GraphML, written in batches."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Protocol
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa

from ....tasks.errors import UsageError
from ....tasks.ids.display import display_id
from ..frames.group_edges import GroupEdges
from ..result import Result
from .attributes import attribute_columns, attributes_of

NODES = 1 << 16
"""Vertices that are formatted at once."""

_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class _Sink(Protocol):
    def write(self, content: bytes, /) -> Any: ...


def write_graphml(result: Result, vertices: Iterable[pa.Array], edges: GroupEdges, file: _Sink) -> None:
    """Write vertices with their attributes, and edges with their support and λ. `vertices` are arrays of ids.

    Raises UsageError for text that XML cannot hold.
    """

    def lines(texts: Iterable[str]) -> None:
        file.write("".join(f"{text}\n" for text in texts).encode())

    names = attribute_columns(result)
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
            *(f'<key id="{name}" for="edge" attr.name="{name}" attr.type="int"/>' for name in ("support", "lambda")),
            '<graph edgedefault="undirected">',
        ]
    )
    for ids in vertices:
        for start in range(0, len(ids), NODES):
            lines(_nodes(result, ids.slice(start, NODES)))
    for batch in edges:
        lines(
            f"<edge source={_vertex(source)} target={_vertex(target)}>"
            f'<data key="support">{support}</data><data key="lambda">{lam}</data></edge>'
            for source, target, support, lam in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        )
    lines(["</graph>", "</graphml>"])


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
