"""The picture of the cost of updates against the size of the change, from `benchmarks/update-cost.csv`."""

from __future__ import annotations

import csv
from itertools import groupby, pairwise
from math import log10
from pathlib import Path

from drawing import Spot, document, line, text

MEASURED = Path(__file__).parents[2] / "benchmarks" / "update-cost.csv"
"""Made by `python -m benchmarks update --csv benchmarks/update-cost.csv`."""
BREAK_EVEN = 1.0
COLOURS = ("#3b82c4", "#d9780f", "#2a9d6f", "#a855b5", "#c62f2f")
"""One for each graph."""
LEFT, RIGHT, TOP, BOTTOM = 70, 560, 50, 350
LEAST_SHARE, MOST_SHARE = -3, 1
"""Powers of ten, in % of the edges."""
LEAST_PART, MOST_PART = -3, 1
"""Powers of ten, of the part of a peeling."""


def drawn() -> str:
    """The picture: a line for each graph and kind of batch."""
    with MEASURED.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    parts = [text((LEFT, 28), f"Time of λ after a batch, over that of a peeling, {rows[0]['threads']} threads")]
    parts += _axes()
    for (graph, kind), own in groupby(rows, lambda row: (row["graph"], row["batch"])):
        spots = [_spot(float(row["share, %"]), float(row["part"])) for row in own]
        colour, dashed = COLOURS[graphs.index(graph) % len(COLOURS)], kind == "random"
        parts += [line(one, other, colour, dashed=dashed) for one, other in pairwise(spots)]
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in spots]
    for place, graph in enumerate(graphs):
        at = (RIGHT + 24, TOP + 14 + 24 * place)
        parts += [line(at, (at[0] + 26, at[1]), COLOURS[place % len(COLOURS)]), text((at[0] + 34, at[1] + 5), graph)]
    below = TOP + 30 + 24 * len(graphs)
    for kind, dashed in (("all edges of random vertices", False), ("random edges", True)):
        at = (RIGHT + 24, below)
        parts += [line(at, (at[0] + 26, at[1]), "#8b949e", dashed=dashed), text((at[0] + 34, at[1] + 5), kind)]
        below += 24
    return document(820, 410, "Cost of an update against the size of the change", parts)


def _spot(share: float, part: float) -> Spot:
    across = (log10(share) - LEAST_SHARE) / (MOST_SHARE - LEAST_SHARE)
    up = (log10(max(part, 10**LEAST_PART)) - LEAST_PART) / (MOST_PART - LEAST_PART)
    return LEFT + (RIGHT - LEFT) * across, BOTTOM - (BOTTOM - TOP) * min(up, 1.0)


def _axes() -> list[str]:
    parts = []
    for power in range(LEAST_SHARE, MOST_SHARE + 1):
        x, _ = _spot(10.0**power, 1.0)
        parts.append(line((x, TOP), (x, BOTTOM), "#8b949e55", 1))
        parts.append(text((x, BOTTOM + 20), f"{10.0**power:g} %", "quiet", "middle", 12))
    for power in range(LEAST_PART, MOST_PART + 1):
        _, y = _spot(1.0, 10.0**power)
        bold = 10.0**power == BREAK_EVEN
        parts.append(line((LEFT, y), (RIGHT, y), "#c62f2f" if bold else "#8b949e55", 1))
        parts.append(text((LEFT - 8, y + 4), f"{10.0**power:g}", "quiet", "end", 12))
    below = "share of the edges that change; at the red line an update costs a peeling"
    parts.append(text((LEFT, BOTTOM + 44), below, "quiet", size=12))
    return parts
