"""Tables without lines, for a terminal."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table

__all__ = ["grid", "print_whole"]

_WIDE = 10_000


def print_whole(console: Console, body: RenderableType) -> None:
    """Print at least as wide as its numbers need: a terminal breaks lines where it must, and no digit is cut off."""
    least, width = Measurement.get(console, console.options.update(width=_WIDE), body).minimum, console.width
    console.width = max(width, least)
    console.print(body)
    console.width = width


def grid(*columns: str) -> Table:
    """A table without lines; columns whose names end in ">" are of numbers: flush right, and in one line."""
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, show_header=any(columns), header_style="dim")
    for name in columns:
        number = name.endswith(">")
        table.add_column(name.rstrip(">"), justify="right" if number else "left", no_wrap=number)
    return table
