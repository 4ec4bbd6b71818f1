"""How alike the neighbours of the two ends of each edge are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...verify.program_checks import CheckByEdges, check_similarity
from ..program import Array, Column, EdgeProgram, State, Vertices


@dataclass(frozen=True)
class Similarity(EdgeProgram):
    """Similarity of the ends of each edge, by their neighbours.

    Jaccard (1901) and cosine similarity of the neighbours of both ends, from the support of each edge. Jaccard: the
    share of the neighbours of either end that are neighbours of both, as `jaccard_coefficient` of NetworkX. Cosine: the
    structural similarity of SCAN (Xu et al., KDD 2007), (support + 2) / √((d + 1) (e + 1)) for ends of degrees d and e:
    each end counts as a neighbour of itself. Directions and weights are ignored. Each value is rounded a few times, in
    the same order for any partitioning. Costs O(edges), and one exchange of degrees.
    """

    edges: ClassVar = {"jaccard": "float64", "cosine": "float64"}
    columns: ClassVar = {
        "jaccard": Column("The number of neighbours of both ends over the number of neighbours of either.", "jaccard"),
        "cosine": Column("The cosine similarity of the neighbours of both ends, each end among its own.", "cosine"),
    }
    check = CheckByEdges(check_similarity)

    def of_edges(self, low: Vertices, high: Vertices, support: Array) -> State:
        d, e = low.degree.astype(np.float64), high.degree.astype(np.float64)
        return {"jaccard": support / (d + e - support), "cosine": (support + 2) / np.sqrt((d + 1) * (e + 1))}
