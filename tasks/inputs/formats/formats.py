"""Formats of input files: supported formats, their suffixes, and how to convert a file of another format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

Format: TypeAlias = Literal["parquet", "csv", "tsv", "jsonl", "arrow"]
"""A supported format. `tsv` is `csv` with tabs; `arrow` is an Arrow IPC file or stream."""

COMPRESSIONS: Mapping[str, str] = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2"}
"""Suffix of compressed text → Arrow's name of the compression."""

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
"""Suffixes that only data files have. In a folder all such files are read."""

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
"""Suffixes of notes and metadata as well. In a folder such files are read only if none has one of DATA_SUFFIXES."""

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
"""Suffix of an unsupported format → DuckDB's clause that reads it."""

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
"""Suffix of a format that DuckDB does not read either → the function of pandas that does."""

_GRAPHS = {
    ".graphml": "read_graphml",
    ".gml": "read_gml",
    ".gexf": "read_gexf",
    ".net": "read_pajek",
    ".pajek": "read_pajek",
}
"""Suffix of a graph format → the function of NetworkX that reads it."""


def suffix_of(name: str) -> str:
    """The suffix of the format, in lower case, without the suffix of a compression: `.csv` for `A.CSV.gz`."""
    path = PurePosixPath(name.lower())
    if path.suffix in COMPRESSIONS:
        path = path.with_suffix("")
    return path.suffix


def compression_of(name: str) -> str | None:
    """Arrow's name of the compression that the suffix means; None without such a suffix."""
    return COMPRESSIONS.get(PurePosixPath(name.lower()).suffix)


def format_named_by(name: str) -> Format | None:
    """The format that the suffix means; None for other suffixes."""
    suffix = suffix_of(name)
    return DATA_SUFFIXES.get(suffix) or OTHER_SUFFIXES.get(suffix)


def format_of_bytes(head: bytes) -> Format | None:
    """The format that the first bytes of a file mean; None for text and unsupported formats."""
    if head[:4] == b"PAR1":
        return "parquet"
    return "arrow" if head[:6] == b"ARROW1" else None


def is_text(format: str) -> bool:
    """Whether files of a format are lines of text."""
    return format in ("csv", "tsv", "jsonl")


def why_not_read(path: str) -> str | None:
    """Why a file with this suffix is not read, with a command that converts it; None for an unknown suffix."""
    suffix = suffix_of(path)
    quoted = path.replace("'", "''")
    unread = f"{suffix.removeprefix('.')}, which edgemill does not read"
    if suffix in _DUCKDB:
        table = _DUCKDB[suffix].format(path=quoted)
        columns = f"COPY (SELECT src, dst {table}) TO 'edges.parquet'"
        return f"{path} is {unread}; convert it, for example with DuckDB: {columns}"
    if suffix in _PANDAS:
        code = f"pandas.{_PANDAS[suffix]}({path!r}).to_parquet('edges.parquet')"
        return f"{path} is {unread}; convert it, for example with pandas: {code}"
    if suffix in _GRAPHS:
        code = f"networkx.to_pandas_edgelist(networkx.{_GRAPHS[suffix]}({path!r})).to_parquet('edges.parquet')"
        return f"{path} is {unread}; convert it, for example with NetworkX: {code}"
    if re.search(r"\.(zip|tar|tgz|rar|7z|xz|lz4|br|snappy)$", path.lower()):
        return f"{path} has a compression that edgemill does not read: unpack it, or compress it with gzip or zstd"
    return None
