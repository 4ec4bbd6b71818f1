"""How much of their surroundings the two ends of an edge have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..program import Array, Column, EdgeProgram, State, Vertices


@dataclass(frozen=True)
class Overlap(EdgeProgram):
    """Overlap of the other neighbours of both ends of each edge: 0 for a bridge, 1 for ends with the same neighbours.

    *Source.* Onnela, Saramäki, Hyvönen, Szabó, Lazer, Kaski, Kertész and Barabási, "Structure and tie strengths in
    mobile communication networks", PNAS 104(18), 2007: ties between people are stronger where it is larger.

    *Semantics.* `overlap`, float64: the number of neighbours of both ends over the number of neighbours of either end,
    where the ends themselves do not count, so unlike the Jaccard similarity it can be 1. -1 for an edge whose ends have
    no other neighbours. Directions and weights are ignored.

    *Ties.* None. *Precision.* One division of integers. *Cost.* O(edges), and one exchange of degrees.
    """

    edges: ClassVar = {"overlap": "float64"}
    columns: ClassVar = {
        "overlap": Column(
            "Common neighbours of both ends over all their other neighbours; null for ends without any.", "overlap", -1
        )
    }

    def of_edges(self, low: Vertices, high: Vertices, support: Array) -> State:
        others = low.degree + high.degree - 2 - support
        return {"overlap": np.where(others > 0, support / np.maximum(others, 1), -1.0)}
