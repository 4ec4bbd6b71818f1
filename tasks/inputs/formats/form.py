"""What the settings say about the files of an input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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

    directed: bool = False
    """Whether the direction of edges, from the source to the target column, is kept."""

    weights: Weights | None = None
    """The weights of edges; None if edges have none."""
