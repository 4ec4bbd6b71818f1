"""Local clustering coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..program import Array, Program, State, Totals, Vertices


@dataclass(frozen=True)
class LocalClustering(Program):
    """How many of the edges there could be between the neighbours of a vertex there are.

    *Source.* Watts and Strogatz, "Collective dynamics of 'small-world' networks", Nature 393, 1998; directed as in LDBC
    Graphalytics (LCC; Iosup et al., PVLDB 9(13), 2016).

    *Semantics.* With d neighbours, by edges in any direction, there could be d (d - 1) edges between them, one each
    way. `links`, int64, are those that there are, `clustering`, float64, their share; 0 with fewer than two neighbours.
    An edge of an undirected graph leads both ways: `links` is twice the triangles of the vertex.

    *Ties.* None. *Precision.* One division. *Convergence.* One superstep. *Cost.* For each edge the neighbours of its
    end of lower degree are read, at each group those of its own: E^1.5 at most, less on most graphs.
    """

    state: ClassVar = {"links": "int64", "clustering": "float64"}
    combine = "closed"
    view = "either"

    @property
    def steps(self) -> int | None:
        """One."""
        return 1

    def start(self, v: Vertices) -> tuple[State, Array]:
        """Nothing is counted."""
        return {"links": v.full(0, "int64"), "clustering": v.full(0.0)}, v.full(True, "bool")

    def emit(self, v: Vertices) -> Array:
        """Degrees say which end shows an edge."""
        return v.in_degree

    def apply(self, v: Vertices, got: Array, t: Totals) -> tuple[State, Array]:
        """The share of links."""
        most = v.in_degree * (v.in_degree - 1)
        return {"links": got, "clustering": got / np.maximum(most, 1)}, got > 0
