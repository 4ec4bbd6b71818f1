"""The estimates of a graph, and their text. Estimated numbers have a ~ before them in the text."""

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


def describe(figures: GraphFigures) -> str:
    """The estimates as lines of text."""
    drawn = "all wedges read" if figures.exact else f"{figures.samples:,} wedges drawn with seed {figures.seed}"
    of_edges = f"a clique of {figures.clique} vertices" if figures.clique > 2 else "no clique of 3 vertices"
    workers = f"{figures.workers} worker{'s' * (figures.workers > 1)} x {figures.threads} thread"
    workers += "s" * (figures.threads > 1)
    rows = [
        ("vertices", f"{figures.vertices:,}"),
        ("edges", f"{figures.edges:,}, of {figures.rows:,} rows"),
        ("wedges", f"{figures.wedges:,}; {drawn}"),
        ("triangles", _count(figures.triangles, figures.exact)),
        ("transitivity", _share(figures.transitivity, figures.exact)),
        ("clustering", f"{_share(figures.average_clustering, False)}; the mean over all vertices"),
        ("degeneracy", f"{figures.degeneracy:,}"),
        (
            "λ max",
            f"{_between(figures.lambda_low, figures.lambda_high)}: {of_edges} was found in the innermost core, and "
            "λ is below the degeneracy"
            if figures.degeneracy
            else "0",
        ),
    ]
    if figures.seconds is not None:
        rows.append(("time", f"~{figures.seconds:.2g} s for a run on {workers}"))
    return "\n".join(f"{name:<12} {text}" for name, text in rows)


def _between(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"from {low:,} to {high:,}"


def _count(value: Interval, exact: bool) -> str:
    if exact:
        return f"{round(value.likely):,}"
    low, high = (int(float(f"{bound:.4g}")) for bound in (value.low, value.high))
    return f"~{int(float(f'{value.likely:.4g}')):,}, from {low:,} to {high:,} with a probability of 95%"


def _share(value: Interval, exact: bool) -> str:
    if exact or value.low == value.high:
        return f"{value.likely:.4g}"
    return f"~{value.likely:.4g}, from {value.low:.4g} to {value.high:.4g}"
