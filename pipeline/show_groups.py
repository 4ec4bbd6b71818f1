"""Dense groups, and what changed between two results, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from .comparing import Diff
from .rows import Group, Vertex
from .show import grid

__all__ = ["changes_table", "dn_graphs_table", "groups_table", "vertex_line"]


def dn_graphs_table(rows: Iterable[dict[str, Any]], tracks: bool = False) -> Table:
    """Rows of the table of DN-graphs, with their tracks or without."""
    more = ["track>"] if tracks else []
    table = grid("DN-graph>", "lambda>", "vertices>", "edges>", "density>", "triangles>", "parent>", *more)
    for row in rows:
        sizes = (f"{row[name]:,}" for name in ("lambda", "vertices", "edges"))
        last = [_component(row[name]) for name in ("parent", *(["track"] if tracks else []))]
        table.add_row(str(row["id"]), *sizes, f"{row['density']:.4f}", f"{row['triangles']:,}", *last)
    return table


def vertex_line(vertex: Vertex) -> Text:
    """A vertex and its own numbers."""
    return Text(
        f"vertex {vertex.id!r}: lambda {vertex.lam:,}, degree {vertex.degree:,}, {vertex.triangles:,} triangles"
    )


def groups_table(groups: Iterable[Group]) -> Table:
    """Groups, one inside the next."""
    table = grid("component>", "k>", "vertices>", "edges>", "density>", "")
    for group in groups:
        sizes = (f"{size:,}" for size in (group.k, group.vertices, group.edges))
        kind = "DN-graph" if group.dn_graph else "" if group.parent is not None else "connected component"
        table.add_row(_component(group.component), *sizes, f"{group.density:.4f}", kind)
    return table


def changes_table(found: Diff) -> Table:
    """Counts of what changed, a row for each kind of change: for any numbers narrower than a terminal."""
    sides = [(title, changes) for title, changes in (("edges", found.edges), ("DN-graphs", found.dn_graphs)) if changes]
    table = grid("", *(f"{title}>" for title, _ in sides))
    for name in ("old", "new", "unchanged", "appeared", "vanished", "rose", "fell", "reshaped"):
        counts = [getattr(changes, name) for _, changes in sides]
        if any(count is not None for count in counts):
            table.add_row(name, *("" if count is None else f"{count:,}" for count in counts))
    for name, count in ({} if found.groups is None else asdict(found.groups)).items():
        table.add_row(name, "", f"{count:,}")
    return table


def _component(number: int | None) -> str:
    return "" if number is None else str(number)
