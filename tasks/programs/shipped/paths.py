"""Breadth-first search and shortest paths from one vertex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ....kernels.cpu.alone.predecessors import predecessors
from ....kernels.cpu.alone.shortest_paths import distances
from ....kernels.cpu.programs.reached import set_levels, unreached
from ....kernels.graph import IntArray
from ....kernels.programs import search
from ..program import Array, Best, EdgeFacts, Forms, Found, Program, State, Totals, Vertices, WholeGraph


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
    at_once_on_gpus = True
    at_once_in_place = True

    def start(self, v: Vertices) -> tuple[State, Array]:
        """Only the source is reached."""
        here = v.number == self.source
        level, parent = v.full(-1, "int32"), v.full(-1, "int64")
        level[here], parent[here] = 0, self.source
        return {"level": level, "parent": parent}, here

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

    def forms(self, v: Vertices) -> Forms:
        """A third of the time of one thread was spent in NumPy's passes over all vertices."""
        return {"start": self.start, "receives": lambda v: unreached(v.level), "apply": _reach}

    def at_once(self, graph: WholeGraph) -> Found | None:
        """In both directions, as supersteps do."""
        if (start := graph.position_of(self.source)) is None:
            return None
        level, parent, steps, entries = search(graph.rows, graph.out(), start)
        return Found({"level": level, "parent": graph.numbers_of(parent)}, steps, entries)


def _reach(v: Vertices, got: Array, t: Totals, state: State, rows: IntArray) -> Array:
    set_levels(rows, got, v.step + 1, state["level"], state["parent"])
    return v.full(True, "bool")


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

    *Source.* Bellman, "On a routing problem", 1958, with frontiers, from the nearest on: Meyer and Sanders,
    "Δ-stepping: a parallelizable shortest path algorithm", J. Algorithms 49(1), 2003.

    *Semantics.* `distance`, float64: 0 for the source, infinite for unreachable vertices. `predecessor`: dense number;
    the source's own for the source, -1 for unreachable vertices. Weights must be at least 0.

    *Ties.* The smallest possible predecessor, if it is nearer to the source than the vertex. If not, the edge between
    them has the weight 0, or one that is lost in rounding; then see `_EqualDistances`. So predecessors are a tree.
    *Precision.* float64: the smallest of the sums of weights added in path order.

    *Convergence.* When no distance decreases; two supersteps more find predecessors. *Cost.* The edges of a vertex are
    read each time that its distance decreases, but a vertex waits until its distance is in the lowest window of `delta`
    with such a vertex. Small windows read few edges more than once, large ones take fewer supersteps.
    """

    source: int = 0
    """Dense number of a vertex."""
    delta: float | None = None
    """Width of a window; infinite for a single one, None for a width by mean weight and degree."""

    state: ClassVar = {"distance": "float64", "predecessor": "int64"}
    constant = ("predecessor",)
    combine = "min"
    along = "add"
    bound = "distance"
    nonnegative = True
    senders = "changed"
    monotone = True

    @property
    def then(self) -> Program:
        return _Predecessors(self.source)

    def start(self, v: Vertices) -> tuple[State, Array]:
        """Only the source is reached."""
        here = v.number == self.source
        return {"distance": np.where(here, 0.0, np.inf), "predecessor": v.full(-1, "int64")}, here

    def emit(self, v: Vertices) -> Array:
        """The distance to the vertex."""
        return v.distance

    def apply(self, v: Vertices, got: Array, t: Totals) -> tuple[State, Array]:
        """The received distance, which is smaller."""
        return {"distance": got}, v.full(True, "bool")

    def forms(self, v: Vertices) -> Forms:
        """A superstep of few vertices takes as long as its calls."""
        return {"apply": _approach}

    def at_once(self, graph: WholeGraph) -> Found | None:
        """With the same windows. Vertices whose smallest predecessor is as far as they are need supersteps."""
        if (start := graph.position_of(self.source)) is None:
            return None
        distance, steps, read = distances(graph.out(), start, self.window(graph.facts()))
        before, missing, more = predecessors(graph.rows, distance, start)
        state = {"distance": distance, "predecessor": graph.numbers_of(before)}
        return Found(state, steps + 1 + (not missing), read + more, _EqualDistances() if missing else None)

    def priority(self, v: Vertices) -> Array:
        return v.distance

    def window(self, edges: EdgeFacts) -> float | None:
        """`delta`. By default, a few edges of a vertex lead into its own window. On GPUs, where a superstep costs more
        than the edges that are read again, all vertices are in one.
        """
        width = self.delta
        if width is None:
            if edges.on_device or edges.entries == 0:
                return None
            width = (
                (EDGES_AT_ONCE if edges.at_once else WINDOW_EDGES) * edges.mean_weight * edges.vertices / edges.entries
            )
        return width if 0 < width < np.inf else None


def _approach(v: Vertices, got: Array, t: Totals, state: State, rows: IntArray) -> Array:
    state["distance"][rows] = got
    return v.full(True, "bool")


WINDOW_EDGES = 6
"""A window of `ShortestPaths` is this many times as wide as the mean weight over the mean degree."""
EDGES_AT_ONCE = 4
"""The same for `at_once`."""


@dataclass(frozen=True)
class _Predecessors(Program):
    """The predecessor of each vertex with a smaller distance than its own, from the distances.

    A vertex whose smallest predecessor is as far as itself has none afterwards.
    """

    source: int
    """Dense number of a vertex."""

    state: ClassVar = {"distance": "float64", "predecessor": "int64"}
    constant = ("distance",)
    combine = "argmin"
    along = "add"

    @property
    def steps(self) -> int | None:
        return 1

    @property
    def then(self) -> Program:
        return _EqualDistances()

    def start(self, v: Vertices) -> tuple[State, Array]:
        return {"distance": v.distance, "predecessor": v.full(-1, "int64")}, v.full(True, "bool")

    def emit(self, v: Vertices) -> Array:
        return v.distance

    def apply(self, v: Vertices, got: Best, t: Totals) -> tuple[State, Array]:
        """The source of the smallest value. That is the distance, or less if a limit stopped the search."""
        nearer = (got.sent < v.distance) & (got.value <= v.distance)
        found = np.where(nearer & (v.distance < np.inf), got.source, -1)
        return {"predecessor": np.where(v.number == self.source, v.number, found)}, nearer


@dataclass(frozen=True)
class _EqualDistances(Program):
    """Predecessors of the other vertices: the smallest of those that have got their own first, superstep by superstep.

    So paths over edges of weight 0 have no circles.
    """

    state: ClassVar = {"distance": "float64", "predecessor": "int64"}
    constant = ("distance",)
    combine = "argmin"
    along = "add"
    senders = "changed"

    def start(self, v: Vertices) -> tuple[State, Array]:
        return {"distance": v.distance, "predecessor": v.predecessor}, v.predecessor >= 0

    def emit(self, v: Vertices) -> Array:
        return v.distance

    def receives(self, v: Vertices) -> Array:
        """Vertices with a distance and without a predecessor."""
        return (v.predecessor < 0) & (v.distance < np.inf)

    def apply(self, v: Vertices, got: Best, t: Totals) -> tuple[State, Array]:
        found = got.value <= v.distance
        return {"predecessor": np.where(found, got.source, v.predecessor)}, found
