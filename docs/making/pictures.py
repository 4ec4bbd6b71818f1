"""Draws the pictures of the explanations, readable on light and dark pages.

python docs/making/pictures.py

What they show of graphs is computed: λ and components by NetworkX, λ of ego-Facebook by the product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from math import cos, radians, sin
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import networkx as nx

import figures
import group_pictures
import lambda_pictures
import rooms
import update_cost
from drawing import COLOURS, Edge, arrow, bar, box, document, dot, levels, line, text
from edgemill.pipeline import mine

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
FACEBOOK = ROOT / "tests" / "graphs" / "facebook_combined.parquet"
WITHOUT_REPORT: Mapping[str, Any] = {"output.report": False}


def hierarchy() -> str:
    """A graph with its edges coloured by λ, and the components of {λ ≥ k} in one another."""
    spots = {n + 1: (110 + 75 * cos(radians(180 - 72 * n)), 140 - 75 * sin(radians(180 - 72 * n))) for n in range(5)}
    spots |= {
        6: (228, 132),
        7: (232, 212),
        8: (300, 160),
        9: (318, 232),
        10: (398, 190),
        11: (418, 264),
        12: (342, 296),
    }
    spots[13] = (262, 310)
    strip = [(3, 6), (4, 6), (4, 7), (6, 7), (6, 8), (7, 8), (7, 9), (8, 9)]
    graph = nx.Graph([*combinations(range(1, 6), 2), *strip, *combinations(range(9, 13), 2), (12, 13)])
    lam = levels(graph)
    parts = [line(spots[u], spots[v], COLOURS[k]) for (u, v), k in lam.items()]
    parts += [dot(spot, name) for name, spot in spots.items()]
    support = len(list(nx.common_neighbors(graph, 3, 4)))
    parts += [arrow((190, 50), (176, 122)), text((150, 42), f"support {support}, λ = {lam[3, 4]}", size=13)]
    left, top, wide, high = 480, 90, 250, 46
    parts.append(text((left, 60), "connected components of {λ ≥ k}"))
    parts.append(text((left, 78), "as wide as they have edges", "quiet", size=12))
    ends: dict[frozenset[Edge], float] = {frozenset(lam): left}
    for k in range(max(lam.values()) + 1):
        kept = nx.Graph([edge for edge, value in lam.items() if value >= k])
        below, ends = ends, {}
        for vertices in sorted(nx.connected_components(kept), key=min):
            edges = frozenset(edge for edge in lam if edge[0] in vertices and lam[edge] >= k)
            holder = next(other for other in below if edges <= other)
            start = below[holder]
            width = wide * len(edges) / len(lam)
            below[holder] = start + width
            ends[edges] = start
            parts.append(bar(start, top + k * high, width - 2, high - 4, COLOURS[k]))
            leaf = max(lam[edge] for edge in edges) == k
            words = f'<tspan style="fill:#fff">{len(edges)}{" ◆" if leaf else ""}</tspan>'
            parts.append(text((start + width / 2, top + k * high + 26), words, anchor="middle"))
        parts.append(text((left - 12, top + k * high + 26), f"k = {k}", "quiet", "end", 12))
    parts.append(text((left, top + 4 * high + 22), "◆ a DN-graph: nothing denser in it", "quiet", size=12))
    return document(760, 340, "A graph, λ of its edges, and the hierarchy of its groups", parts)


def bands() -> str:
    """The bands of ego-Facebook, as they are halved side by side."""
    with TemporaryDirectory() as folder:
        result = mine(FACEBOOK, Path(folder, "out"), **WITHOUT_REPORT)
        table = result.edges.to_table(columns=["support", "lambda"]).to_pandas()
    counts, support = table["lambda"].value_counts(), table["support"]
    highest = max(k for k in range(support.max() + 1) if (support >= k).sum() >= (k + 1) * (k + 2) / 2)
    left, top, wide, high = 70, 60, 640, 26
    steps = [{0: highest + 1}]
    while steps[-1]:
        halves = [own for lo, hi in steps[-1].items() for own in ((lo, (lo + hi) // 2), ((lo + hi) // 2, hi))]
        steps.append({lo: hi for lo, hi in halves if hi - lo > 1 and counts.index.isin(range(lo, hi)).any()})

    def across(value: float) -> float:
        return left + wide * value / (highest + 1)

    parts = [
        text((left, 26), f"ego-Facebook: every edge starts in [0, {highest + 1}), and each step halves the open bands")
    ]
    parts.append(
        text((left, 46), "a vertical mark is a λ that is settled, with the edges that have it", "quiet", size=12)
    )
    known: dict[int, int] = {}
    for step, open_bands in enumerate(steps):
        y = top + step * high
        for value in counts.index:
            if not any(lo <= value < hi for lo, hi in open_bands.items()):
                known.setdefault(int(value), step)
        for value in known:
            parts.append(bar(across(value), y, across(1) - left - 1, high - 5, COLOURS[2]))
        for lo, hi in open_bands.items():
            parts.append(bar(across(lo), y, across(hi) - across(lo) - 1, high - 5, COLOURS[1]))
        parts.append(text((left - 10, y + 15), f"step {step}" if step else "start", "quiet", "end", 12))
    foot = top + len(steps) * high
    parts += [
        text((across(value), foot + 12), str(value), "quiet", "middle", 12) for value in range(0, highest + 1, 20)
    ]
    parts.append(text((left + wide, foot + 12), "λ", "quiet", "end", 12))
    return document(730, foot + 24, "Bands of the edges of ego-Facebook, step by step", parts)


def flow() -> str:
    """From Parquet to Parquet."""
    columns = (
        (20, "read", "blocks", ("rows, cleaned", "and without repeats")),
        (175, "number", "buckets", ("ranges of ids", "in order")),
        (330, "partition, triangulate", "groups", ("edges, by the", "shards of their ends")),
        (590, "extract", "buckets", ("λ; DN-graphs,", "hierarchy")),
        (745, "publish", "the result", ("sorted Parquet,", "manifest last")),
    )
    rows = (88, 134, 180)
    parts = []
    for left, stage, name, about in columns:
        parts.append(text((left + 55, 30), stage, "quiet", "middle", 12))
        parts.append(text((left + 55, 56), name, "", "middle"))
        parts += [box(left, row - 18, 110, 36) for row in rows]
        parts += [text((left + 55, 230 + 18 * at), words, "quiet", "middle", 12) for at, words in enumerate(about)]
    for left, right in ((130, 175), (285, 330)):
        parts += [arrow((left + 3, one), (right - 3, two)) for one in rows for two in rows]
    parts += [arrow((703, row), (742, row)) for row in rows]
    parts += [text((512, 30), "bound", "quiet", "middle", 12), text((512, 56), "exchanges", "", "middle")]
    parts.append(box(500, 70, 24, 128))
    for row in rows:
        parts += [
            arrow((443, row - 7), (497, row - 7)),
            arrow((497, row + 7), (443, row + 7)),
            arrow((527, row), (587, row)),
        ]
    parts += [
        text((512, 230), "what leaves, until", "quiet", "middle", 12),
        text((512, 248), "nothing is left", "quiet", "middle", 12),
    ]
    return document(875, 265, "The stages of a run", parts)


def failure() -> str:
    """A run that is killed, and the one that goes on from there."""
    stages = (("read", 60), ("number", 70), ("partition", 80), ("triangulate", 90))
    left, parts = 130, list[str]()
    for row, name in ((60, "first run"), (180, "the same"), (198, "command again")):
        parts.append(text((left - 12, row + (21 if row == 60 else 12)), name, "", "end"))
    x = left
    for stage, width in stages:
        parts.append(box(x, 60, width - 3, 34, stage))
        x += width
    parts.append(box(x, 60, 200, 34, "bound"))
    graph, kept, earlier, end = x + 12, x + 150, x + 80, x + 200
    parts += [f'<path class="fall" d="M{end - 9} 67 l18 20 m0 -20 l-18 20"/>', text((end + 16, 82), "killed")]
    for at, words, colour in (
        (graph, "graph", COLOURS[2]),
        (earlier, "progress", COLOURS[1]),
        (kept, "progress", COLOURS[1]),
    ):
        parts += [line((at, 94), (at, 118), colour), f'<circle cx="{at}" cy="122" r="5" fill="{colour}"/>']
        parts.append(text((at, 144), words, "quiet", "middle", 12))
    parts.append(box(graph - 12, 180, kept - graph - 17, 34, "restore"))
    parts.append(box(kept - 26, 180, 150, 34, "bound"))
    parts.append(box(kept + 127, 180, 70, 34, "extract"))
    parts.append(box(kept + 200, 180, 72, 34, "publish"))
    parts.append(arrow((kept, 150), (kept, 176)))
    parts.append(text((kept + 286, 201), "one rename"))
    parts.append(text((left, 30), "What is kept while a run looks for λ, and where the next one begins"))
    parts.append(
        text(
            (left, 244),
            "two generations of progress stay: a damaged one is not used, the one before it is",
            "quiet",
            size=12,
        )
    )
    return document(975, 262, "A run that is killed goes on from its last checkpoint", parts)


PICTURES_BY_NAME: Mapping[str, Callable[[], str]] = {
    "hierarchy.svg": hierarchy,
    "bands.svg": bands,
    "flow.svg": flow,
    "failure.svg": failure,
    "common-friends.svg": lambda_pictures.common_friends,
    "two-teams.svg": lambda_pictures.two_teams,
    "joining.svg": lambda_pictures.joining,
    "facebook-levels.svg": lambda_pictures.facebook_levels,
    "which-groups.svg": group_pictures.covered,
    "rooms.svg": rooms.drawn,
    "numbers.svg": figures.drawn,
    "update-cost.svg": update_cost.drawn,
}


def main() -> None:
    """Write them all."""
    PICTURES.mkdir(exist_ok=True)
    for name, draw in PICTURES_BY_NAME.items():
        (PICTURES / name).write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
