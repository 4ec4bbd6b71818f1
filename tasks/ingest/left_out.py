"""Counts of rows that make no edge: rows with a null id, and rows that do not meet the condition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..errors import InputError

Nulls: TypeAlias = Literal["refuse", "drop"]
"""What to do with rows that have a null id."""


@dataclass(frozen=True)
class LeftOut:
    """Counts of rows left out. `+` adds them."""

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
        )


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
