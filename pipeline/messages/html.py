"""HTML of notebook output: styles, escaped text, tables, and the fields and values of a record of a manifest.

Colours are transparent shades of the surrounding text's colour, so they suit light and dark pages. A viewer that
removes styles, such as GitHub, shows plain tables.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pyarrow as pa
from pydantic import BaseModel

from ...tasks.ids.display import display_column
from .wording import one_line

MOST_CHARACTERS = 60
"""Longest text of a value."""
_STYLE = """
.edgemill { font-size: 13px; line-height: 1.45; max-width: 960px; }
.edgemill p { margin: 0 0 8px; }
.edgemill .faint { opacity: .7; }
.edgemill .parts { display: flex; flex-wrap: wrap; gap: 12px 32px; align-items: flex-start; }
.edgemill table.edgemill-table {
  border-collapse: collapse; margin: 0 0 8px; font-size: inherit; background: transparent; }
.edgemill table.edgemill-table tr { background: transparent; }
.edgemill table.edgemill-table th, .edgemill table.edgemill-table td {
  padding: 2px 12px 2px 0; border: 0; border-bottom: 1px solid rgba(128, 128, 128, .3); background: transparent;
  text-align: left; vertical-align: top; font-weight: normal; color: inherit; }
.edgemill table.edgemill-table th { opacity: .7; }
.edgemill table.edgemill-table .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.edgemill svg { display: block; max-width: 100%; height: auto; color: inherit; }
.edgemill svg text { fill: currentColor; font-size: 11px; }
.edgemill svg rect { fill: #4a86c8; }
.edgemill svg line { stroke: currentColor; opacity: .4; }
.edgemill summary { cursor: pointer; }
"""


def framed(*parts: str) -> str:
    """The HTML of a cell's output, from the HTML of its parts."""
    return f'<div class="edgemill"><style>{_STYLE}</style>{"".join(parts)}</div>'


def shown(value: object, most: int = MOST_CHARACTERS) -> str:
    """A value as escaped text in one line, cut to `most` characters."""
    text = one_line(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))
    return escape(text if len(text) <= most else f"{text[: most - 1]}…")


def many(number: int, what: str) -> str:
    """A number with its noun: `1 edge`, `22 edges`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def table(head: list[str], rows: list[list[str]], numbers: int | Sequence[bool]) -> str:
    """A table of cells that are HTML; the first `numbers` columns are numbers, or those that it marks."""
    marked = (
        [column < numbers for column in range(max(map(len, [head, *rows]), default=0))]
        if isinstance(numbers, int)
        else numbers
    )

    def line(cells: list[str], tag: str) -> str:
        kinds = [' class="number"' if marked[column] else "" for column in range(len(cells))]
        return (
            "<tr>" + "".join(f"<{tag}{kind}>{cell}</{tag}>" for kind, cell in zip(kinds, cells, strict=True)) + "</tr>"
        )

    top = f"<thead>{line(head, 'th')}</thead>" if head else ""
    return f'<table class="edgemill-table">{top}<tbody>{"".join(line(row, "td") for row in rows)}</tbody></table>'


def rows_html(rows: pa.Table, most: int) -> str:
    """The first `most` rows of an Arrow table, and `…` if it has more."""
    numeric = [pa.types.is_integer(field.type) or pa.types.is_floating(field.type) for field in rows.schema]
    columns = [rows.column(at).slice(0, most) for at in range(rows.num_columns)]
    texts = [
        [_cell(value) for part in column.chunks for value in display_column(part).to_pylist()] for column in columns
    ]
    lines = [list(line) for line in zip(*texts, strict=True)]
    if rows.num_rows > most:
        lines.append(["…"] * rows.num_columns)
    return table([shown(name) for name in rows.column_names], lines, numeric)


def _cell(value: object) -> str:
    if value is None:
        return '<span class="faint">null</span>'
    return shown(f"{value:.6g}" if isinstance(value, float) else value)


MOST_ROWS = 20
"""Rows of a list, at most."""


def record_html(record: BaseModel) -> str:
    """HTML of the record."""
    return framed(f"<p><b>{type(record).__name__}</b></p>", _fields(dict(record)))


def _fields(fields: Mapping[str, Any]) -> str:
    return table([], [[shown(name), _value(value)] for name, value in fields.items()], 0)


def _value(value: Any) -> str:
    if isinstance(value, BaseModel):
        value = dict(value)
    if isinstance(value, Mapping):
        return _folded(many(len(value), "field"), _fields(value)) if value else "none"
    if isinstance(value, Sequence) and not isinstance(value, str):
        if not value:
            return "none"
        rows = [[shown(at), _value(one)] for at, one in enumerate(value[:MOST_ROWS])]
        more = f"<p>and {len(value) - MOST_ROWS:,} more</p>" if len(value) > MOST_ROWS else ""
        return _folded(many(len(value), "row"), table([], rows, 1) + more)
    if hasattr(value, "__dataclass_fields__"):
        return _folded(
            type(value).__name__, _fields({name: getattr(value, name) for name in value.__dataclass_fields__})
        )
    return shown(value, 200)


def _folded(summary: str, inside: str) -> str:
    return f"<details><summary>{summary}</summary>{inside}</details>"


def shows_html() -> bool:
    """Whether this process is the kernel of a notebook (Jupyter, VS Code, Colab, Kaggle) and not of a terminal.

    IPython is not imported here: in a notebook it is already imported.
    """
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).__mro__)
