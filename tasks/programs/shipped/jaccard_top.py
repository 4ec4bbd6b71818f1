"""The neighbours that are most alike, by Jaccard similarity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from ...verify.program_checks import CheckByEdges, check_jaccard_top
from ..program import Array, Column, Program, State, Top, Totals, Vertices


@dataclass(frozen=True)
class JaccardTop(Program):
    """Most similar neighbours: the largest Jaccard similarities of a vertex and its neighbours, and whose is largest.

    *Source.* Jaccard, "Étude comparative de la distribution florale dans une portion des Alpes et des Jura", Bulletin
    de la Société Vaudoise des Sciences Naturelles 37, 1901.

    *Semantics.* The similarity of two vertices with an edge is the number of neighbours that both have over the number
    that either has, as `jaccard_coefficient` of NetworkX. `similarity`, float64: the mean of the `k` largest that a
    vertex has with its neighbours, or of all if it has fewer neighbours; for k = 1 the largest one. `neighbour`: the
    neighbour with the largest one; -1 without neighbours. Directions and weights are ignored.

    *Ties.* The smallest neighbour. *Precision.* A similarity is rounded once. The mean adds them in descending order,
    so that bits do not depend on the partitioning. *Convergence.* One superstep. *Cost.* It reads every entry with its
    support, which λ has counted, and sorts the similarities of a block.
    """

    k: Annotated[int, Field(ge=1, le=1000)] = 1
    """Neighbours whose similarities are averaged, the most similar ones; each takes 16 bytes a vertex."""

    state: ClassVar = {"similarity": "float64", "neighbour": "id"}
    columns: ClassVar = {
        "similarity": Column(
            "The mean Jaccard similarity to the `jaccard_top.k` most similar neighbours, or to all if they are fewer.",
            "jaccard_top",
        ),
        "neighbour": Column("The most similar neighbour, the smallest id of several.", "jaccard_top_neighbour"),
    }
    check = CheckByEdges(check_jaccard_top)
    combine = "top"
    view = "either"
    by_support = True

    @property
    def steps(self) -> int | None:
        return 1

    def start(self, v: Vertices) -> tuple[State, Array]:
        return {"similarity": v.full(0.0), "neighbour": v.full(-1, "int64")}, v.full(1.0)

    def emit(self, v: Vertices) -> Array:
        """The number of neighbours."""
        return v.in_degree.astype(np.float64)

    def message(self, source: Vertices, weight: Array | None, target: Vertices) -> Array:
        """The similarity of both ends; the weight is the number of neighbours that they have in common."""
        assert weight is not None  # the supports
        similarity: Array = weight / (source.value + target.in_degree - weight)
        return similarity

    def apply(self, v: Vertices, got: Top, t: Totals) -> tuple[State, Array]:
        total, count = v.full(0.0), v.full(0, "int64")
        for at in range(self.k):
            there = got.source[:, at] >= 0
            total += np.where(there, got.value[:, at], 0.0)
            count += there
        return {"similarity": total / np.maximum(count, 1), "neighbour": got.source[:, 0]}, total
