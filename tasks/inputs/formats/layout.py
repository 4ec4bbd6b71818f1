"""The layout of rows in text and Arrow files. It is determined once, from the beginning of the files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .formats import Format


@dataclass(frozen=True)
class Layout:
    """How text or Arrow IPC files are read. Picklable."""

    format: Format

    delimiter: str = ","
    """Between the fields of a line of CSV."""

    header: bool = False
    """Whether the first line of CSV has the names of the columns."""

    comment: str = ""
    """Prefix of comment lines; "" if there are no comments."""

    types: tuple[tuple[str, pa.DataType], ...] = ()
    """The columns that are read, and their types."""

    @property
    def schema(self) -> pa.Schema:
        """The columns that are read."""
        return pa.schema(list(self.types))

    def facts(self) -> dict[str, Any]:
        """What a result depends on, as JSON values."""
        return {
            "format": self.format,
            "delimiter": self.delimiter,
            "header": self.header,
            "comment": self.comment,
            "types": [[name, str(kind)] for name, kind in self.types],
        }

    def describe(self) -> str:
        """The layout for a person."""
        if self.format == "arrow":
            return "Arrow IPC"
        if self.format == "jsonl":
            return "JSON lines"
        if self.format == "mtx":
            return "Matrix Market"
        names = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar", " ": "space"}
        parts = [f"{names.get(self.delimiter, repr(self.delimiter))} between fields"]
        parts.append("names in the first line" if self.header else "no names in the first line")
        if self.comment:
            parts.append(f"lines that begin with {self.comment} are skipped")
        return f"{self.format.upper()}: {', '.join(parts)}"
