"""A result in a notebook: counts, the first DN-graphs with some of their vertices, and a histogram of λ as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...tasks.errors import EdgemillError
from ..messages.html import framed, many, shown, table
from ..queries.attributes import labels_of
from ..queries.program_columns import row_name, summaries, value_text
from ..report.distributions import members
from ..results.lookup import DNGraph, rows_of
from ..results.result import Result
from ..results.streaming import top_k

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


MOST_GROUPS = 5
MOST_MEMBERS = 4
MOST_NAME = 24
"""Longest id or label of a vertex, in characters."""


def page(result: Result) -> str:
    """A result as HTML. Reads the tables of DN-graphs and of their members once; an error is shown in their place."""
    manifest = result.manifest
    counts, dense = manifest.counts, manifest.dense
    facts: dict[str, int | None] = {"edges": counts.edges, "vertices": counts.vertices}
    if manifest.has_lambda:
        facts[manifest.measure] = counts.figures
        facts["highest λ" if manifest.exact else "highest λ, at least"] = manifest.lam.max
    if dense is not None:
        facts["DN-graphs"] = dense.dn_graphs
    dropped = {
        "self-loop": counts.self_loops,
        "duplicate row": counts.duplicates,
        "null": counts.nulls_dropped,
    }
    left_out = ", ".join(many(number, what) for what, number in dropped.items() if number)
    lines = [f"<p><b>edgemill result</b> {_state(result)}</p>"]
    lines.append(table([*facts], [[shown(value) for value in facts.values()]], len(facts)))
    if left_out:
        lines.append(f'<p class="faint">left out: {left_out}</p>')
    what = "edges by λ" if manifest.exact else "edges by lower bound of λ"
    levels = bars(manifest.lam.histogram, what) if manifest.has_lambda else ""
    parts = [f"<div>{part}</div>" for part in (_groups(result), levels, *_columns(result)) if part]
    return framed(*lines, f'<div class="parts">{"".join(parts)}</div>')


def _state(result: Result) -> str:
    where = shown(result.place, 120)
    if result.is_removed:
        return f'<span class="faint">temporary, removed from {where}</span>'
    kept = "temporary: .save(path) keeps it; " if result.is_temporary else ""
    limit = ""
    if not result.converged:
        limit = f"; not converged: {shown('; '.join(result.manifest.unfinished), 300)}"
    return f'<span class="faint">{kept}{where}; {result.manifest.seconds:.2f} s{limit}</span>'


def _groups(result: Result) -> str:
    dense = result.manifest.dense
    if dense is None or result.is_removed:
        return ""
    if not dense.dn_graphs:
        return "<p>No edge is in a triangle, so the graph has no dense groups.</p>"
    try:
        graphs = rows_of(DNGraph, top_k(result, "lambda", MOST_GROUPS))
        some = members(result.dn_graph_members, [graph.id for graph in graphs], MOST_MEMBERS)
        named = {graph.id: _names(result, some[graph.id], graph.vertices) for graph in graphs}
    except (EdgemillError, OSError) as error:
        return f"<p>The groups cannot be read: {shown(error, 300)}</p>"
    rows = [
        [
            shown(graph.lam),
            shown(graph.vertices),
            shown(graph.edges),
            f"{graph.density:.0%}",
            str(graph.id),
            named[graph.id],
        ]
        for graph in graphs
    ]
    title = "the first DN-graphs" if dense.dn_graphs > len(graphs) else "all DN-graphs"
    head = ["λ", "vertices", "edges", "density", "id", f"some members of {title}"]
    return table(head, rows, 5)


def _columns(result: Result) -> list[str]:
    """A table with the top rows of each column of the programs."""
    if result.is_removed:
        return []
    try:
        found = summaries(result, MOST_GROUPS)
    except (EdgemillError, OSError) as error:
        return [f"<p>The columns of programs cannot be read: {shown(error, 300)}</p>"]
    tables = []
    for column in found:
        if column.constant:
            tables.append(f"<p>{shown(column.constant)}</p>")
            continue
        head = ["edge" if column.of_edges else "vertex", column.name]
        if column.groups is not None:
            head = [f"{column.name}, {column.groups:,} in all", column.rows]
        rows = [[shown(value_text(value)), shown(row_name(id), MOST_NAME)] for id, value in column.top]
        tables.append(table([shown(name) for name in reversed(head)], rows, 1))
    return tables


def _names(result: Result, ids: list[object], vertices: int) -> str:
    labels = labels_of(result, ids)
    pairs = zip(ids, labels, strict=True)
    texts = [str(id) if label is None else f"{label} ({id})" for id, label in pairs]
    return ", ".join(shown(text, MOST_NAME) for text in texts) + (", …" if vertices > len(ids) else "")
