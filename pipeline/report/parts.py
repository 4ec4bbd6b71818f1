"""What a page is made of, and how figures are written on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dask.utils import format_bytes

from ...tasks.spelling import spelled
from ..escaping import one_line

__all__ = [
    "Chart",
    "Fact",
    "Names",
    "Section",
    "Table",
    "clipped",
    "counted",
    "duration",
    "number",
    "share",
    "size",
    "span",
]

MOST_CHARACTERS = 200
"""Of one value on the page: an id or a path may be of any length."""


@dataclass(frozen=True)
class Fact:
    """One figure that is seen at a glance."""

    name: str
    value: str
    detail: str = ""


@dataclass(frozen=True)
class Chart:
    """A figure with its title, and in words what it shows."""

    title: str
    description: str
    item: Mapping[str, Any]
    """As `Bokeh.embed.embed_item` of BokehJS takes it."""
    keys: Sequence[tuple[str, str]] = ()
    """Names of series and their colours, where there are several."""


@dataclass(frozen=True)
class Names:
    """Some vertices, in one cell of a table."""

    shown: Sequence[tuple[str, str]]
    """What is read for each, and its id if that is something else, or an empty text."""
    left: int
    """How many more there are."""


@dataclass(frozen=True)
class Table:
    """Rows under a caption; columns whose name ends in ">" are set flush right."""

    caption: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str | Names, ...]]
    note: str = ""
    folded: bool = False
    """Whether it only repeats the figures of a chart, and is folded away under its caption."""

    @property
    def columns(self) -> list[tuple[str, bool]]:
        """Names, and whether the column is one of numbers."""
        return [(name.removesuffix(">"), name.endswith(">")) for name in self.header]


@dataclass(frozen=True)
class Section:
    """A part of the page under a heading: sentences, then charts, then the tables that carry their figures."""

    key: str
    """The anchor: letters alone."""
    title: str
    text: list[str]
    charts: list[Chart]
    tables: list[Table]
    beside: int = 0
    """Tables, the first of them, that are narrow enough to stand beside the charts and each other."""
    folded: bool = False
    """Whether it is about the run and not about the graph, and is folded away under its title."""
    commands: Sequence[tuple[str, str]] = ()
    """What a reader may want to do next, and the command that does it."""


def number(value: int) -> str:
    """With commas between thousands."""
    return f"{value:,}"


def span(first: int, last: int) -> str:
    """From one number to another, or the one that both are."""
    return number(first) if first == last else f"{number(first)} to {number(last)}"


def counted(count: int, one: str, more: str = "") -> str:
    """A number of something, whose plural is `more`, or has an s."""
    return f"{number(count)} {one if count == 1 else more or f'{one}s'}"


def share(part: int, whole: int) -> str:
    """A part in per cent of the whole; nothing of nothing is an empty text."""
    return f"{part / whole:.1%}" if whole else ""


def size(count: int) -> str:
    """Bytes, in the unit that suits."""
    return str(format_bytes(count))


def duration(seconds: float) -> str:
    """Seconds, or minutes and hours where there are many."""
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def clipped(value: object, most: int = MOST_CHARACTERS) -> str:
    """A value, or an id, as text without controls, cut where it is too long for a page."""
    text = one_line(str(spelled(value)))
    return text if len(text) <= most else f"{text[:most]}…"
