"""The pictures of docs/scaling.md: what was measured against the model, and what that says of more edges.

python -m benchmarks scaling --pictures docs/scaling
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.scaling import Job, Machines, Model, Span, fit_model, jobs, limits, stage_times
from benchmarks.scaling import Point as Measured
from benchmarks.simulate_partitions import Simulated
from benchmarks.svg import Panel, document, legend, powers

GRAPHS = ("R-MAT, hash, extrapolated", "actor-collaboration, range, as in 4", "cnr-2000, range, as in 4")
"""Of the jobs of the page: without locality, with some, and with much."""
STEPS = 16
"""Parts that a line is made of."""
FEWEST = 1e9
"""Edges at the left of the projection: about the most that were measured."""
SECONDS = (0.003, 60)
"""Least and most of what was measured."""
PROJECTED = (0.001, 10_000)
"""Least and most seconds of the projection."""

TERMS: Mapping[str, str] = {
    "work": "#2ca02c",
    "network": "#1f77b4",
    "scheduler": "#d62728",
    "latency": "#9467bd",
}
"""Of the time of a run → colour."""
FAMILIES: Mapping[str, tuple[str, str]] = {
    "supports, one GPU": ("○", "#2ca02c"),
    "peeling, one GPU": ("△", "#2ca02c"),
    "peeling in step": ("●", "#9467bd"),
    "banding": ("×", "#1f77b4"),
    "ingest and publishing": ("□", "#ff7f0e"),
    "scheduler": ("◆", "#d62728"),
}
"""Of what is fitted → mark and colour."""


def pictures(
    points: Sequence[Measured], simulated: Sequence[Simulated], machines: Machines, edges: float
) -> dict[str, str]:
    """File name → SVG."""
    model = fit_model(points, simulated)
    return {
        "measured.svg": measured_picture(model, points, simulated),
        "projection.svg": projection_picture(model, simulated, machines, edges),
    }


def measured_picture(model: Model, points: Sequence[Measured], simulated: Sequence[Simulated]) -> str:
    """Seconds as said against seconds as measured, and copies of an edge of R-MAT by hash against partitions."""
    size, left, top = (400, 330), 60, 80
    times = Panel(
        "Seconds, measured and as the model says", SECONDS, SECONDS, size, powers(10, *SECONDS), powers(10, *SECONDS)
    )
    times.line([(end, end) for end in SECONDS], "#555")
    for fit in model.sums:
        mark, colour = FAMILIES[_family(fit.name)]
        for _, value, said in fit.points:
            times.mark((value, said), mark, colour)
    copies = Panel("Copies of an edge, R-MAT by hash", (3, 400), (2, 40), size, (4, 16, 64, 256), powers(2, 2, 40))
    scales = sorted({one.graph for one in simulated if one.graph.startswith("rmat")})
    colours = dict(zip(scales, ("#e6a817", "#2ca02c", "#1f77b4", "#4b0082"), strict=True))
    for graph, colour in colours.items():
        own = sorted(
            (one.partitions, one.replication, one.edges)
            for one in simulated
            if one.graph == graph and one.method == "hash" and one.partitions >= 4
        )
        span = [4 * 64 ** (step / STEPS) for step in range(STEPS + 1)]
        copies.line([(count, model.copies(count, own[0][2])) for count in span], colour)
        for count, found, _ in own:
            copies.mark((count, found), "○", colour)
    for point in points:
        if point.what == "held":
            copies.mark((point.partitions, point.held), "×", "#d62728")
    names = [(mark, name, colour) for name, (mark, colour) in FAMILIES.items()]
    graphs = [("○", graph, colour) for graph, colour in colours.items()]
    right = left + size[0] + 80
    parts = [
        legend(names[:3], left, 20, 140),
        legend(names[3:], left, 38, 140),
        legend(graphs, right, 20, 70),
        legend([("×", "measured on 4 GPUs, not fitted to", "#d62728"), ("—", "model", "#555")], right, 38, 240),
        times.drawn(left, top, ("measured", "said")),
        copies.drawn(right, top, ("partitions", "")),
    ]
    return document(right + size[0] + 30, top + size[1] + 50, parts)


def _family(name: str) -> str:
    if name in FAMILIES:
        return name
    return "banding" if name.startswith("banding") else "ingest and publishing"


def projection_picture(model: Model, simulated: Sequence[Simulated], machines: Machines, most: float) -> str:
    """Each term of the time of a run, from FEWEST edges on, and where the memory of a GPU ends."""
    size, gap, left, top = (270, 320), 60, 60, 70
    counts = [FEWEST * (most / FEWEST) ** (step / STEPS) for step in range(STEPS + 1)]
    across = counts[0] / 1e9, counts[-1] / 1e9
    parts = [legend([("■", term, colour) for term, colour in TERMS.items()], left, 20, 110)]
    for at, graph in enumerate(GRAPHS):
        panel = Panel(graph, across, PROJECTED, size, powers(10, *across), powers(10, *PROJECTED))
        own = [_job(model, simulated, edges, machines, graph) for edges in counts]
        times = [stage_times(model, machines, job, machines.workers, machines.workers) for job in own]
        for term, colour in TERMS.items():
            spans = [(edges / 1e9, _sum(of, term)) for edges, of in zip(counts, times, strict=True)]
            least, greatest = _ends(spans)
            panel.between(least, greatest, colour)
            panel.line(least, colour, width=1)
            panel.line(greatest, colour, width=1)
        ends = min(limit.breaks(own[-1]) for limit in limits(model, machines) if limit.term.startswith("memory"))
        if FEWEST < ends < most:
            panel.upright(ends / 1e9, "memory ends")
        parts.append(panel.drawn(left + at * (size[0] + gap), top, ("G edges", "s")))
    return document(left + len(GRAPHS) * (size[0] + gap), top + size[1] + 50, parts)


def _ends(spans: Sequence[tuple[float, Span]]) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """At best and at worst."""
    return [(edges, span.least) for edges, span in spans], [(edges, span.most) for edges, span in spans]


def _job(model: Model, simulated: Sequence[Simulated], edges: float, machines: Machines, name: str) -> Job:
    return next(job for job in jobs(model, simulated, edges, machines.workers) if job.name == name)


def _sum(times: Mapping[str, Mapping[str, Span]], term: str) -> Span:
    """Of all stages."""
    return sum((parts[term] for parts in times.values() if term in parts), Span(0, 0))
