"""Rows that were read and are no edges: those with a null id, and those that a condition leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .errors import InputError

__all__ = ["NONE", "LeftOut", "Nulls", "refuse_nulls"]

Nulls: TypeAlias = Literal["refuse", "drop"]
"""What to do with rows that have a null id."""


@dataclass(frozen=True)
class LeftOut:
    """Counts of rows. They add up."""

    nulls: int = 0
    """Rows with a null id."""

    source_nulls: int = 0
    """Nulls in the source column."""

    target_nulls: int = 0
    """Nulls in the target column."""

    filtered: int = 0
    """Rows that do not meet the condition, whatever their ids."""

    place: str = ""
    """Where the first null id is: a file, and its row group if that is known."""

    @property
    def rows(self) -> int:
        """All of them."""
        return self.nulls + self.filtered

    def __add__(self, other: LeftOut) -> LeftOut:
        return LeftOut(
            self.nulls + other.nulls,
            self.source_nulls + other.source_nulls,
            self.target_nulls + other.target_nulls,
            self.filtered + other.filtered,
            self.place or other.place,
        )


NONE = LeftOut()
"""No rows."""


def refuse_nulls(path: str, columns: tuple[str, str], found: LeftOut) -> None:
    """Raises InputError if rows of the input have null ids; it counts them all, and says what to do."""
    if not found.nulls:
        return
    counts = zip(columns, (found.source_nulls, found.target_nulls), strict=True)
    nulls = " and ".join(f"{count:,} in column {name!r}" for name, count in counts if count)
    rows = f"{found.nulls:,} row{'' if found.nulls == 1 else 's'}"
    raise InputError(
        f"{rows} of input {path!r} have null ids: {nulls}; the first is in {found.place}; "
        "leave such rows out with --set input.nulls=drop, or mend them"
    )
