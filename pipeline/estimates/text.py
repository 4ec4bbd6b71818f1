"""Estimates as text. Estimated numbers have a ~ before them."""

from __future__ import annotations

from ...tasks.estimate.wedges import Interval
from .figures import GraphFigures


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
