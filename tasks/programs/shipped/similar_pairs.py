"""Pairs of vertices with similar neighbourhoods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from ...errors import UsageError
from ...verify.program_checks import CheckByArcs, check_most_similar
from ..program import Column, Found, GraphProgram, OneBlockGraph, PairRows, VertexIds


@dataclass(frozen=True)
class SimilarPairs(GraphProgram):
    """The k most similar vertices of each vertex by common neighbours, with an edge to it or without.

    *Source.* Jaccard, 1901; the overlap coefficient: Simpson, "Mammals and the nature of continents", American Journal
    of Science 241, 1943; cosine: Salton and McGill, "Introduction to modern information retrieval", 1983; Adamic and
    Adar, "Friends and neighbors on the Web", Social Networks 25(3), 2003. The sums: Gustavson, ACM TOMS 4(3), 1978.

    *Semantics.* Of the c common neighbours of two vertices with d and e neighbours: `jaccard` is c / (d + e - c),
    `overlap_coefficient` c / min(d, e), `cosine` c / √(d e), and `adamic_adar` the sum of 1 / log of the neighbours of
    each common neighbour. With `weighted`, the first two have the sums of the smaller weights in place of c, and the
    sums of weights in place of d and e; `cosine` is that of the vectors of weights; `adamic_adar` has no form with
    weights that all agree on, and refuses them. The table `similar_pairs` has the pairs, and the columns the most
    similar vertex. Directions are ignored: weights in both directions add up, and edges of weight 0 are left out.

    *Work.* The number of paths of two edges is `wedges` in the facts; more than `most_wedges` are refused. With
    `most_neighbours`, vertices with more are in no neighbourhood; the fact `vertices_left_out` says how many.

    *Ties.* The vertex of smallest number. *Precision.* Sums are of integers: weights and logarithms are rounded to 62
    bits of the largest sum at a vertex, products for `cosine` to 60 bits. *Convergence.* One pass. *Cost.* One worker
    has all edges; 2 to 10 ns for each of `wedges` in one thread; 8 to 12 bytes a vertex in each.
    """

    k: Annotated[int, Field(ge=1, le=1000)] = 10
    """Most pairs of a vertex; each takes 24 bytes."""
    measure: Literal["jaccard", "overlap_coefficient", "cosine", "adamic_adar"] = "jaccard"
    """How similarity is measured."""
    minimum: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Least similarity of a pair."""
    of: VertexIds = ()
    """Ids whose similar vertices are found, as `pagerank.personal`; none: all."""
    most_neighbours: Annotated[int | None, Field(ge=1)] = None
    """Leave vertices with more out of all neighbourhoods; null: none."""
    most_wedges: Annotated[int, Field(ge=1)] = 10**12
    """Refuse more work: paths of two edges."""
    weighted: bool = False
    """Edges count by weights; not for `adamic_adar`."""

    state: ClassVar = {"vertex": "id", "similarity": "float64"}
    columns: ClassVar = {
        "vertex": Column("The most similar vertex, the smallest id of several.", "most_similar"),
        "similarity": Column("Its similarity; 0 without one.", "highest_similarity"),
    }
    check = CheckByArcs(check_most_similar)
    nonnegative = True
    finds_similar = True

    def __post_init__(self) -> None:
        """Raises UsageError for a measure without a form with weights."""
        if self.weighted and self.measure == "adamic_adar":
            raise UsageError(
                "similar_pairs.weighted: adamic_adar has no form with weights: choose another similar_pairs.measure, "
                "or leave similar_pairs.weighted out"
            )

    @property
    def weighs(self) -> bool:
        """Weights are used if `weighted`."""
        return self.weighted

    def vertex_bytes(self, threads: int) -> int:
        """Sums of each thread, and pairs."""
        return 16 * threads + 24 * self.k

    def at_once(self, graph: OneBlockGraph) -> Found:
        """All pairs. Raises UsageError if they are too much work."""
        from ....kernels.cpu.similar_pairs import most_similar, neighbourhoods  # loads kernels

        near = neighbourhoods(graph.rows, self.measure, self.most_neighbours)
        vertices = len(graph.number)
        named = np.unique([graph.position_of(number) for number in self.of]) if self.of else np.arange(vertices)
        chosen = named.astype(np.int32)
        over = near.wedges(chosen)
        wedges = int(over.sum())
        if wedges > self.most_wedges:
            raise UsageError(self._too_many(wedges, near.most_neighbours_for(over, self.most_wedges)))
        found = most_similar(near, chosen, self.k, self.minimum)
        best, similarity = np.full(vertices, -1, np.int64), np.zeros(vertices)
        first, some = found.offsets[:-1], np.diff(found.offsets) > 0
        best[chosen[some]] = found.vertex[first[some]]
        similarity[chosen[some]] = found.similarity[first[some]]
        counts = np.diff(found.offsets)
        rank = np.arange(len(found.vertex)) - np.repeat(first, counts) + 1
        source, target = (graph.numbers_of(own.astype(np.int64)) for own in (np.repeat(chosen, counts), found.vertex))
        rows = PairRows(source, target, rank.astype(np.int32), found.similarity)
        facts = {"pairs": len(found.vertex), "wedges": wedges, "vertices_left_out": int(near.left_out.sum())}
        state = {"vertex": graph.numbers_of(best), "similarity": similarity}
        return Found(state, 1, len(graph.rows) + wedges, facts=facts, similar=rows)

    def _too_many(self, wedges: int, most_neighbours: int) -> str:
        return (
            f"similar_pairs.most_wedges: the work is {wedges:,} paths of two edges, over the {self.most_wedges:,} "
            f"allowed: set similar_pairs.most_neighbours={max(1, most_neighbours)}, which leaves out the vertices with "
            "more neighbours, name fewer vertices in similar_pairs.of, or raise similar_pairs.most_wedges"
        )
