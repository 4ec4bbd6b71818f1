"""Parts of the pictures of docs/: SVG for light and dark pages, and λ of a small graph by definition."""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx

STYLE = """
svg { font: 14px system-ui, sans-serif }
.ground { fill: #fff } text { fill: #1f2328 } .quiet { fill: #5c6570 }
.line { stroke: #5c6570; fill: none; stroke-width: 1.5 } .head { fill: #5c6570 }
.box { fill: #f1f3f6; stroke: #b8c0ca } .dot { fill: #fff; stroke: #1f2328; stroke-width: 1.5 }
.fall { stroke: #c62f2f; fill: none; stroke-width: 2.5 }
@media (prefers-color-scheme: dark) {
  .ground { fill: #1e2129 } text { fill: #e4e6ea } .quiet { fill: #a8b0bb }
  .line { stroke: #a8b0bb } .head { fill: #a8b0bb }
  .box { fill: #2b303a; stroke: #565e6b } .dot { fill: #1e2129; stroke: #e4e6ea }
  .fall { stroke: #ff7b72 }
}
"""
COLOURS = ("#8b949e", "#3b82c4", "#2a9d6f", "#d9780f")
"""Of λ = 0, 1, 2, 3; the second and the last are those of the partitions P and Q, too."""

Spot = tuple[float, float]
Edge = tuple[int, int]


def document(width: int, height: int, about: str, parts: Iterable[str]) -> str:
    """The file."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"><title>{about}</title>'
    ground = f'<rect class="ground" width="{width}" height="{height}" rx="6"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", ground, *parts, "</svg>"]) + "\n"


def text(at: Spot, words: str, kind: str = "", anchor: str = "start", size: int = 14) -> str:
    """Words, and where they begin, have their middle or end."""
    return (
        f'<text class="{kind}" x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{anchor}" font-size="{size}">{words}</text>'
    )


def line(one: Spot, other: Spot, colour: str, width: float = 2.5, dashed: bool = False) -> str:
    """A straight line."""
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    ends = f'x1="{one[0]:.1f}" y1="{one[1]:.1f}" x2="{other[0]:.1f}" y2="{other[1]:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}"{dash}/>'


def arrow(*spots: Spot) -> str:
    """A line through the spots with a head at the last."""
    path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
    (x0, y0), (x1, y1) = spots[-2:]
    long = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
    u, v = (x1 - x0) / long, (y1 - y0) / long
    corners = [(x1, y1), (x1 - 9 * u + 4 * v, y1 - 9 * v - 4 * u), (x1 - 9 * u - 4 * v, y1 - 9 * v + 4 * u)]
    head = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return f'<path class="line" d="{path}"/><polygon class="head" points="{head}"/>'


def box(left: float, top: float, width: float, height: float, words: str = "") -> str:
    """A rectangle with words in its middle."""
    size = f'x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="box" {size} rx="4"/>' + text(
        (left + width / 2, top + height / 2 + 5), words, "", "middle", 13
    )


def bar(left: float, top: float, width: float, height: float, colour: str) -> str:
    """A filled rectangle."""
    size = f'x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {size} fill="{colour}"/>'


def dot(at: Spot, name: object, colour: str = "") -> str:
    """A vertex."""
    fill = f' style="fill:{colour};stroke:{colour}"' if colour else ""
    white = ' style="fill:#fff"' if colour else ""
    number = f'<text x="{at[0]:.1f}" y="{at[1] + 4:.1f}" text-anchor="middle" font-size="11"{white}>{name}</text>'
    return f'<circle class="dot" cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="10"{fill}/>{number}'


def levels(graph: nx.Graph) -> dict[Edge, int]:
    """Edge → λ, by definition: the largest k for which it is in the (k + 2)-truss."""
    found = {(min(edge), max(edge)): 0 for edge in graph.edges}
    for k in range(1, len(graph)):
        for edge in nx.k_truss(graph, k + 2).edges:
            found[min(edge), max(edge)] = k
    return found
