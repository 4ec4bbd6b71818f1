"""A small histogram of λ as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .html import many

WIDTH, HEIGHT = 320, 110
WIDEST = 24
"""Width of a bar, at most."""
LEFT, TOP, BOTTOM = 4, 16, 18
"""Margins, for the labels."""
MOST_BARS = 40


def bars(histogram: Sequence[tuple[int, int]], what: str) -> str:
    """A histogram of pairs of λ and a number of edges, as SVG. Heights are on a logarithmic scale.

    λ is in at most MOST_BARS ranges of equal width. `what` is the title as HTML. Each bar has its numbers as a tooltip.
    """
    top = max((value for value, _ in histogram), default=0)
    wide = -(-(top + 1) // MOST_BARS)
    counts = [0] * (top // wide + 1)
    for value, edges in histogram:
        counts[value // wide] += edges
    most = max(counts)
    if not most:
        return ""
    across, down = (WIDTH - 2 * LEFT) / len(counts), HEIGHT - TOP - BOTTOM
    drawn = []
    for at, edges in enumerate(counts):
        if edges:
            tall = down * max(0.03, math.log1p(edges) / math.log1p(most))
            first, last = at * wide, min(at * wide + wide - 1, top)
            lam = str(first) if first == last else f"{first} to {last}"
            x, y, width = LEFT + at * across, TOP + down - tall, min(max(across - 1, 0.8), WIDEST)
            box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{tall:.1f}"'
            drawn.append(f"<rect {box}><title>λ {lam}: {many(edges, 'edge')}</title></rect>")
    floor = TOP + down
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{what}, from 0 to {top}">'
        f'<text x="{LEFT}" y="11">{what}; up to {most:,} (logarithmic)</text>'
        f'{"".join(drawn)}<line x1="{LEFT}" x2="{WIDTH - LEFT}" y1="{floor}" y2="{floor}"/>'
        f'<text x="{LEFT}" y="{HEIGHT - 5}">{"0" if top else ""}</text>'
        f'<text x="{WIDTH - LEFT}" y="{HEIGHT - 5}" text-anchor="end">λ {top:,}</text></svg>'
    )
