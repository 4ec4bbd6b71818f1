"""The formats of input files that edgemill reads: their names, suffixes and first bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal, TypeAlias, get_args

Format: TypeAlias = Literal["parquet", "csv", "tsv", "jsonl", "mtx", "arrow"]
"""A supported format. `tsv` is `csv` with tabs; `mtx` is Matrix Market; `arrow` is an Arrow IPC file or stream."""

FORMATS: tuple[str, ...] = get_args(Format)

FormatChoice: TypeAlias = Literal["auto", Format]
"""The setting of the format. `auto` infers it from the names of the files and their first bytes."""

COMPRESSIONS: Mapping[str, str] = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2"}
"""Suffix of compressed text → Arrow's name of the compression."""

DATA_SUFFIXES: Mapping[str, Format] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".mtx": "mtx",
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


MATRIX_MARKET = b"%%matrixmarket"
"""The first bytes of a Matrix Market file, in lower case."""


def format_of_bytes(head: bytes) -> Format | None:
    """The format that the first bytes of a file mean, uncompressed; None for other text and unsupported formats."""
    if head[:4] in (b"PAR1", b"PARE"):
        return "parquet"
    if head[:6] == b"ARROW1":
        return "arrow"
    return "mtx" if head.removeprefix(b"\xef\xbb\xbf")[: len(MATRIX_MARKET)].lower() == MATRIX_MARKET else None


def is_text(format: str) -> bool:
    """Whether files of a format are lines of text whose columns and types are detected."""
    return format in ("csv", "tsv", "jsonl")
