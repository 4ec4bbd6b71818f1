"""Shortest paths from one vertex, by weights."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from ....kernels.cpu.programs.shortest_paths import distances, predecessors
from ....kernels.graph import IntArray
from ...verify.program_checks import CheckByArcs, check_shortest_paths
from ..program import (
    Array,
    Best,
    Column,
    Cost,
    EdgeFacts,
    Forms,
    Found,
    OneBlockGraph,
    Program,
    State,
    Totals,
    VertexId,
    Vertices,
)


@dataclass(frozen=True)
class ShortestPaths(Program):
    """Shortest paths: the smallest sum of weights on a path from `source` to each vertex.

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

    source: VertexId
    """Id of the vertex at which all paths start; required."""
    delta: Annotated[float | None, Field(gt=0)] = None
    """Width of the windows of distances of delta-stepping, for speed only; null: by mean weight and degree."""

    state: ClassVar = {"distance": "float64", "predecessor": "id"}
    columns: ClassVar = {
        "distance": Column("The smallest sum of weights on a path; null without a path.", "distance", missing=inf),
        "predecessor": Column("The vertex before it on such a path; `source` is its own; or null.", "predecessor"),
    }
    check = CheckByArcs(check_shortest_paths, needs_weights=True)
    cost = Cost(6e-9, in_all=True, weighted=True)
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

    def at_once(self, graph: OneBlockGraph) -> Found | None:
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
