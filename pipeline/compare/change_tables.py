"""Changes between two results as tables for a terminal."""

from __future__ import annotations

from dataclasses import asdict

from rich.table import Table
from rich.text import Text

from ..messages.terminal import grid
from ..messages.wording import one_line
from ..queries.attributes import as_text
from ..queries.group_tables import value_text
from .diff import Diff
from .vertices import ColumnChanges, VertexChanges


def changes_table(found: Diff) -> Table:
    """Counts of changes, a row for each kind of change. The table fits a terminal, whatever the numbers."""
    given = {"edges": found.edges, "DN-graphs": found.dn_graphs, "vertices": found.vertices}
    sides = {title: changes for title, changes in given.items() if changes is not None}
    table = grid("", *(f"{title}>" for title in sides))
    for name in ("old", "new", "unchanged", "appeared", "vanished", "rose", "fell", "changed", "reshaped"):
        counts = [getattr(changes, name, None) for changes in sides.values()]
        if any(count is not None for count in counts):
            table.add_row(name, *("" if count is None else f"{count:,}" for count in counts))
    for name, count in ({} if found.groups is None else asdict(found.groups)).items():
        table.add_row(name, *(f"{count:,}" if title == "DN-graphs" else "" for title in sides))
    return table


def columns_table(found: VertexChanges) -> Table:
    """The changes of each column of programs. A column without a number has no rows that rose or fell."""
    names = ("changed", "rose", "fell", "gained", "lost")
    table = grid("column", *(f"{name}>" for name in names), "largest change")
    for column in found.columns:
        counts = (getattr(column, name) for name in names)
        table.add_row(
            Text(one_line(column.name)),
            *("" if count is None else f"{count:,}" for count in counts),
            Text(one_line(change_text(column))),
        )
    return table


def change_text(column: ColumnChanges) -> str:
    """The largest change of a column, or the first one of a column without numbers; empty if there is none."""
    if not column.largest:
        return ""
    first = column.largest[0]
    return f"vertex {as_text(first.id)}: {value_text(first.old)} → {value_text(first.new)}"
