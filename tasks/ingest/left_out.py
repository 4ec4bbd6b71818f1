"""Counts of rows and lines that make no edge, and of ids with outer blanks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..errors import InputError

Nulls: TypeAlias = Literal["refuse", "drop"]
"""What to do with rows that have a null id."""


@dataclass(frozen=True)
class LeftOut:
    """Counts of rows that were left out, of comments, and of ids with outer blanks. `+` adds two of these records."""

    nulls: int = 0
    """Rows with a null id."""

    source_nulls: int = 0
    """Nulls in the source column."""

    target_nulls: int = 0
    """Nulls in the target column."""

    filtered: int = 0
    """Rows that do not meet the condition, with or without null ids."""

    location: str = ""
    """File of the first null id, and its row group if known."""

    comments: int = 0
    """Lines of text that were skipped as comments. They are no rows."""

    comment: str = ""
    """The first comment, with its file."""

    padded: int = 0
    """Text ids that begin or end with a blank, in rows that were kept."""

    pad: str = ""
    """The first of these ids, with its file."""

    @property
    def rows(self) -> int:
        """All rows left out."""
        return self.nulls + self.filtered

    def __add__(self, other: LeftOut) -> LeftOut:
        return LeftOut(
            self.nulls + other.nulls,
            self.source_nulls + other.source_nulls,
            self.target_nulls + other.target_nulls,
            self.filtered + other.filtered,
            self.location or other.location,
            self.comments + other.comments,
            self.comment or other.comment,
            self.padded + other.padded,
            self.pad or other.pad,
        )

    def notes(self, format: str) -> tuple[str, ...]:
        """Sentences on comments and outer blanks in files of this format."""
        notes = []
        if self.comments:
            lines = "1 line was" if self.comments == 1 else f"{self.comments:,} lines were"
            notes.append(f"{lines} skipped as comments, such as {self.comment}")
        if self.padded:
            have = "1 id begins or ends" if self.padded == 1 else f"{self.padded:,} ids begin or end"
            advice = "" if format == "jsonl" else ": --set input.strip=true removes blanks around fields"
            notes.append(f"{have} with a blank, such as {self.pad}{advice}")
        return tuple(notes)


NONE = LeftOut()
"""No rows."""


def refuse_nulls(path: str, columns: tuple[str, str], found: LeftOut) -> None:
    """Raise InputError if rows of the input at `path` have null ids. The message has their number and the remedy."""
    if not found.nulls:
        return
    counts = zip(columns, (found.source_nulls, found.target_nulls), strict=True)
    nulls = " and ".join(f"{count:,} in column {name!r}" for name, count in counts if count)
    rows, have = ("1 row", "has") if found.nulls == 1 else (f"{found.nulls:,} rows", "have")
    raise InputError(
        f"{rows} of input {path!r} {have} null ids: {nulls}; the first is in {found.location}; "
        "leave such rows out with --set input.nulls=drop, or mend them"
    )
