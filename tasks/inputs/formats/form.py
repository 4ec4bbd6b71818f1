"""How rows are laid out in files: what the settings say, and what the beginning of the files shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from .input_format import format_called


@dataclass(frozen=True)
class RowLayout:
    """How text or Arrow IPC files are read. Picklable."""

    format: str

    delimiter: str = ","
    """Between the fields of a line of CSV."""

    header: bool = False
    """Whether the first line of CSV has the names of the columns."""

    comment: str = ""
    """Prefix of comment lines; "" if there are no comments."""

    types: tuple[tuple[str, pa.DataType], ...] = ()
    """The columns that are read, and their types. The first two have the ids."""

    strip: bool = False
    """Whether blanks around the fields of CSV are removed."""

    comment_is_guessed: bool = False
    """Whether `comment` is not a setting. Then a line that may be a comment or a row ends the run."""

    types_are_guessed: bool = False
    """Whether `types` come from the first rows. Then another value may change them (`Source.widened`)."""

    @property
    def id_columns(self) -> tuple[str, ...]:
        """The columns of ids."""
        return tuple(name for name, _ in self.types[:2])

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
            "strip": self.strip,
            "types": [[name, str(kind)] for name, kind in self.types],
        }

    def describe(self) -> str:
        """The layout for a person."""
        if self.format not in ("csv", "tsv"):
            return format_called(self.format).title
        names = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar", " ": "space"}
        parts = [f"{names.get(self.delimiter, repr(self.delimiter))} between fields"]
        parts.append("names in the first line" if self.header else "no names in the first line")
        if self.comment:
            parts.append(f"lines that begin with {self.comment} are skipped")
        if self.strip:
            parts.append("without blanks around fields")
        return f"{self.format.upper()}: {', '.join(parts)}"


IdTypeChoice = Literal["auto", "int64", "uint64", "string"]
Bipartite = Literal["prefix", "refuse"]
"""If the two columns are two sets of ids: add a prefix to each, or refuse an id that is in both columns."""

Repeats = Literal["error", "sum", "min", "max"]
"""The weight of an edge with several rows: refuse such edges, or take the sum, the smallest or the largest weight."""


@dataclass(frozen=True)
class Weights:
    """The weights of edges."""

    column: str
    """Column of numbers, read as float64."""

    repeats: Repeats = "error"

    nonnegative: bool = False
    """Whether weights below 0 are refused."""


@dataclass(frozen=True)
class Form:
    """What the settings say about the files. None and "auto" are determined from the files."""

    format: str = "auto"
    """The name of a format, or `auto`: by the names of the files and their first bytes."""

    header: bool | None = None
    """Whether the first line of CSV and TSV files has the names of the columns."""

    delimiter: str | None = None
    """The character between the fields of CSV and TSV files."""

    comment: str | None = None
    """Prefix of comment lines, which are skipped; "" if there are no comments."""

    strip: bool = False
    """Whether blanks around the fields of CSV and TSV files are removed."""

    id_type: IdTypeChoice = "auto"
    """Type of the ids in text files."""

    where: str | None = None
    """SQL condition that selects rows."""

    bipartite: Bipartite | None = None

    two_sided: bool = False
    """Whether every edge joins two sides, which are the columns. λ then counts butterflies."""

    directed: bool = False
    """Whether the direction of edges, from the source to the target column, is kept."""

    weights: Weights | None = None
    """The weights of edges; None if edges have none."""
