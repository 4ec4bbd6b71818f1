"""The columns of the tables of edges and vertices that are no program's, in order.

An entry of `EDGES` is all that a new column of the edges needs: what writes, updates, checks, reads and documents the
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
"""In all results, in those with exact λ, or in those of runs that a limit ended."""


@dataclass(frozen=True)
class ResultColumn:
    """A column of a table of results."""

    name: str
    type: str
    """Alias of the Arrow type; `id` for the type of the input's ids."""
    meaning: str
    """What a value says, for docs/outputs.md."""
    when: When = "always"
    """The results that have it."""


class EdgeNumbers(Protocol):
    """What is known of edges; each array is [edges]. Both bounds are one array if all λ are known."""

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
    """The values [edges], by operators that NumPy and CuPy have."""
    check: Callable[[EdgeNumbers], NDArray[Any]] | None = field(default=None, kw_only=True)
    """The right values [edges], by code other than `value`, for `verify`: from supports that it counts anew, and from
    bounds that it has checked. None for the bounds, which it checks by the graph.
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
"""Columns of `edges`, after the two of ids. The estimate and those of programs follow."""

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
"""Columns of `vertices`. Those of programs follow."""


def names_of(columns: Sequence[ResultColumn], *when: When) -> tuple[str, ...]:
    """The names of the columns of results of these kinds, of all if none is given."""
    return tuple(own.name for own in columns if not when or own.when in when)


def edge_columns(converged: bool) -> list[EdgeResultColumn]:
    """The columns of `EDGES` that a result with exact λ has, or one with intervals."""
    return [own for own in EDGES if own.when in ("always", "exact" if converged else "interval")]
