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
    add up. With `directed` modularity is that of Leicht and Newman ("Community structure in directed networks",
    Physical Review Letters 100, 2008): at random a vertex has its out-edges and its in-edges. Without `weighted` all
    edges weigh 1.

    *Nights.* A run that starts from an earlier result (`nightly.previous`, or the night before) begins with its
    communities, so the result depends on those, and the manifest says `begun: earlier`; without `from_earlier` it
    begins with single vertices. The communities of a graph that has not changed stay as they are.

    *Ties.* The community of smallest number. *Precision.* Weights are rounded to 52 bits of their sum, and then sums
    are exact, so that bits do not depend on workers, threads and the order of rows. *Convergence.* After `iterations`,
    or one that finds nothing better. Then no community of level 2, or single vertex outside of these, makes `quality`
    better by moving to another community or out of all. *Cost.* One worker has all edges, on its GPU if there is room;
    several passes over them in each iteration.
    """

    resolution: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """How small communities are: 1 is modularity as it is defined."""
    quality: Literal["modularity", "potts"] = "modularity"
    """What the communities maximise."""
    iterations: Annotated[int, Field(ge=1, le=1000)] = 2
    """Most iterations over all levels. More find somewhat better communities."""
    weighted: bool = False
    """Whether edges count by their weights."""
    directed: bool = False
    """Whether modularity is that of directed graphs."""
    from_earlier: bool = True
    """Whether a run that starts from an earlier result begins with its communities."""

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

    def __post_init__(self) -> None:
        """Raises ValueError for a quality without directions."""
        if self.directed and self.quality != "modularity":
            raise ValueError("directed is for quality modularity: leave out directed, or quality")
        if self.directed:  # directions are in rows of one way alone
            object.__setattr__(self, "view", "in")

    @property
    def weighs(self) -> bool:
        """Weights are used if `weighted`."""
        return self.weighted

    @property
    def begins_with_groups(self) -> bool:
        """If `from_earlier`."""
        return self.from_earlier

    def device_bytes(self, entries: int, vertices: int) -> int:
        """The block, weights, the rows of parts one after the other, the next level, and tables for long rows."""
        return 60 * entries + 150 * vertices + 2**31

    def at_once(self, graph: OneBlockGraph) -> Found:
        """All of the algorithm."""
        from ....kernels import on_host, to_device, to_host
        from ....kernels import programs as gathers  # loads kernels
        from ....kernels.leiden import Partition, digest, directed_graph_of_rows, graph_of_rows, partitions, quality

        if self.directed and not graph.symmetric:
            transposed = partial(gathers.transpose_rows, sources=len(graph.number))
            weighted, unit = directed_graph_of_rows(graph.rows, transposed)
        else:
            weighted, unit = graph_of_rows(graph.rows, self.quality == "potts")
        on_gpu, fingerprint, before = not on_host(weighted.offsets), digest(weighted), graph.before
        if before is not None and before.facts.get("graph_digest") == fingerprint:
            found = [Partition(before.levels[0], before.levels[1:], before.facts["settled"])]
            steps = 0
        else:
            start = None if before is None else before.levels[0]
            if start is not None and on_gpu:
                start = to_device(start)
            found = list(partitions(weighted, unit * self.resolution, self.iterations, start))
            steps = len(found)
        best = found[-1] if found else Partition(np.arange(len(weighted), dtype=np.int32), (), True)
        levels = [to_host(own) for own in best.levels[:MOST_LEVELS]]
        group = levels[0]
        first = np.empty(int(group.max(initial=-1)) + 1, np.int64)
        first[group[::-1]] = np.arange(len(group))[::-1]
        whole = unit if self.quality == "potts" else weighted.total or 1
        facts = {
            "communities": len(first),
            "quality": quality(weighted, to_device(group) if on_gpu else group, unit * self.resolution) / whole,
            "largest": int(np.bincount(group).max(initial=0)),
            "levels": len(levels),
            "settled": best.is_settled,
            "graph_digest": fingerprint,
        }
        if before is not None:
            facts["changed_share"] = _changed_share(before.of_vertex, group)
        state = {"community": graph.numbers_of(first[group]), "group": np.full(len(group), -1, np.int64)}
        return Found(state, steps, steps * len(graph.rows), facts=facts, levels=tuple(levels))

    def levels(self, low: Vertices, high: Vertices) -> Array:
        """The number of levels at which both ends are in one community."""
        found = low.full(0, "int32")
        for name in takewhile(partial(hasattr, low), level_names(MOST_LEVELS)):
            found += getattr(low, name) == getattr(high, name)
        return found


def _changed_share(before: Array, now: Array) -> float:
    """The share of the vertices with an earlier community whose community is another one now: the two have at most half
    of the vertices in either in common. `before` [vertices] is -1 for a vertex without an earlier one.
    """
    known = before >= 0
    before, now = before[known], now[known]
    if not len(now):
        return 0.0
    pair = before.astype(np.int64) * (int(now.max()) + 1) + now
    _, first, of_pair, common = np.unique(pair, return_index=True, return_inverse=True, return_counts=True)
    either = np.bincount(before)[before[first]] + np.bincount(now)[now[first]] - common
    return float(np.mean((2 * common <= either)[of_pair]))
