"""Ids of vertices in a line of a terminal: as many as fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

from ...messages.wording import one_line

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
