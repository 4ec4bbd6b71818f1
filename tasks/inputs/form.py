"""How the user says that the input is to be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Bipartite", "Form", "FormatChoice", "IdTypeChoice"]

FormatChoice = Literal["auto", "parquet", "csv", "tsv", "jsonl", "arrow"]
IdTypeChoice = Literal["auto", "int64", "uint64", "string"]
Bipartite = Literal["prefix", "refuse"]
"""What to do with a table whose two columns are two sets of ids: keep them apart, or refuse an id that is in both."""


@dataclass(frozen=True)
class Form:
    """What the settings say of the files; None and "auto" are found out from the files."""

    format: FormatChoice = "auto"

    header: bool | None = None
    """Whether CSV and TSV files begin with the names of their columns."""

    delimiter: str | None = None
    """One character between the fields of CSV and TSV files."""

    comment: str | None = None
    """Lines that begin with this are left out; "" for no such lines."""

    id_type: IdTypeChoice = "auto"
    """Type of the ids in text files."""

    where: str | None = None
    """Condition that a row must meet, in SQL."""

    bipartite: Bipartite | None = None

    directed: bool = False
    """Whether edges lead from the source column to the target column, and that matters."""
