"""Breadth-first search and shortest paths from one vertex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..program import Array, Best, Program, State, Totals, Vertices


@dataclass(frozen=True)
class BreadthFirst(Program):
    """The fewest edges from `source` to each vertex, and the vertex before it on such a path.

    *Source.* Moore, "The shortest path through a maze", 1959; both directions: Beamer, Asanović and Patterson,
    "Direction-optimizing breadth-first search", SC 2012.

    *Semantics.* `level`, int32: 0 of the source, -1 where no path leads. `parent`: number of the vertex before; its own
    of the source, -1 where no path leads.

    *Ties.* Of several vertices that a vertex may come from, the parent is the one of least number. *Precision.* Exact.

    *Convergence.* After as many supersteps as the largest level, and one. *Cost.* Every edge once, or less.
    """

    source: int = 0
    """Number of a vertex."""

    state: ClassVar = {"level": "int32", "parent": "int64"}
    combine = "first"
    heard = "moved"

    def start(self, v: Vertices) -> tuple[State, Array]:
        """The source alone is reached."""
        here = v.number == self.source
        return {"level": np.where(here, 0, -1), "parent": np.where(here, v.number, -1)}, here

    def emit(self, v: Vertices) -> Array:
        """That a vertex was reached says all."""
        return v.number

    def listens(self, v: Vertices) -> Array | None:
        """Those that are not reached."""
        return v.level < 0

    def apply(self, v: Vertices, got: Array, t: Totals) -> tuple[State, Array]:
        """They are reached."""
        return {"level": v.full(v.step + 1, "int32"), "parent": got}, v.full(True, "bool")


@dataclass(frozen=True)
class ShortestPaths(Program):
    """The least sum of weights from `source` to each vertex, and the vertex before it on such a path.

    *Source.* Bellman, "On a routing problem", 1958, by frontiers: only vertices whose distance fell are heard (Moore,
    1959).

    *Semantics.* `distance`, float64: 0 of the source, infinite where no path leads. `predecessor`: number of the vertex
    before; its own of the source, -1 where no path leads. Weights are 0 or more.

    *Ties.* Of several shortest paths one of fewest edges; of several vertices that a vertex may come from on these, the
    one of least number. So predecessors make a tree where weights are 0, too. *Precision.* float64: a path's weights
    are added up from the source on, and the least of these sums is found.

    *Convergence.* After as many supersteps as the longest of these paths has edges, and one. *Cost.* The edges of a
    vertex are read each time that its distance falls: mostly a few times, E × V at worst.
    """

    source: int = 0
    """Number of a vertex."""

    state: ClassVar = {"distance": "float64", "predecessor": "int64"}
    combine = "argmin"
    along = "add"
    heard = "moved"

    def start(self, v: Vertices) -> tuple[State, Array]:
        """The source alone is reached."""
        here = v.number == self.source
        return {"distance": np.where(here, 0.0, np.inf), "predecessor": np.where(here, v.number, -1)}, here

    def emit(self, v: Vertices) -> Array:
        """How far it is to here."""
        return v.distance

    def apply(self, v: Vertices, got: Best, t: Totals) -> tuple[State, Array]:
        """The shorter way, if what came is one."""
        nearer = got.value < v.distance
        distance = np.where(nearer, got.value, v.distance)
        return {"distance": distance, "predecessor": np.where(nearer, got.source, v.predecessor)}, nearer
