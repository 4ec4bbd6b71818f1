"""Dense groups, vertices and columns of programs as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from rich.bar import Bar
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ..messages.terminal import grid
from ..messages.wording import one_line
from ..results.lookup import Group, Vertex
from .attributes import as_text
from .groups import MEMBER_COLUMNS
from .program_columns import ColumnSummary, range_text, row_name, value_text


def dn_graphs_table(rows: Iterable[dict[str, Any]], tracks: bool = False, fits: bool = False) -> Table:
    """Rows of the table of DN-graphs, which may have `members` and `labels` of `with_members`. `tracks` adds tracks.

    With `fits` each DN-graph takes one line, and shows as many members as fit the width of the terminal.
    """
    rows = list(rows)
    names = any("members" in row for row in rows)
    measure = "butterflies" if any("butterflies" in row for row in rows) else "triangles"
    table = grid(
        *("DN-graph>", "lambda>", "vertices>", "edges>", "density>", f"{measure}>", "parent>"),
        *(["track>"] if tracks else []),
        *(["members"] if names else []),
    )
    for row in rows:
        sizes = (f"{row[name]:,}" for name in ("lambda", "vertices", "edges"))
        table.add_row(
            *(str(row["id"]), *sizes, f"{row['density']:.4f}", f"{row[measure]:,}", _component(row["parent"])),
            *([_component(row["track"])] if tracks else []),
            *([IdList(_names(row), row["vertices"]) if fits else Text(_all_names(row))] if names else []),
        )
    return table


def listed_groups_table(rows: Iterable[dict[str, Any]], tracks: bool = False, fits: bool = False) -> Table:
    """Rows of groups of a program, which may have `members` and `labels` of `with_members`. `tracks` and `fits` as for
    `dn_graphs_table`.
    """
    rows = list(rows)
    names, tracks = any("members" in row for row in rows), tracks and all("track" in row for row in rows)
    table = grid(
        *("component>", "k>", "vertices>", "edges>", "density>", "parent>"),
        *(["track>"] if tracks else []),
        *(["members"] if names else []),
    )
    for row in rows:
        sizes = (f"{row[name]:,}" for name in ("k", "vertices", "edges"))
        members = [IdList(_names(row), row["vertices"]) if fits else Text(_all_names(row))] if names else []
        own = [_component(row["track"])] if tracks else []
        table.add_row(str(row["id"]), *sizes, f"{row['density']:.4f}", _component(row["parent"]), *own, *members)
    return table


def members_table(rows: pa.Table) -> Table:
    """Rows of `members_of`, with attributes right after the id."""
    own = [name for name in MEMBER_COLUMNS if name in rows.column_names]
    others = [name for name in rows.column_names if name not in MEMBER_COLUMNS]
    titles = {"id": "vertex", "degree_inside": "edges inside>", "degree": "edges>"}
    table = grid(
        titles["id"],
        *(one_line(name) for name in others),
        *(titles.get(name, f"{name}>") for name in own if name != "id"),
    )
    for row in rows.to_pylist():
        texts = (Text(one_line(as_text(row[name]))) for name in ("id", *others))
        table.add_row(*texts, *(f"{row[name]:,}" for name in own if name != "id"))
    return table


def truss_table(rows: Iterable[dict[str, Any]]) -> Table:
    """Rows of `ktruss_groups`."""
    table = grid("component>", "vertices>", "edges>", "density>", "highest k>")
    for row in rows:
        sizes = (f"{row[name]:,}" for name in ("vertices", "edges"))
        table.add_row(str(row["component"]), *sizes, f"{row['density']:.4f}", f"{row['highest_k']:,}")
    return table


def vertex_line(vertex: Vertex, label: str | None = None) -> Text:
    """A vertex in one line: its id, label, λ, degree, triangles and the values of programs."""
    name = as_text(vertex.id) if label is None else f"{as_text(vertex.id)} ({label})"
    added = "".join(f", {column} {value_text(value) or 'none'}" for column, value in vertex.values.items())
    counts = f"degree {vertex.degree:,}"
    if vertex.lam is not None and vertex.triangles is not None:
        measure = "triangles" if vertex.side is None else "butterflies"
        counts = f"lambda {vertex.lam:,}, {counts}, {vertex.triangles:,} {measure}"
    return Text(one_line(f"vertex {name}: {counts}{added}"))


def vertices_table(rows: pa.Table) -> Table:
    """Rows of the table of vertices, or of edges."""
    first = "vertex" if rows.column_names[0] == "id" else one_line(rows.column_names[0])
    table = grid(first, *(f"{one_line(name)}>" for name in rows.column_names[1:]))
    for row in rows.to_pylist():
        table.add_row(*(Text(one_line(value_text(value))) for value in row.values()))
    return table


def top_of_column(summary: ColumnSummary) -> Table:
    """The top rows of a column of a program."""
    of_values = ("edge" if summary.of_edges else "vertex", f"{summary.name}>")
    table = grid(*((summary.name, f"{summary.rows}>") if summary.groups is not None else of_values))
    for id, value in summary.top:
        table.add_row(Text(one_line(row_name(id))), f"{value:,}" if isinstance(value, int) else value_text(value))
    if summary.others and summary.groups is not None:
        table.add_row("none", f"{summary.others:,}")
    return table


def distribution(summary: ColumnSummary) -> Table:
    """The distribution of a column of a program."""
    of_groups = (f"{summary.rows} of a group", "groups")
    what = of_groups if summary.groups is not None else (summary.name, summary.rows)
    table = grid(f"{what[0]}>", f"{what[1]}>", "")
    most = max((own.vertices for own in summary.ranges), default=0)
    for own in summary.ranges:
        table.add_row(range_text(own), f"{own.vertices:,}", Bar(most, 0, own.vertices, width=30))
    if summary.others and summary.groups is None:
        table.add_row("none", f"{summary.others:,}", "")
    return table


def groups_table(groups: Iterable[Group]) -> Table:
    """Groups, one inside the next."""
    groups = list(groups)
    dense = all(group.density is not None for group in groups)
    table = grid("component>", "k>", "vertices>", "edges>", *(["density>"] if dense else []), "")
    for group in groups:
        sizes = (f"{size:,}" for size in (group.k, group.vertices, group.edges))
        kind = "DN-graph" if group.dn_graph else "" if group.parent is not None else "connected component"
        density = [] if group.density is None or not dense else [f"{group.density:.4f}"]
        table.add_row(_component(group.component), *sizes, *density, kind)
    return table


def _names(row: dict[str, Any]) -> list[str]:
    """The label of each member in the row, or its id."""
    labels = row.get("labels") or [None] * len(row["members"])
    return [as_text(id) if label is None else label for id, label in zip(row["members"], labels, strict=True)]


def _all_names(row: dict[str, Any]) -> str:
    names = _names(row)
    return one_line(", ".join([*names, *(["…"] if len(names) < row["vertices"] else [])]))


MOST_CELLS = 24
"""Width of an id in cells of the terminal; a longer id is cut."""
_AND_MORE = ", …"


class IdList:
    """The first ids of a group of `count` vertices, as many as fit into the width; `…` stands for the others."""

    def __init__(self, ids: Sequence[Any], count: int) -> None:
        self._ids = [_clipped(one_line(str(one))) for one in ids]
        self._count = count

    def fitting(self, width: int) -> str:
        """The ids that fit into `width` cells, and always the first one."""
        text = ""
        for number, one in enumerate(self._ids, 1):
            longer = f"{text}, {one}" if text else one
            rest = _AND_MORE if number < self._count else ""
            if text and cell_len(longer + rest) > width:
                return text + _AND_MORE
            text = longer
        return text + (_AND_MORE if len(self._ids) < self._count else "")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(self.fitting(options.max_width), no_wrap=True)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        least = cell_len(self.fitting(0))
        return Measurement(least, max(least, cell_len(self.fitting(10_000))))


def _clipped(text: str) -> str:
    if cell_len(text) <= MOST_CELLS:
        return text
    while cell_len(text) > MOST_CELLS - 1:
        text = text[:-1]
    return f"{text}…"


def _component(number: int | None) -> str:
    return "" if number is None else str(number)
