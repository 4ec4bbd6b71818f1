"""The estimates of a graph."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ...tasks.estimate.wedges import Interval


@dataclass(frozen=True)
class GraphFigures:
    """The estimates of a graph. Counts of vertices, edges and wedges are exact."""

    rows: int
    """Rows of the input."""
    vertices: int
    edges: int
    wedges: int
    """Paths of two edges."""
    samples: int
    """Wedges in the sample."""
    seed: int
    """Seed of the sample."""
    exact: bool
    """Whether the sample is all wedges, so that triangles and transitivity are exact."""
    triangles: Interval
    """Number of triangles, with a 95 % interval."""
    transitivity: Interval
    """Share of the wedges that are closed by a third edge."""
    average_clustering: Interval
    """Mean of the clustering coefficients of all vertices; 0 for a vertex with fewer than two neighbours."""
    degeneracy: int
    """The largest core number; exact."""
    clique: int
    """Vertices of the largest clique that was found in the innermost core."""
    lambda_low: int
    """A lower bound of the largest λ: in a clique of n vertices, λ is at least n - 2."""
    lambda_high: int
    """An upper bound of the largest λ: an edge in the k-core closes at most k - 1 triangles there."""
    workers: int
    threads: int
    """Threads of a worker."""
    seconds: float | None
    """Predicted duration of a run for λ on these workers; None if they have GPUs."""

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)
