"""A result in a notebook: counts, the first DN-graphs with some of their vertices, and a histogram of λ."""

from __future__ import annotations

from ....tasks.errors import EdgemillError
from ..group_tables import value_text
from ..groups.attributes import labels_of
from ..program_columns import row_name, summaries
from ..report.groups import members
from ..result import Result
from ..rows import DNGraph, rows_of
from ..top_k import top_k
from .histogram import bars
from .html import framed, many, shown, table

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
        facts["triangles"] = counts.triangles
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
