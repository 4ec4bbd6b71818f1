"""Values of edges: functions of both ends and of the number of triangles, after a program has ended or without one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from ..program import Array, Column, State, Vertices


class EdgeProgram(ABC):
    """Base of programs that compute columns of the table of edges, without supersteps.

    A subclass is a frozen dataclass whose fields are the parameters. Its docstring states the same as that of a
    `Program`. An edge has no direction here: `low` is its end of smaller id.
    """

    edges: ClassVar[Mapping[str, str]]
    """Names and types of the columns: `bool`, `int32`, `int64`, `float32`, `float64`."""

    columns: ClassVar[Mapping[str, Column]] = {}
    """What is said of these columns, by name."""

    by_support: ClassVar[bool] = False
    """As for `Program`: edges have no weights here."""

    @abstractmethod
    def of_edges(self, low: Vertices, high: Vertices, support: Array) -> State:
        """[edges] the columns by name.

        `low` and `high` are the ends: `number`, `degree` (the number of neighbours), and for a `Program` its state.
        `support` is the number of triangles that contain the edge, int32: the common neighbours of its ends. The value
        of an edge must depend on that edge only.
        """
