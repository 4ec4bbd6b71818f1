"""The columns of the tables of edges and vertices, in order, except the columns of programs.

A new column of the edges needs only an entry in `EDGES`: all code that writes, updates, checks, reads or documents the
table takes its columns from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

When: TypeAlias = Literal["always", "exact", "interval"]
"""In all results, in results with exact λ, or in results of runs that a limit ended."""


@dataclass(frozen=True)
class ResultColumn:
    """A column of a table of results."""

    name: str
    type: str
    """Alias of the Arrow type; `id` for the type of the input's ids."""
    meaning: str
    """What a value says, for docs/outputs.md."""
    when: When = "always"
    """The results that have the column."""


class EdgeNumbers(Protocol):
    """The numbers from which columns are computed, each [edges]. Both bounds are one array if all λ are known."""

    @property
    def support(self) -> NDArray[np.int32]:
        """Triangles of the edge."""

    @property
    def low(self) -> NDArray[np.int32]:
        """λ is at least this."""

    @property
    def high(self) -> NDArray[np.int32]:
        """λ is at most this."""


@dataclass(frozen=True)
class EdgeResultColumn(ResultColumn):
    """A column of the table of edges."""

    value: Callable[[EdgeNumbers], NDArray[Any]] = field(kw_only=True)
    """Computes the values [edges], by operators that NumPy and CuPy have."""
    check: Callable[[EdgeNumbers], NDArray[Any]] | None = field(default=None, kw_only=True)
    """Computes the right values [edges] for `verify`, by code other than `value`, from supports that `verify` counts
    anew and bounds that it has checked. None for the columns of bounds, which `verify` checks by the graph.
    """


EDGES = (
    EdgeResultColumn(
        "support",
        "int32",
        "Triangles through the edge.",
        value=attrgetter("support"),
        check=attrgetter("support"),
    ),
    EdgeResultColumn("lambda", "int32", "[λ](lambda.md) of the edge.", "exact", value=attrgetter("low")),
    EdgeResultColumn("lambda_low", "int32", "A lower bound of λ.", "interval", value=attrgetter("low")),
    EdgeResultColumn("lambda_high", "int32", "An upper bound of λ.", "interval", value=attrgetter("high")),
)
"""Columns of `edges`, after the two columns of ids. The estimate and the columns of programs follow."""

ESTIMATE = ResultColumn("lambda_streamdn", "int32", "An [estimate](bounds.md) of λ, for study.")
"""The column that a run with `bounding.operator: streamdn` adds to `edges`."""

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
"""Columns of `vertices`. The columns of programs follow."""


SIDE = ResultColumn("side", "string", "The column of the input that has it.")
BUTTERFLIES = ResultColumn("butterflies", "int64", "Number of butterflies that contain it.")
"""Columns of `vertices` of a graph with two sides: `side` follows the id, `butterflies` replaces triangles."""


def names_of(columns: Sequence[ResultColumn], *when: When) -> tuple[str, ...]:
    """The names of the columns whose `when` is one of these; of all columns if none is given."""
    return tuple(own.name for own in columns if not when or own.when in when)


def edge_columns(converged: bool) -> list[EdgeResultColumn]:
    """The columns of `EDGES` in a result with exact λ if `converged`, else in a result with intervals."""
    return [own for own in EDGES if own.when in ("always", "exact" if converged else "interval")]
