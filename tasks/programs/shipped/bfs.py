"""Breadth-first search from one vertex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ....kernels.cpu.programs.push_pull import set_levels, unreached
from ....kernels.graph import IntArray
from ....kernels.programs import search
from ...verify.program_checks import CheckByArcs, check_levels
from ..program import (
    Array,
    Best,
    Column,
    Cost,
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
class BreadthFirst(Program):
    """Breadth-first search: the fewest edges on a path from `source` to each vertex.

    *Source.* Moore, "The shortest path through a maze", 1959; both directions: Beamer, Asanović and Patterson,
    "Direction-optimizing breadth-first search", SC 2012.

    *Semantics.* `level`, int32: 0 for the source, -1 for unreachable vertices. `parent`: dense number of the
    predecessor; the source's own for the source, -1 for unreachable vertices.

    *Ties.* The parent is the smallest possible predecessor. *Precision.* Exact.

    *Convergence.* One superstep more than the largest level. *Cost.* At most every edge once.
    """

    source: VertexId
    """Id of the vertex at which the search starts; required."""

    state: ClassVar = {"level": "int32", "parent": "id"}
    columns: ClassVar = {
        "level": Column(
            "The fewest edges on a path from `source`; 0 for it, null without a path.", "level", missing=-1
        ),
        "parent": Column("The smallest id before the vertex on such a path; `source` is its own; or null.", "parent"),
    }
    check = CheckByArcs(check_levels)
    cost = Cost(5e-10, in_all=True)
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

    def at_once(self, graph: OneBlockGraph) -> Found | None:
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
