"""Betweenness centrality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from ...verify.program_checks import CheckByArcs, check_betweenness
from ..batches.program import Facts, PathsFound, SourceProgram, SourceSample
from ..program import Column, State, Vertices

DOUBT = 0.05
"""Probability with which the bound for all vertices may fail."""


@dataclass(frozen=True)
class Betweenness(SourceProgram):
    """Betweenness: the share of shortest paths between other vertices that lead through a vertex.

    *Source.* Freeman, "A set of measures of centrality based on betweenness", Sociometry 40, 1977; Brandes, "A faster
    algorithm for betweenness centrality", 2001. With k sources: Brandes and Pich, "Centrality estimation in large
    networks", International Journal of Bifurcation and Chaos 17(7), 2007.

    *Semantics.* `betweenness`, float64: the sum over all ordered pairs of other vertices, s and t, of the share of the
    shortest paths from s to t that lead through v; as NetworkX divided by (V - 1) (V - 2) if `normalized`, else by 2
    in an undirected graph, whose pairs are counted once. Weights are ignored. Parallel edges count as different paths.

    *Estimates.* With `sources` the sum over these sources is multiplied by V / k: its mean over all samples is the
    betweenness. `error`, float64, is half the width of an interval that contains the betweenness of the vertex with a
    probability of at least 95 % (see `Sample.certain_half_width`), 0 without sampling. A normal interval would be
    narrower, but a few sources can have most of the sum: in SNAP's facebook_combined, with 100 of 4,039 sources, it
    contained the betweenness of half of the vertices. With probability 95 % all vertices at once are within the fact
    `error_of_all` (Serfling's bound, and the union over the vertices). Sampling of paths needs fewer searches for such
    a bound where paths are short (Riondato and Kornaropoulos, "Fast approximation of betweenness centrality through
    sampling", Data Mining and Knowledge Discovery 30, 2016).

    *Ties.* None. *Precision.* float64: paths are counted exactly up to 2^53, then rounded; all sums are added in the
    order of ids and batches, so bits do not depend on partitionings, but do on `batch`. More than 1.8e308 paths
    between two vertices raise InputError. *Convergence.* One search from each source.

    *Cost.* For each batch every entry is read in a few levels, and 8 bytes a source for each edge on a shortest path,
    twice; 8 × `batch` bytes a vertex, and 12 for each level of a batch that the vertex is in.
    """

    sources: Annotated[int | None, Field(ge=2)] = None
    """Estimate from this many random vertices, with intervals; null: from all vertices, exactly."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Selects the random vertices."""
    batch: Annotated[int, Field(ge=1, le=64)] = 64
    """Sources searched from at once; each takes 8 bytes a vertex."""
    normalized: bool = True
    """Divide by the number of pairs of other vertices; false: sums over pairs."""

    state: ClassVar = {"betweenness": "float64", "error": "float64"}
    columns: ClassVar = {
        "betweenness": Column("The share of the shortest paths between others through the vertex.", "betweenness"),
        "error": Column("Half the width of its interval; 0 with all sources.", "betweenness_error"),
    }
    check = CheckByArcs(check_betweenness)
    search = "paths"

    def finish(self, v: Vertices, found: PathsFound, sample: SourceSample, mutual: bool) -> tuple[State, Facts]:
        """Scale the sums of dependencies."""
        total, count = sample.total, len(sample.sources)
        pairs = max(1, (total - 1) * (total - 2))
        factor = 1 / pairs if self.normalized else 1 / 2 if mutual else 1.0
        facts = {}
        if count < total:
            spread = sample.certain_spread(max(0, total - 2), DOUBT / total) * factor
            facts["error_of_all"] = min(spread, pairs * factor)
        return {
            "betweenness": found.score * (sample.scale * factor),
            "error": sample.certain_half_width(found.score, found.squares, max(0, total - 2)) * factor,
        }, facts
