"""What a format of input files declares, and the formats in `shipped` by their names, suffixes and first bytes.

A module in `shipped` is all that edgemill knows of its format.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path, PurePosixPath
from pkgutil import iter_modules
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

Span: TypeAlias = tuple[int, int | None]
"""A range of what is read alone, end excluded; None for the end of the file."""


class InputFormat(ABC):
    """Base of the formats of input files. A format is a class without arguments, in a module with its name."""

    title: ClassVar[str]
    """What people call it."""

    suffixes: ClassVar[tuple[str, ...]]
    """Suffixes that only data files have. In a folder all such files are read."""

    other_suffixes: ClassVar[tuple[str, ...]] = ()
    """Suffixes that notes and metadata have as well. In a folder such files are read only if there are no others."""

    marks: ClassVar[tuple[bytes, ...]] = ()
    """What its files begin with; empty if that does not tell it."""

    reading: ClassVar[str]
    """How a file is read, for docs/inputs.md."""

    is_text: ClassVar[bool] = False
    """Whether files are lines of text whose columns and types are detected."""

    is_counted: ClassVar[bool] = False
    """Whether the number of rows is known before they are read."""

    duckdb_reader: ClassVar[str] = ""
    """DuckDB's function that reads it, for examples in messages; empty if there is none."""

    def begins(self, head: bytes) -> bool:
        """Whether a file with these first bytes, uncompressed, is of this format."""
        return bool(self.marks) and head.startswith(self.marks)


@dataclass(frozen=True)
class TableHead:
    """Columns, rows and parts of a file whose columns have types."""

    schema: pa.Schema
    rows: tuple[int, ...]
    """[parts] rows of each part that is read alone, estimated or counted, at least 1; empty for a file without rows."""
    spans: tuple[Span, ...]
    """[parts] their ranges."""


class TypedFormat(InputFormat):
    """A format whose files have columns with types, and are read in parts, such as Arrow."""

    @abstractmethod
    def read_head(self, file: Any, path: str, size: int) -> TableHead:
        """The head of an open file of `size` bytes. Raises READ_ERRORS, and InputError for a file that is not read."""

    @abstractmethod
    def batches(self, file: Any, columns: Sequence[str], span: Span) -> Iterator[pa.RecordBatch]:
        """Some columns of the rows in `span` of an open file, in their order in the file. Raises READ_ERRORS."""

    @abstractmethod
    def whole(self, file: Any) -> pa.Table:
        """All rows of an open file at once, for `edgemill verify`. Raises READ_ERRORS."""


COMPRESSIONS: Mapping[str, str] = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2"}
"""Suffix of compressed text → Arrow's name of the compression."""

_SHIPPED = "shipped"


@cache
def format_names() -> tuple[str, ...]:
    """The names of all formats, as `input.format` takes them. Loads no format."""
    return tuple(sorted(module.name for module in iter_modules([str(Path(__file__).with_name(_SHIPPED))])))


@cache
def format_called(name: str) -> InputFormat:
    """The format with a name."""
    module = import_module(f".{_SHIPPED}.{name}", __package__)
    (kind,) = (
        one
        for key, one in vars(module).items()
        if isinstance(one, type) and one.__module__ == module.__name__ and hasattr(one, "suffixes") and key[0] != "_"
    )
    found: InputFormat = kind()
    return found


def every_format() -> dict[str, InputFormat]:
    """Name → format."""
    return {name: format_called(name) for name in format_names()}


def suffix_of(name: str) -> str:
    """The suffix of the format, in lower case, without the suffix of a compression: `.csv` for `A.CSV.gz`."""
    path = PurePosixPath(name.lower())
    if path.suffix in COMPRESSIONS:
        path = path.with_suffix("")
    return path.suffix


def compression_of(name: str) -> str | None:
    """Arrow's name of the compression that the suffix means; None without such a suffix."""
    return COMPRESSIONS.get(PurePosixPath(name.lower()).suffix)


def format_named_by(name: str, of_data_alone: bool = False) -> str | None:
    """The format that the suffix means, `of_data_alone` if only data files have it; None for other suffixes."""
    suffix = suffix_of(name)
    for format, own in every_format().items():
        if suffix in own.suffixes or (suffix in own.other_suffixes and not of_data_alone):
            return format
    return None


def format_of_bytes(head: bytes) -> str | None:
    """The format that the first bytes of a file mean, uncompressed; None for other text and unsupported formats."""
    return next((format for format, own in every_format().items() if own.begins(head)), None)


def is_text(format: str) -> bool:
    """Whether files of a format are lines of text whose columns and types are detected."""
    return format_called(format).is_text
