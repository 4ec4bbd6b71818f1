"""Tables without lines, for a terminal."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table

_WIDE = 10_000


def print_whole(console: Console, body: RenderableType) -> None:
    """Print `body` at least as wide as its numbers need. A narrow terminal wraps lines; no digit is cut off."""
    least, width = Measurement.get(console, console.options.update(width=_WIDE), body).minimum, console.width
    console.width = max(width, least)
    console.print(body)
    console.width = width


def grid(*columns: str) -> Table:
    """A table without lines. A column whose name ends in ">" holds numbers: it is right-aligned and does not wrap."""
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, show_header=any(columns), header_style="dim")
    for name in columns:
        number = name.endswith(">")
        table.add_column(name.rstrip(">"), justify="right" if number else "left", no_wrap=number)
    return table
