"""Communities by the Leiden algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from ...verify.program_checks import CheckByArcs, CheckGroups, check_community_groups, check_leiden
from ..program import Array, Column, Found, GraphProgram, Groups, OneBlockGraph, Vertices, level_names

MOST_LEVELS = 32
"""Most levels that become groups, the largest first."""


@dataclass(frozen=True)
class Leiden(GraphProgram):
    """Communities that cover all vertices, by the Leiden algorithm: each is connected, and they share few edges.

    *Source.* Traag, Waltman and van Eck, "From Louvain to Leiden: guaranteeing well-connected communities", Scientific
    Reports 9, 2019.

    *Semantics.* `community`, int64: the smallest dense number in the vertex's community. A vertex without edges has its
    own number. `group`, int64: the id of the innermost row of the table `community_groups` with the vertex; null
    without edges. The levels of the table are those of the iteration that found the communities: level 1 has the
    communities, and each next level the parts that were merged to those of the level before. `quality` is modularity,
    or the constant Potts model (`potts`), where a community of n vertices needs edges of weight `resolution` for each
    of its pairs. A larger `resolution` makes smaller communities. Directions are ignored: weights in both directions
    add up. Without `weighted` all edges weigh 1.

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

    state: ClassVar = {"community": "id", "group": "int64"}
    columns: ClassVar = {
        "community": Column("The smallest id in the community of the vertex.", "community"),
        "group": Column(
            "The id of the smallest community that contains the vertex and another one.", "community_group", -1
        ),
    }
    check = CheckByArcs(check_leiden)
    groups = Groups("group", level=1, check=CheckGroups(check_community_groups))
    nonnegative = True

    @property
    def weighs(self) -> bool:
        """Weights are used if `weighted`."""
        return self.weighted

    def at_once(self, graph: OneBlockGraph) -> Found:
        """All of the algorithm."""
        from ....kernels.cpu.leiden import Partition, graph_of_rows, partitions, quality  # loads kernels

        weighted, unit = graph_of_rows(graph.rows, self.quality == "potts")
        found = list(partitions(weighted, unit * self.resolution, self.iterations))
        best = found[-1] if found else Partition(np.arange(len(weighted), dtype=np.int32), ())
        group, levels = best.group, best.levels[:MOST_LEVELS]
        first = np.empty(int(group.max(initial=-1)) + 1, np.int64)
        first[group[::-1]] = np.arange(len(group))[::-1]
        whole = unit if self.quality == "potts" else weighted.total or 1
        reached = quality(weighted, group, unit * self.resolution) / whole
        largest = int(np.bincount(group).max(initial=0))
        facts = {"communities": len(first), "quality": reached, "largest": largest, "levels": len(levels)}
        state = {"community": graph.numbers_of(first[group]), "group": np.full(len(group), -1, np.int64)}
        return Found(state, len(found), len(found) * len(graph.rows), facts=facts, levels=levels)

    def levels(self, low: Vertices, high: Vertices) -> Array:
        """The number of levels at which both ends are in one community."""
        found = low.full(0, "int32")
        for name in takewhile(partial(hasattr, low), level_names(MOST_LEVELS)):
            found += getattr(low, name) == getattr(high, name)
        return found
