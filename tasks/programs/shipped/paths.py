"""Breadth-first search and shortest paths from one vertex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..program import Array, Best, Program, State, Totals, Vertices


@dataclass(frozen=True)
class BreadthFirst(Program):
    """The number of edges on a shortest path from `source` to each vertex, and its predecessor on such a path.

    *Source.* Moore, "The shortest path through a maze", 1959; both directions: Beamer, Asanović and Patterson,
    "Direction-optimizing breadth-first search", SC 2012.

    *Semantics.* `level`, int32: 0 for the source, -1 for unreachable vertices. `parent`: dense number of the
    predecessor; the source's own for the source, -1 for unreachable vertices.

    *Ties.* The parent is the smallest possible predecessor. *Precision.* Exact.

    *Convergence.* One superstep more than the largest level. *Cost.* At most every edge once.
    """

    source: int = 0
    """Dense number of a vertex."""

    state: ClassVar = {"level": "int32", "parent": "int64"}
    combine = "first"
    senders = "changed"

    def start(self, v: Vertices) -> tuple[State, Array]:
        """Only the source is reached."""
        here = v.number == self.source
        return {"level": np.where(here, 0, -1), "parent": np.where(here, v.number, -1)}, here

    def emit(self, v: Vertices) -> Array:
        """Not used: only which vertices send matters."""
        return v.number

    @property
    def relaxed(self) -> Program:
        """Levels as bounds that decrease."""
        return _LevelBounds()

    def receives(self, v: Vertices) -> Array | None:
        """Unreached vertices."""
        return v.level < 0

    def apply(self, v: Vertices, got: Array, t: Totals) -> tuple[State, Array]:
        return {"level": v.full(v.step + 1, "int32"), "parent": got}, v.full(True, "bool")


_UNREACHED = np.iinfo(np.int32).max


@dataclass(frozen=True)
class _LevelBounds(Program):
    """Breadth-first search in any order: the bound of a level is lowered by one more than a neighbour's bound."""

    state: ClassVar = {"level": "int32", "parent": "int64"}
    combine = "min"
    senders = "changed"
    bound = "level"
    monotone = True

    @property
    def then(self) -> Program:
        return _Parents()

    def start(self, v: Vertices) -> tuple[State, Array]:
        """The vertices of the last level send."""
        return {"level": np.where(v.level < 0, _UNREACHED, v.level), "parent": v.parent}, v.level == v.step

    def emit(self, v: Vertices) -> Array:
        return v.level + np.int32(1)

    def apply(self, v: Vertices, got: Array, t: Totals) -> tuple[State, Array]:
        return {"level": np.minimum(got, v.level), "parent": v.parent}, got < v.level


@dataclass(frozen=True)
class _Parents(Program):
    """The smallest predecessor of each vertex, from the levels."""

    state: ClassVar = {"level": "int32", "parent": "int64"}
    combine = "argmin"

    @property
    def steps(self) -> int | None:
        return 1

    def start(self, v: Vertices) -> tuple[State, Array]:
        return {"level": v.level, "parent": v.full(-1, "int64")}, v.full(True, "bool")

    def emit(self, v: Vertices) -> Array:
        return v.level

    def apply(self, v: Vertices, got: Best, t: Totals) -> tuple[State, Array]:
        """No in-edge comes from a level that is lower by more than one, so the lowest one has the predecessors."""
        reached = v.level < _UNREACHED
        parent = np.where(v.level > 0, got.source, v.number)
        return {
            "level": np.where(reached, v.level, -1),
            "parent": np.where(reached, parent, -1),
        }, reached


@dataclass(frozen=True)
class ShortestPaths(Program):
    """The smallest sum of weights on a path from `source` to each vertex, and its predecessor on such a path.

    *Source.* Bellman, "On a routing problem", 1958, with frontiers: only vertices whose distance decreased send (Moore,
    1959).

    *Semantics.* `distance`, float64: 0 for the source, infinite for unreachable vertices. `predecessor`: dense number;
    the source's own for the source, -1 for unreachable vertices. Weights must be at least 0.

    *Ties.* A shortest path with the fewest edges; on these, the smallest possible predecessor. So predecessors are a
    tree even with weights 0. *Precision.* float64: the smallest of the sums of weights added in path order.

    *Convergence.* One superstep more than the most edges of these paths. *Cost.* The edges of a vertex are read each
    time that its distance decreases: usually a few times, E × V in the worst case.
    """

    source: int = 0
    """Dense number of a vertex."""

    state: ClassVar = {"distance": "float64", "predecessor": "int64"}
    combine = "argmin"
    along = "add"
    nonnegative = True
    senders = "changed"

    def start(self, v: Vertices) -> tuple[State, Array]:
        """Only the source is reached."""
        here = v.number == self.source
        return {"distance": np.where(here, 0.0, np.inf), "predecessor": np.where(here, v.number, -1)}, here

    def emit(self, v: Vertices) -> Array:
        """The distance to the vertex."""
        return v.distance

    def apply(self, v: Vertices, got: Best, t: Totals) -> tuple[State, Array]:
        """The received distance, if it is smaller."""
        nearer = got.value < v.distance
        distance = np.where(nearer, got.value, v.distance)
        return {"distance": distance, "predecessor": np.where(nearer, got.source, v.predecessor)}, nearer
