"""Weakly connected components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..program import Array, Program, State, Totals, Vertices


@dataclass(frozen=True)
class Components(Program):
    """Which vertices are joined by edges, whatever their direction.

    *Source.* The least label spreads: Hash-Min of Rastogi et al., "Finding connected components in map-reduce in
    logarithmic rounds", ICDE 2013.

    *Semantics.* `component`, int64: the least number of the vertices that a vertex is joined with; a vertex without
    edges has its own.

    *Ties.* None. *Precision.* Exact. *Convergence.* After as many supersteps as the longest of the shortest ways to
    the least vertex of a component has edges, and one; *cost*: in each the edges of vertices whose label fell.
    """

    state: ClassVar = {"component": "int64"}
    combine = "min"
    view = "both"
    heard = "moved"

    def start(self, v: Vertices) -> tuple[State, Array]:
        """Each for itself."""
        return {"component": v.number}, v.full(True, "bool")

    def emit(self, v: Vertices) -> Array:
        """The label, as short as a number of this graph."""
        return v.component.astype(v.number.dtype)

    def apply(self, v: Vertices, got: Array, t: Totals) -> tuple[State, Array]:
        """The least label."""
        return {"component": np.minimum(got, v.component)}, got < v.component
