"""Closeness, eccentricities, diameter and hop plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from ...verify.program_checks import CheckByArcs, check_all_distances
from ..batches.program import NORMAL_95, UNBOUNDED, Facts, LevelsFound, SourceProgram, SourceSample
from ..program import Array, Column, State, Vertices

MOST_LEVELS = 1000
"""The most distances that the hop plot lists."""


@dataclass(frozen=True)
class Distances(SourceProgram):
    """Closeness and eccentricity of vertices; diameter, radius and hop plot of the graph in the manifest.

    Distances are in edges: how close a vertex is to all others, how far the farthest is, and how many pairs are how far
    apart.

    *Source.* Searches: Then et al., "The more the merrier", PVLDB 8(4), 2014. Closeness: Wasserman and Faust, "Social
    network analysis", 1994, equation 5.23; with k sources: Eppstein and Wang, "Fast approximation of centrality",
    Journal of Graph Algorithms and Applications 8(1), 2004. Bounds of diameter and radius: Takes and Kosters,
    "Determining the diameter of small world networks", CIKM 2011.

    *Semantics.* `closeness`, float64, as in NetworkX: of the r other vertices that reach v with distances of sum D,
    r / D, times r / (V - 1) with `wasserman_faust`; 0 if no vertex reaches v. `eccentricity`, int32: the largest
    distance from v to a vertex that it reaches. The facts are `hop_plot`, the number of ordered pairs at distance 1, 2,
    …; `longest`, the largest distance; `mean_distance` and `effective_diameter`, the distance within which 90 % of
    these pairs are, interpolated; `diameter` and `radius`, lower and upper bounds of the largest and the smallest
    eccentricity of the vertices that reach the most vertices, `largest` of them: of all vertices of a connected graph,
    else of the largest component.

    *Estimates.* With `sources` closeness and hop plot are those of these sources, scaled to all vertices. `error`,
    float64, is half the width of the normal 95 % interval of the closeness by the delta method, infinite if no source
    reaches v, 0 without sampling; `hop_plot_error` that of the hop plot. `longest` is then a lower bound.
    `eccentricity` is a lower bound, and `slack`, int32, what the upper bound adds, -1 without one, as for
    directed graphs. Up to 1,024 further searches of an undirected graph let the bounds of diameter and radius meet.

    *Table.* With `table` the distances from the sources to all vertices are kept, 2 bytes each.

    *Ties.* None. *Precision.* Exact integers; one division. *Convergence.* One search from each source. *Cost.* For
    each batch every entry is read in a few levels, with `batch` / 8 bytes each; 3 × `batch` / 8 bytes a vertex.
    """

    sources: Annotated[int | None, Field(ge=2)] = None
    """Estimate from this many random vertices, with intervals and bounds; null: from all vertices, exactly."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Selects the random vertices."""
    batch: Annotated[int, Field(ge=64, le=512, multiple_of=64)] = 512
    """Sources searched from at once, a multiple of 64; each takes 3 bits a vertex."""
    wasserman_faust: bool = True
    """Multiply closeness by the share of vertices that reach the vertex; false: within those alone."""
    table: bool = False
    """Publish the table `distances` of all pairs too, of a graph of at most 50,000 vertices."""

    state: ClassVar = {"closeness": "float64", "error": "float64", "eccentricity": "int32", "slack": "int32"}
    columns: ClassVar = {
        "closeness": Column(
            "1 over the mean distance from the vertices that reach it, times the share of vertices that do.",
            "closeness",
        ),
        "error": Column("Half the width of the interval of `closeness`; 0 with all sources.", "closeness_error"),
        "eccentricity": Column("The largest distance to a vertex that it reaches, or a lower bound.", "eccentricity"),
        "slack": Column("What the upper bound adds; 0: exact; -1: no upper bound.", "eccentricity_slack"),
    }
    check = CheckByArcs(check_all_distances)
    search = "levels"

    def finish(self, v: Vertices, found: LevelsFound, sample: SourceSample, mutual: bool) -> tuple[State, Facts]:
        """Closeness from sums of distances, and the facts of the graph."""
        closeness, error = self._closeness(v, found, sample)
        bounded = found.most != UNBOUNDED
        slack = np.where(bounded, np.where(bounded, found.most, 0) - found.least, -1)
        state = {"closeness": closeness, "error": error, "eccentricity": found.least, "slack": slack}
        return state, _facts(found, sample)

    def _closeness(self, v: Vertices, found: LevelsFound, sample: SourceSample) -> tuple[Array, Array]:
        others = len(sample.sources) - np.isin(v.number, sample.sources)
        distance = np.where(found.reached > 0, found.distance, 1)
        share = found.reached / np.maximum(others, 1)
        closeness = found.reached / distance * (share if self.wasserman_faust else 1.0)
        if len(sample.sources) == sample.total:
            return closeness, np.zeros(len(closeness))
        mean = distance / np.maximum(others, 1)
        variance = found.squares / np.maximum(others, 1) / mean**2 - 1
        if not self.wasserman_faust:
            variance -= (1 - share) / np.where(share > 0, share, 1)
        left = 1 - others / max(sample.total - 1, 1)
        spread = np.sqrt(np.maximum(variance, 0) / np.maximum(others - 1, 1) * left)
        known = (found.reached > 0) & (others > 1)
        unknown = np.where(v.in_degree > 0, np.inf, 0.0)
        return closeness, np.where(known, NORMAL_95 * closeness * spread, unknown)


def _facts(found: LevelsFound, sample: SourceSample) -> Facts:
    counts = found.pairs[1:]
    whole = len(sample.sources) == sample.total
    facts: dict[str, Any] = {
        "longest": len(counts),
        "mean_distance": _ratio(sum(d * count for d, count in enumerate(counts, 1)), sum(counts)),
        "effective_diameter": _within(counts, 0.9),
        "diameter": list(found.span.diameter),
        "radius": list(found.span.radius),
        "largest": found.span.size,
        "hop_plot": [count if whole else count * sample.scale for count in counts[:MOST_LEVELS]],
    }
    if not whole:
        errors = [
            float(sample.half_width(float(total), squares))
            for total, squares in zip(counts[:MOST_LEVELS], found.pair_squares[1:], strict=False)
        ]
        facts["hop_plot_error"] = [one if np.isfinite(one) else None for one in errors]
        facts["further_searches"] = found.span.searches
    return facts


def _ratio(one: int, other: int) -> float:
    return one / other if other else 0.0


def _within(counts: Sequence[int], share: float) -> float:
    """The distance within which a share of the pairs is, interpolated between distances; 0 without pairs."""
    wanted, before = share * sum(counts), 0
    for d, count in enumerate(counts, 1):
        if before + count >= wanted:
            return d - 1 + (wanted - before) / count if count else 0.0
        before += count
    return 0.0
