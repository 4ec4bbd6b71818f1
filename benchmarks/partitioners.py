"""Partitioners side by side, of what simulate_partitions counted: a table of copies, and a picture.

    python -m benchmarks simulate_partitions --graphs cnr-2000 --partitions 2,8,32,512 --bounding none --csv counts.csv
    python -m benchmarks partitioners --csv counts.csv --picture copies.svg

*Copies* are (owned + ghosts) / edges among edges that have triangles: what bounding holds; *most* is the part of all
edges that the largest partition holds so, *cut* the part with ends in two partitions, both in %; *exchanges* and *ids*
told an edge are those of banding, *placing* the seconds of one thread. The picture has a panel for
each graph and a line for each method, both axes in powers.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.simulate_partitions import Simulated, read_csv
from benchmarks.svg import Panel, document, legend, powers
from benchmarks.table import markdown
from edgemill.pipeline.partitioning import METHODS

PANEL, GAP, ACROSS = (250, 190), (46, 46), 4
"""Width and height of a panel, what lies between two, and how many stand in a row, in pixels."""
COLOURS = ("#7f7f7f", "#bcbd22", "#000000", "#2ca02c", "#1f77b4", "#d62728", "#9467bd")
"""Of the methods, in order: told apart in print as well, as each line ends in its own mark."""
MARKS = "○□×△●◆■"


VALUES: Mapping[str, Callable[[Simulated], float]] = {
    "copies": lambda one: one.held,
    "most": lambda one: 100 * one.held_most / one.edges,
    "cut": lambda one: 100 * one.cut / one.edges,
    "exchanges": lambda one: one.exchanges,
    "ids": lambda one: one.ids / one.edges,
    "placing": lambda one: one.placing,
}
"""What a table can be of."""


def table(found: Sequence[Simulated], value: str) -> str:
    """One of VALUES by graph and count, a column for each method; the least of each line is bold."""
    by_case: dict[tuple[str, int], dict[str, Simulated]] = {}
    for one in found:
        by_case.setdefault((one.graph, one.partitions), {})[one.method] = one
    rows = []
    for (graph, partitions), of_method in by_case.items():
        cells = {method: _short(VALUES[value](one)) for method, one in of_method.items()}
        least = min(cells.values(), key=float)
        shown = [f"**{cells[m]}**" if cells.get(m) == least else cells.get(m, "") for m in METHODS]
        rows.append([graph, str(partitions), *shown])
    return markdown(["graph", "partitions", *METHODS], rows)


def _short(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def picture(found: Sequence[Simulated]) -> str:
    """An SVG of copies against partitions."""
    graphs = list(dict.fromkeys(one.graph for one in found))
    rows = -(-len(graphs) // ACROSS)
    parts = [legend(list(zip(MARKS, METHODS, COLOURS, strict=True)), GAP[0], 20, 110)]
    for at, graph in enumerate(graphs):
        left = GAP[0] + at % ACROSS * (PANEL[0] + GAP[0])
        top = 30 + GAP[1] + at // ACROSS * (PANEL[1] + GAP[1])
        parts.append(_panel([one for one in found if one.graph == graph]).drawn(left, top))
    width = ACROSS * (PANEL[0] + GAP[0]) + GAP[0]
    return document(width, rows * (PANEL[1] + GAP[1]) + GAP[1] + 30, parts)


def _panel(found: Sequence[Simulated]) -> Panel:
    counts = sorted({one.partitions for one in found})
    least = 2.0 ** math.floor(math.log2(min(one.held for one in found)))
    most = max(2 * least, 2.0 ** math.ceil(math.log2(max(one.held for one in found))))
    across = counts[0], max(counts[-1], 2 * counts[0])
    panel = Panel(found[0].graph, across, (least, most), PANEL, counts, powers(2, least, most))
    for mark, method, colour in zip(MARKS, METHODS, COLOURS, strict=True):
        points = sorted((one.partitions, one.held) for one in found if one.method == method)
        if points:
            panel.line(points, colour)
        for point in points:
            panel.mark(point, mark, colour)
    return panel


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--csv", type=Path, required=True, help="what simulate_partitions wrote")
    parser.add_argument("--tables", default="copies", help=f"of {', '.join(VALUES)}, with commas between")
    parser.add_argument("--picture", type=Path, help="file for the picture, SVG")


def report(options: argparse.Namespace) -> None:
    """Print the table and draw."""
    found = read_csv(options.csv)
    if options.picture:
        options.picture.write_text(picture(found), encoding="utf-8")
    for value in options.tables.split(","):
        if value not in VALUES:
            raise SystemExit(f"no table of {value!r}: there are {', '.join(VALUES)}")
        print(f"\n{value}\n\n{table(found, value)}")
