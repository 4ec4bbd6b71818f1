"""Communities by the Leiden algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from ...verify.program_checks import CheckByArcs, check_leiden
from ..program import Column, Found, GraphProgram, OneBlockGraph


@dataclass(frozen=True)
class Leiden(GraphProgram):
    """Communities that cover all vertices, by the Leiden algorithm: each is connected, and they share few edges.

    *Source.* Traag, Waltman and van Eck, "From Louvain to Leiden: guaranteeing well-connected communities", Scientific
    Reports 9, 2019.

    *Semantics.* `community`, int64: the smallest dense number in the vertex's community. A vertex without edges has its
    own number. `quality` is modularity, or the constant Potts model (`potts`), where a community of n vertices needs
    edges of weight `resolution` for each of its pairs. A larger `resolution` makes smaller communities. Directions are
    ignored: weights in both directions add up. Without `weighted` all edges weigh 1.

    *Ties.* The community of smallest number. *Precision.* Weights are rounded to 52 bits of their sum, and then sums
    are exact, so that bits do not depend on workers, threads and the order of rows. *Convergence.* After `iterations`,
    or one that finds nothing better. *Cost.* One worker has all edges; several passes over them in each iteration.
    """

    resolution: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """How small communities are: 1 is modularity as it is defined."""
    quality: Literal["modularity", "potts"] = "modularity"
    """What the communities maximise."""
    iterations: Annotated[int, Field(ge=1, le=1000)] = 2
    """Most iterations over all levels. More find somewhat better communities."""
    weighted: bool = False
    """Whether edges count by their weights."""

    state: ClassVar = {"community": "id"}
    columns: ClassVar = {"community": Column("The smallest id in the community of the vertex.", "community")}
    check = CheckByArcs(check_leiden)
    nonnegative = True

    @property
    def weighs(self) -> bool:
        """Weights are used if `weighted`."""
        return self.weighted

    def at_once(self, graph: OneBlockGraph) -> Found:
        """All of the algorithm."""
        from ....kernels.cpu.leiden import graph_of_rows, leiden, quality  # loads kernels

        weighted, unit = graph_of_rows(graph.rows, self.quality == "potts")
        found = list(leiden(weighted, unit * self.resolution, self.iterations))
        group = found[-1] if found else np.arange(len(weighted), dtype=np.int32)
        first = np.empty(int(group.max(initial=-1)) + 1, np.int64)
        first[group[::-1]] = np.arange(len(group))[::-1]
        whole = unit if self.quality == "potts" else weighted.total or 1
        reached = quality(weighted, group, unit * self.resolution) / whole
        facts = {"communities": len(first), "quality": reached, "largest": int(np.bincount(group).max(initial=0))}
        state = {"community": graph.numbers_of(first[group])}
        return Found(state, len(found), len(found) * len(graph.rows), facts=facts)
