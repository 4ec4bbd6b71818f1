"""What a vertex program is: four functions over arrays of vertices, the same text for any array type.

A program runs in supersteps. In each, every vertex that is heard emits a value; the values that come along the edges
into a vertex are combined to one; from that the vertex gets its new state. The functions see arrays of some of a
block's vertices, and what they give for one may depend on that one alone: then no cut changes the result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
State: TypeAlias = Mapping[str, Array]
Combine: TypeAlias = Literal["sum", "min", "max", "any", "argmin", "first", "mode", "hindex", "closed"]
View: TypeAlias = Literal["in", "both", "either"]


class Vertices:
    """Some vertices of a block, in ascending order of their numbers; each attribute is an array [vertices].

    Beside the state of the program there are `number`, the dense number, which ascends with the id; `in_degree`, the
    entries of the vertex's row; `out_degree`, the rows' entries that it is the source of; and `out_weight`, their sum
    of weights, for a program that `weighs`.
    """

    total: int
    """Vertices of the whole graph."""
    step: int
    """Supersteps that are over."""

    def __init__(self, arrays: Mapping[str, Array], total: int, step: int, rows: Array | None = None) -> None:
        self.total, self.step = total, step
        self._arrays, self._rows = arrays, rows

    def __getattr__(self, name: str) -> Array:
        if name.startswith("_") or name not in self._arrays:
            raise AttributeError(f"vertices have {', '.join(self._arrays)}, no {name}")
        whole = self._arrays[name]
        found: Array = whole if self._rows is None else whole[self._rows]
        self.__dict__[name] = found
        return found

    def at(self, rows: Array) -> Vertices:
        """Those in some rows of the block; for all vertices only."""
        return Vertices(self._arrays, self.total, self.step, rows)

    def full(self, value: Any, dtype: Any = "float64") -> Array:
        """[vertices] the same value for each."""
        found: Array = np.full_like(self.number, value, dtype=dtype)
        return found


@dataclass(frozen=True)
class Best:
    """What `argmin` gives."""

    value: Array
    """[vertices] the least value that came."""
    source: Array
    """[vertices] number of the first source that it came from."""


class Totals:
    """Sums over all vertices of the graph, by name: int of integers and truth values, float of others."""

    def __init__(self, sums: Mapping[str, int | float]) -> None:
        self.__dict__.update(sums)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the program has no total {name}")


class Program(ABC):
    """Base of programs.

    Subclasses are frozen dataclasses, whose fields are the parameters, and have docstrings that name source, semantics,
    rule for ties, precision, convergence and cost. `start`, `emit` and `apply` have to be given.
    """

    state: ClassVar[Mapping[str, str]]
    """Names of the state's arrays, and their types."""

    combine: ClassVar[Combine]
    """What is made of the values that come to a vertex.

    `sum`, of float64; `min`, `max`, of int32, int64 or float64; `any`, of truth values; `argmin`: as `min`, and the
    number of the first source of that value; `first`: the number of the first source that is heard; `mode`: the most
    frequent integer, the least of several, -1 of none; `hindex`: the largest k for which k integers are k or more, int;
    `closed`: how many edges there are between the sources, int64, by view "either".
    """

    along: ClassVar[Literal["", "add", "multiply"]] = ""
    """What the weight of an edge does to a value that passes, for `sum`, `min`, `max` and `argmin` of float64."""

    view: ClassVar[View] = "in"
    """The edges into a vertex: `in`, those that lead to it; `both`, those that lead from it, too; `either`, its
    neighbours, each once and without itself. The edges of an undirected graph lead both ways.
    """

    heard: ClassVar[Literal["all", "moved"]] = "all"
    """Whose values come: of all vertices, or only of those that moved in the last superstep.

    With `moved`, for `min`, `max`, `argmin` and `first`, a vertex to which nothing comes is left as it is, and the run
    ends when nothing moves.
    """

    @property
    def weighs(self) -> bool:
        """Whether the program looks at `out_weight`, which takes an exchange of all weights."""
        return False

    @abstractmethod
    def start(self, v: Vertices) -> tuple[State, Array]:
        """The state of each vertex at the start, and which are heard first; every array [vertices]."""

    @abstractmethod
    def emit(self, v: Vertices) -> Array:
        """[vertices] the value that goes along all edges from each vertex. Of `first` it is not looked at."""

    def totals(self, v: Vertices) -> State:
        """[vertices] values to be summed over all vertices of the graph, without rounding, by name."""
        return {}

    def listens(self, v: Vertices) -> Array | None:
        """[vertices] whether what comes may still change a vertex; None for all. With `heard` `moved` only."""
        return None

    @abstractmethod
    def apply(self, v: Vertices, got: Any, t: Totals) -> tuple[State, Array]:
        """The new state of each vertex, and how far it moved, or whether; every array [vertices]."""

    def converged(self, moved: float) -> bool:
        """Whether the run is over when all vertices together moved as far as that."""
        return moved == 0

    @property
    def steps(self) -> int | None:
        """Supersteps after which the run is over, whatever has moved; None for no such number."""
        return None
