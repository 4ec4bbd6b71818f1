"""The columns of the tables of edges and vertices that are no program's: their names, types and meanings, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ResultColumn:
    """A column of a table of results."""

    name: str
    type: str
    """Alias of the Arrow type; `id` for the type of the input's ids."""
    meaning: str
    """What a value says, for docs/outputs.md."""
    when: Literal["always", "exact", "interval", "estimated"] = "always"
    """In results with exact λ, in those of runs that a limit ended, or in those with estimates of λ beside it."""


EDGES = (
    ResultColumn("support", "int32", "Triangles through the edge."),
    ResultColumn("lambda", "int32", "[λ](lambda.md) of the edge.", "exact"),
    ResultColumn("lambda_low", "int32", "A lower bound of λ.", "interval"),
    ResultColumn("lambda_high", "int32", "An upper bound of λ.", "interval"),
    ResultColumn("lambda_streamdn", "int32", "An [estimate](bounds.md) of λ, for study.", "estimated"),
)
"""Columns of `edges`, after the two of ids. Those of programs follow."""

VERTICES = (
    ResultColumn("id", "id", "The vertex."),
    ResultColumn("degree", "int64", "Number of its edges."),
    ResultColumn("triangles", "int64", "Number of triangles that contain it."),
    ResultColumn("lambda", "int32", "The largest λ of its edges; 0 without edges.", "exact"),
    ResultColumn("lambda_low", "int32", "The largest lower bound of its edges.", "interval"),
    ResultColumn("lambda_high", "int32", "The largest upper bound of its edges.", "interval"),
    ResultColumn(
        "component", "int64", "The innermost component of `hierarchy` that contains it; null without edges.", "exact"
    ),
)
"""Columns of `vertices`. Those of programs follow."""


def names_of(columns: Sequence[ResultColumn], *, estimated: bool = True) -> tuple[str, ...]:
    """The names of columns, without those of estimates if these are not `estimated`."""
    return tuple(own.name for own in columns if estimated or own.when != "estimated")
