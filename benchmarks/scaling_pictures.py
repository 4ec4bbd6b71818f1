"""The pictures of docs/scaling.md: what was measured against the model, and what that says of more edges.

python -m benchmarks scaling --pictures docs/scaling
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.scaling_fit import Span
from benchmarks.scaling_model import LAYOUTS, Layout, Machines, Model, rmat, sum_of, times
from benchmarks.shard_counts import ShardCounts
from benchmarks.svg import Panel, document, legend, powers

STEPS = 16
"""Parts that a line is made of."""
EDGES = (1e9, 1e11)
"""Least and most of the projection."""
SECONDS = (0.00005, 60)
"""Least and most of what was measured."""
PROJECTED = (0.01, 10_000)
"""Least and most seconds of the projection."""
GROWTH = (0.1, 1e5)
"""Least and most of the panel of exchanges, millions of edges."""
EXCHANGES = (300, 300_000)

TERMS: Mapping[str, tuple[str, Sequence[str]]] = {
    "work": ("#2ca02c", ("work", "lookups")),
    "network": ("#1f77b4", ("network", "streams, counts", "told to all", "messages")),
    "scheduler": ("#d62728", ("scheduler",)),
    "exchanges": ("#9467bd", ("exchanges",)),
}
"""Of the time of a run → colour, and which of the model's terms it has."""
FAMILIES: Mapping[str, tuple[str, str]] = {
    "supports, one GPU": ("○", "#2ca02c"),
    "peeling, one GPU": ("△", "#2ca02c"),
    "ingest and publishing": ("□", "#ff7f0e"),
    "scheduler": ("◆", "#d62728"),
    "letters by Dask's comms": ("●", "#9467bd"),
}
"""Of what is fitted → mark and colour."""


def pictures(model: Model, counts: Sequence[ShardCounts], machines: Machines) -> dict[str, str]:
    """File name → SVG."""
    return {"measured.svg": measured_picture(model, counts), "projection.svg": projection_picture(model, machines)}


def measured_picture(model: Model, counts: Sequence[ShardCounts]) -> str:
    """Seconds as said against seconds as measured, and exchanges against edges."""
    size, left, top = (400, 330), 70, 80
    labels = powers(10, *SECONDS)
    seconds = Panel("Seconds, measured and as the model says", SECONDS, SECONDS, size, labels, labels)
    seconds.line([(end, end) for end in SECONDS], "#555")
    for fit in model.sums.values():
        mark, colour = FAMILIES.get(fit.name, FAMILIES["ingest and publishing"])
        for _, value, said in fit.points:
            seconds.mark((value, said), mark, colour)
    across, up = powers(10, *GROWTH), powers(10, *EXCHANGES)
    growth = Panel("Exchanges", GROWTH, EXCHANGES, size, across, up)
    rounds, span = model.curves["rounds"], _steps(*GROWTH)
    ratio = model.exchanges.most
    real = model.exchanges.times(model.rounds)
    low, high = ([(edges, rounds(1e6 * edges) * end) for edges in span] for end in (real.least, real.most))
    growth.between(low, high, "#1f77b4")
    growth.line([(edges, rounds(1e6 * edges) * ratio) for edges in span], "#2ca02c")
    for one in counted(counts):
        kind = ("○", "#2ca02c") if one.graph.startswith("rmat") else ("×", "#1f77b4")
        growth.mark((one.all_edges / 1e6, one.exchanges), *kind)
    right = left + size[0] + 90
    names = [(mark, name, colour) for name, (mark, colour) in FAMILIES.items()]
    marks = [("○", "R-MAT, 16 shards", "#2ca02c"), ("×", "other graphs", "#1f77b4")]
    lines = [("—", "twice the rounds of one GPU", "#2ca02c"), ("■", "range of rounds of real graphs", "#1f77b4")]
    parts = [
        legend(names[:3], left, 20, 140),
        legend(names[3:], left, 38, 140),
        legend(marks, right, 20, 200),
        legend(lines, right, 38, 200),
        seconds.drawn(left, top, ("measured", "said")),
        growth.drawn(right, top, ("M edges", "")),
    ]
    return document(right + size[0] + 30, top + size[1] + 50, parts)


def counted(counts: Sequence[ShardCounts]) -> list[ShardCounts]:
    """Those whose exchanges are drawn."""
    return [one for one in counts if one.exchanges and one.shards == 16]


def projection_picture(model: Model, machines: Machines) -> str:
    """Each term of the time of a run, by the edges, for the simplest layout and the one with all remedies."""
    size, gap, left, top = (400, 320), 70, 60, 70
    across = EDGES[0] / 1e9, EDGES[1] / 1e9
    parts = [legend([("■", term, colour) for term, (colour, _) in TERMS.items()], left, 20, 110)]
    for at, (title, layout) in enumerate((("256 groups, letters to all", LAYOUTS[0]), ("All remedies", LAYOUTS[-1]))):
        panel = Panel(title, across, PROJECTED, size, powers(10, *across), powers(10, *PROJECTED))
        for term, (colour, _) in TERMS.items():
            spans = [(edges / 1e9, _term(model, machines, edges, layout, term)) for edges in _steps(*EDGES)]
            least = [(edges, span.least) for edges, span in spans]
            most = [(edges, span.most) for edges, span in spans]
            panel.between(least, most, colour)
            panel.line(least, colour, width=1)
            panel.line(most, colour, width=1)
        parts.append(panel.drawn(left + at * (size[0] + gap), top, ("G edges", "s")))
    return document(left + 2 * (size[0] + gap), top + size[1] + 50, parts)


def _term(model: Model, machines: Machines, edges: float, layout: Layout, term: str) -> Span:
    found = times(model, machines, rmat(model, edges), layout)
    return sum_of([span for name, span in found.items() if name.split(": ")[-1] in TERMS[term][1]])


def _steps(least: float, most: float) -> list[float]:
    return [least * (most / least) ** (step / STEPS) for step in range(STEPS + 1)]
