"""Local clustering coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...verify.program_checks import CheckByArcs, check_clustering
from ..program import Array, Column, Program, State, Totals, Vertices


@dataclass(frozen=True)
class LocalClustering(Program):
    """Local clustering coefficient: the share of the possible edges between a vertex's neighbours that exist.

    *Source.* Watts and Strogatz, "Collective dynamics of 'small-world' networks", Nature 393, 1998; directed as in LDBC
    Graphalytics (LCC; Iosup et al., PVLDB 9(13), 2016).

    *Semantics.* A vertex with d neighbours, by edges in any direction, has d (d - 1) possible directed edges between
    them. `links`, int64, is the number of existing ones; `clustering`, float64, their share, or 0 with fewer than two
    neighbours. An edge of an undirected graph counts in both directions: `links` is twice the triangles of the vertex.

    *Ties.* None. *Precision.* One division. *Convergence.* One superstep. *Cost.* For each edge, the neighbours of its
    end of lower degree are read, distributed over groups: at most E^1.5 entries, fewer on most graphs.
    """

    state: ClassVar = {"links": "int64", "clustering": "float64"}
    columns: ClassVar = {
        "clustering": Column(
            "Edges between neighbours of the vertex over possible ones; 0 for fewer than two neighbours.", "clustering"
        )
    }
    check = CheckByArcs(check_clustering)
    combine = "links"
    view = "either"

    @property
    def steps(self) -> int | None:
        return 1

    def start(self, v: Vertices) -> tuple[State, Array]:
        return {"links": v.full(0, "int64"), "clustering": v.full(0.0)}, v.full(True, "bool")

    def emit(self, v: Vertices) -> Array:
        """Degrees decide which end sends an edge."""
        return v.in_degree

    def apply(self, v: Vertices, got: Array, t: Totals) -> tuple[State, Array]:
        most = v.in_degree * (v.in_degree - 1)
        return {"links": got, "clustering": got / np.maximum(most, 1)}, got > 0
