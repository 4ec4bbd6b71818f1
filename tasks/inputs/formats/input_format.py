"""What a format of input files declares. Its module in `shipped` is all that edgemill knows of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


class TableFormat(InputFormat):
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
