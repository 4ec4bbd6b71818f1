"""The pictures of docs/scaling.md: the model against what was measured, and its terms at more edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .machines import LAYOUTS, Layout, Machines
from .model import Model
from .panel import Panel, document, legend
from .points import Point, ShardCounts
from .spans import Span, sum_of
from .times import times

STEPS = 16
"""Parts that a line is made of."""
SECONDS = (0.00005, 60.0)
"""Axes of what was measured."""
MILLIONS, EXCHANGES = (0.1, 1e5), (300.0, 500_000.0)
"""Axes of the panel of exchanges."""
GIGAS, PROJECTED = (1.0, 100.0), (0.01, 10_000.0)
"""Axes of the projection."""
GREEN, BLUE, RED, VIOLET, ORANGE = "#2ca02c", "#1f77b4", "#d62728", "#9467bd", "#e07000"

TERMS: Mapping[str, tuple[str, Sequence[str]]] = {
    "divided work": (GREEN, ("work",)),
    "each edge in each shard": (ORANGE, ("each edge in each shard",)),
    "network": (BLUE, ("network", "streams, counts", "sent to all", "messages")),
    "scheduler": (RED, ("scheduler",)),
    "exchanges": (VIOLET, ("exchanges",)),
}
"""What is drawn → colour, and the last parts of the names of the model's terms in it."""
FAMILIES: Mapping[str, tuple[str, str, Sequence[str]]] = {
    "triangles": ("○", GREEN, ("support", "sort")),
    "removal": ("△", GREEN, ("remove", "look", "outside")),
    "exchanges": ("●", VIOLET, ("meet", "packets", "nccl")),
    "scheduler": ("◆", RED, ("scheduler",)),
    "read, number, …, publish": ("□", ORANGE, ()),
}
"""What is fitted → mark, colour, and the sums of the model in it. The last takes all other sums."""


def pictures(
    model: Model, counts: Sequence[ShardCounts], points: Sequence[Point], machines: Machines
) -> dict[str, str]:
    """File name → SVG."""
    return {
        "measured.svg": measured(model, counts, points),
        "projection.svg": projection(model, machines),
    }


def measured(model: Model, counts: Sequence[ShardCounts], points: Sequence[Point]) -> str:
    """Seconds of the model against measured seconds, and exchanges against edges."""
    seconds = Panel("Seconds, of the model and measured", SECONDS, SECONDS, ("measured, s", "model, s"))
    seconds.line([(end, end) for end in SECONDS], "#555")
    for key, fit in model.sums.items():
        mark, colour, _ = next((own for own in FAMILIES.values() if key in own[2]), [*FAMILIES.values()][-1])
        for point in fit.points:
            seconds.mark((point.value, fit(*point.amounts)), mark, colour)
    growth = Panel("Exchanges of a run", MILLIONS, EXCHANGES, ("edges, M", "exchanges"))
    spans = [(edges, model.exchanges_of(1e6 * edges)) for edges in _steps(*MILLIONS)]
    growth.between(_ends(spans, False), _ends(spans, True), BLUE)
    ratio, rounds = model.exchanges.most, model.curves["rounds"]
    growth.line([(edges, ratio * rounds(1e6 * edges)) for edges, _ in spans], GREEN)
    for one in counts:
        if one.exchanges and one.shards == 16:
            kind = ("○", GREEN) if one.graph.startswith("rmat") else ("×", BLUE)
            growth.mark((one.all_edges / 1e6, one.exchanges), *kind)
    for run in points:
        if run.what == "shards" and run.count:
            growth.mark((run.edges / 1e6, run.count), "●", GREEN)
    left, right, top = 70, 560, 100
    names = [(mark, name, colour) for name, (mark, colour, _) in FAMILIES.items()]
    marks = [("○", "R-MAT, 16 shards", GREEN), ("●", "R-MAT, GPUs", GREEN), ("×", "other graphs", BLUE)]
    lines = [("—", f"{ratio:.1f} for each round of R-MAT", GREEN), ("■", "range of the model", BLUE)]
    parts = [
        *(legend(names[at : at + 3], left, 22 + 6 * at, 110) for at in (0, 3)),
        legend(marks, right, 22, 140),
        legend(lines, right, 40, 220),
        seconds.drawn(left, top),
        growth.drawn(right, top),
    ]
    return document(990, 475, "The model and what was measured", parts)


def projection(model: Model, machines: Machines) -> str:
    """Each term of the time of a run, by the edges, for the present groups and with all remedies."""
    left, top, gap = 60, 80, 70
    entries = [("■", term, colour) for term, (colour, _) in TERMS.items()]
    parts = [legend(entries[:2], left, 22, 130), legend(entries[2:], left + 320, 22, 110)]
    titles = (f"{machines.shards} groups, packets by Dask's comms", "All remedies")
    for at, (title, layout) in enumerate(zip(titles, (LAYOUTS[0], LAYOUTS[-1]), strict=True)):
        panel = Panel(title, GIGAS, PROJECTED, ("edges, G", "seconds"))
        for term, (colour, _) in TERMS.items():
            spans = [(edges, _term(model, machines, 1e9 * edges, layout, term)) for edges in _steps(*GIGAS)]
            least, most = _ends(spans, False), _ends(spans, True)
            panel.between(least, most, colour)
            panel.line(least, colour, width=1)
            panel.line(most, colour, width=1)
        parts.append(panel.drawn(left + at * (panel.size[0] + gap), top))
    return document(left + 2 * 470, top + 375, "Seconds of a run by term", parts)


def _ends(spans: Sequence[tuple[float, Span]], most: bool) -> list[tuple[float, float]]:
    return [(edges, span.most if most else span.least) for edges, span in spans]


def _term(model: Model, machines: Machines, edges: float, layout: Layout, term: str) -> Span:
    found = times(model, machines, model.rmat(edges), layout)
    return sum_of([span for name, span in found.items() if name.split(": ")[-1] in TERMS[term][1]])


def _steps(least: float, most: float) -> list[float]:
    return [least * (most / least) ** (step / STEPS) for step in range(STEPS + 1)]
