"""The same rows as files of every supported format."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

Write = Callable[[pa.Table, Path], None]


def _delimited(table: pa.Table, delimiter: str, header: bool = True, before: str = "") -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    if header:
        writer.writerow(table.schema.names)
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        writer.writerow(["" if value is None else value for value in row])
    return (before + text.getvalue()).encode()


def _json(table: pa.Table) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in table.to_pylist()).encode()


def _zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as file:
        file.write(content)
    return bytes(sink.getvalue())


def _arrow(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max(1, len(table) // 3))


def _compressed_arrow(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table, max(1, len(table) // 3))


def _arrow_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max(1, len(table) // 3))


def _bytes(content: Callable[[pa.Table], bytes]) -> Write:
    return lambda table, path: _ignore(path.write_bytes(content(table)))


def _ignore(_: int) -> None:
    """Drop a return value."""


FILES: Mapping[str, Write] = {
    "rows.parquet": lambda table, path: pq.write_table(table, path, row_group_size=max(1, len(table) // 3)),
    "rows.csv": _bytes(lambda table: _delimited(table, ",")),
    "semicolons.csv": _bytes(lambda table: _delimited(table, ";")),
    "windows.csv": _bytes(lambda table: b"\xef\xbb\xbf" + _delimited(table, ",").replace(b"\n", b"\r\n")),
    "unended.csv": _bytes(lambda table: _delimited(table, ",").rstrip(b"\n")),
    "rows.csv.gz": _bytes(lambda table: gzip.compress(_delimited(table, ","))),
    "rows.csv.bz2": _bytes(lambda table: bz2.compress(_delimited(table, ","))),
    "rows.tsv": _bytes(lambda table: _delimited(table, "\t")),
    "rows.tsv.zst": _bytes(lambda table: _zstd(_delimited(table, "\t"))),
    "rows.jsonl": _bytes(_json),
    "rows.ndjson.gz": _bytes(lambda table: gzip.compress(_json(table))),
    "rows.arrow": _arrow,
    "rows.feather": _compressed_arrow,
    "rows.arrows": _arrow_stream,
}
"""Name of a file → function that writes it. All files have column names."""

SNAP: Mapping[str, Write] = {
    "snap.txt": _bytes(
        lambda table: _delimited(table, "\t", header=False, before="# Directed graph\n# FromNodeId\tToNodeId\n")
    ),
    "konect.edges": _bytes(lambda table: _delimited(table, " ", header=False, before="% sym unweighted\n")),
    "snap.txt.gz": _bytes(lambda table: gzip.compress(_delimited(table, "\t", header=False, before="# Nodes\n\n"))),
}
"""Files without column names, as in collections of graphs."""
