"""The formats of input files: which are read, how a name tells them, and how to convert one that is not read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

__all__ = [
    "COMPRESSIONS",
    "DATA_SUFFIXES",
    "Format",
    "compression_of",
    "format_named_by",
    "format_of_bytes",
    "is_text",
    "suffix_of",
    "why_not_read",
]

Format: TypeAlias = Literal["parquet", "csv", "tsv", "jsonl", "arrow"]
"""A format that is read. `tsv` is `csv` with tabs; `arrow` is Arrow IPC, as a file or as a stream."""

COMPRESSIONS: Mapping[str, str] = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2"}
"""Suffixes of compressed text → what Arrow calls the compression."""

DATA_SUFFIXES: Mapping[str, Format] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
"""Suffixes that data alone have. In a folder all of them count."""

OTHER_SUFFIXES: Mapping[str, Format] = {
    ".pq": "parquet",
    ".parq": "parquet",
    ".txt": "csv",
    ".edges": "csv",
    ".edgelist": "csv",
    ".el": "csv",
    ".dat": "csv",
    ".json": "jsonl",
}
"""Suffixes that notes and metadata have, too. In a folder they count where no file has one of DATA_SUFFIXES."""

_DUCKDB: Mapping[str, str] = {
    ".xlsx": "FROM read_xlsx('{path}')",
    ".avro": "FROM read_avro('{path}')",
    ".db": "FROM sqlite_scan('{path}', 'EDGES')",
    ".sqlite": "FROM sqlite_scan('{path}', 'EDGES')",
    ".sqlite3": "FROM sqlite_scan('{path}', 'EDGES')",
    ".duckdb": "FROM EDGES",
    ".json": "FROM read_json('{path}')",
    ".xml": "FROM EDGES",
}
"""Suffixes of formats that are not read → what DuckDB reads them by."""

_PANDAS: Mapping[str, str] = {
    ".orc": "read_orc",
    ".xls": "read_excel",
    ".ods": "read_excel",
    ".pkl": "read_pickle",
    ".pickle": "read_pickle",
    ".h5": "read_hdf",
    ".hdf5": "read_hdf",
    ".sas7bdat": "read_sas",
    ".dta": "read_stata",
    ".sav": "read_spss",
}
"""The same of formats that DuckDB does not read → the function of pandas that does."""

_GRAPHS = {
    ".graphml": "read_graphml",
    ".gml": "read_gml",
    ".gexf": "read_gexf",
    ".net": "read_pajek",
    ".pajek": "read_pajek",
}
"""Formats of graphs → the function of NetworkX that reads them."""


def suffix_of(name: str) -> str:
    """The suffix that tells the format, in small letters, without that of a compression: `.csv` of `A.CSV.gz`."""
    path = PurePosixPath(name.lower())
    if path.suffix in COMPRESSIONS:
        path = path.with_suffix("")
    return path.suffix


def compression_of(name: str) -> str | None:
    """What Arrow calls the compression that a name tells; None if it tells none."""
    return COMPRESSIONS.get(PurePosixPath(name.lower()).suffix)


def format_named_by(name: str) -> Format | None:
    """The format that the name of a file tells; None if it tells none that is read."""
    suffix = suffix_of(name)
    return DATA_SUFFIXES.get(suffix) or OTHER_SUFFIXES.get(suffix)


def format_of_bytes(head: bytes) -> Format | None:
    """The format that the first bytes of a file tell; None of text, and of what is not read."""
    if head[:4] == b"PAR1":
        return "parquet"
    return "arrow" if head[:6] == b"ARROW1" else None


def is_text(format: str) -> bool:
    """Whether files of a format are lines of text."""
    return format in ("csv", "tsv", "jsonl")


def why_not_read(path: str) -> str | None:
    """Why a file of this name is not read, and the command that converts it; None if its name tells nothing."""
    suffix = suffix_of(path)
    quoted = path.replace("'", "''")
    if suffix in _DUCKDB:
        table = _DUCKDB[suffix].format(path=quoted)
        columns = f"COPY (SELECT src, dst {table}) TO 'edges.parquet'"
        return (
            f"{path} is {suffix.removeprefix('.')}, which is not read; convert it, for example with DuckDB: {columns}"
        )
    if suffix in _PANDAS:
        code = f"pandas.{_PANDAS[suffix]}({path!r}).to_parquet('edges.parquet')"
        return f"{path} is {suffix.removeprefix('.')}, which is not read; convert it, for example with pandas: {code}"
    if suffix in _GRAPHS:
        code = f"networkx.to_pandas_edgelist(networkx.{_GRAPHS[suffix]}({path!r})).to_parquet('edges.parquet')"
        return f"{path} is {suffix.removeprefix('.')}, which is not read; convert it, for example with NetworkX: {code}"
    if re.search(r"\.(zip|tar|tgz|rar|7z|xz|lz4|br|snappy)$", path.lower()):
        return f"{path} is compressed in a way that is not read: unpack it, or compress it with gzip or zstd"
    return None
