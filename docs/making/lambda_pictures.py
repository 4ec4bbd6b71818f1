"""Pictures of the page "What λ tells you". λ of the small graphs is computed by NetworkX, of ego-Facebook by a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import cos, log10, pi, sin
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import networkx as nx

from drawing import COLOURS, Spot, bar, document, dot, levels, line, text
from edgemill.pipeline import mine

ROOT = Path(__file__).resolve().parents[2]
FACEBOOK = ROOT / "tests" / "graphs" / "facebook_combined.parquet"
WITHOUT_REPORT: Mapping[str, Any] = {"output.report": False}
SHADES = (*COLOURS, "#b0349b")
"""Of λ = 0 to 4."""


def ring(names: Sequence[str], middle: Spot, radius: float, turn: float = 0.0) -> dict[str, Spot]:
    """Places of vertices on a circle, the first at the top, turned by so many turns."""
    angles = {name: 2 * pi * (at / len(names) + turn) for at, name in enumerate(names)}
    return {name: (middle[0] + radius * sin(angle), middle[1] - radius * cos(angle)) for name, angle in angles.items()}


def drawn(edges: Sequence[tuple[str, str]], spots: Mapping[str, Spot]) -> list[str]:
    """A graph whose edges have the colours of their λ."""
    lam = _levels(edges)
    parts = [line(spots[u], spots[v], SHADES[lam[u, v]]) for u, v in edges]
    return parts + [dot(spots[name], name) for name in sorted({name for edge in edges for name in edge})]


def legend(at: Spot, highest: int) -> list[str]:
    """Which colour is which λ, in a row."""
    parts = [text(at, "λ", "quiet", size=13)]
    for value in range(highest + 1):
        x = at[0] + 24 + 52 * value
        parts += [
            line((x, at[1] - 4), (x + 20, at[1] - 4), SHADES[value], 4),
            text((x + 26, at[1]), str(value), size=13),
        ]
    return parts


def common_friends() -> str:
    """Two edges of the same support: friends who do not know each other, and friends who do."""
    strangers = {"A": (80.0, 120.0), "B": (80.0, 220.0)}
    strangers |= {name: (175.0 + 62 * at, 170.0) for at, name in enumerate("CDEF")}
    book = [("A", "B"), *((one, name) for name in "CDEF" for one in "AB")]
    circle = ring("ABCDEF", (610, 170), 85, 0.0)
    team = list(combinations("ABCDEF", 2))
    parts = [text((24, 32), "Four common friends, strangers to each other")]
    parts += [text((24, 54), _about(book), "quiet", size=13), *drawn(book, strangers)]
    parts += [text((450, 32), "Four common friends who know each other")]
    parts += [text((450, 54), _about(team), "quiet", size=13), *drawn(team, circle), *legend((24, 296), 4)]
    return document(800, 316, "An edge of support 4 and λ 1, and one of support 4 and λ 4", parts)


def two_teams() -> str:
    """Two teams, a bridge between them, someone who knows two of a team, and someone who knows one."""
    spots = ring("ABCDE", (150, 150), 75) | ring("FGHI", (420, 150), 70, 1 / 8)
    spots |= {"J": (45, 255), "K": (540, 250), "L": (285, 240)}
    edges = [*combinations("ABCDE", 2), *combinations("FGHI", 2), ("B", "I"), ("D", "J"), ("E", "J"), ("G", "K")]
    edges += [("C", "L"), ("H", "L")]
    notes = ("team of five: λ 3", "team of four: λ 2", "J knows two of a team: λ 1", "bridges and K: λ 0")
    parts = [text((24, 32), "Teams, and what lies around them"), *drawn(edges, spots), *legend((24, 306), 3)]
    parts += [text((600, 120 + 26 * at), note, "quiet", size=13) for at, note in enumerate(notes)]
    return document(800, 326, "Two teams of λ 3 and 2, and edges of λ 0 and 1 around them", parts)


def joining() -> str:
    """A vertex that comes to know more and more of a team, night by night."""
    parts = [text((24, 32), "A newcomer, night by night")]
    for night, known in enumerate((1, 2, 3, 5)):
        left = 110 + 195 * night
        spots = ring("ABCDE", (left, 160), 62) | {"N": (left, 272.0)}
        team = list(combinations("ABCDE", 2))
        edges = [*team, *((name, "N") for name in "DCBEA"[:known])]
        lam = _levels(edges)
        found = max(lam[name, "N"] for name in "DCBEA"[:known])
        parts += drawn(edges, spots)
        parts.append(text((left, 74), f"night {night + 1}: N has λ {found}", "", "middle", 13))
        team_level = max(lam[edge] for edge in team)
        parts.append(text((left, 308), f"the team has λ {team_level}", "quiet", "middle", 12))
    return document(800, 328, "λ of a newcomer and of its team over four nights", parts)


def facebook_levels() -> str:
    """How many edges of ego-Facebook have each λ, and where its DN-graphs are."""
    with TemporaryDirectory() as folder:
        result = mine(FACEBOOK, Path(folder, "out"), **WITHOUT_REPORT)
        lam = result.edges.to_table(columns=["lambda"])["lambda"].value_counts().to_pylist()
        groups = result.dn_graphs.to_table().to_pylist()
    edges = {row["values"]: row["counts"] for row in lam}
    left, foot, wide, high, most = 60, 236, 690, 160, int(max(edges))

    def across(value: float) -> float:
        return left + wide * value / (most + 1)

    def up(count: float) -> float:
        return foot - high * log10(count) / 4

    parts = [text((24, 32), "ego-Facebook: edges of each λ, and its DN-graphs")]
    for count in (1, 10, 100, 1000, 10000):
        parts += [line((left, up(count)), (left + wide, up(count)), "#8b949e55", 1)]
        parts += [text((left - 8, up(count) + 4), f"{count:,}", "quiet", "end", 11)]
    parts += [bar(across(k), up(n), across(1) - left - 1, max(foot - up(n), 1.5), SHADES[1]) for k, n in edges.items()]
    for value in range(0, most + 1, 10):
        parts.append(text((across(value + 0.5), foot + 18), str(value), "quiet", "middle", 11))
    for group in groups:
        at = across(group["lambda"] + 0.5)
        parts.append(f'<text x="{at:.1f}" y="60" text-anchor="middle" font-size="13" style="fill:{SHADES[3]}">◆</text>')
        parts.append(line((at, 64), (at, up(edges[group["lambda"]])), SHADES[3], 1, dashed=True))
    parts.append(text((left + wide, foot + 36), "λ; ◆ a DN-graph of that λ", "quiet", "end", 12))
    return document(800, 290, "Numbers of edges by λ in ego-Facebook, with the levels of its DN-graphs", parts)


def _levels(edges: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """λ of each edge, in the spelling that it has in `edges`."""
    names = sorted({name for edge in edges for name in edge})
    number = {name: at for at, name in enumerate(names)}
    lam = levels(nx.Graph([(number[u], number[v]) for u, v in edges]))
    return {(u, v): lam[min(number[u], number[v]), max(number[u], number[v])] for u, v in edges}


def _about(edges: Sequence[tuple[str, str]]) -> str:
    support = len(list(nx.common_neighbors(nx.Graph(list(edges)), "A", "B")))
    return f"A and B: support {support}, λ = {_levels(edges)['A', 'B']}"
