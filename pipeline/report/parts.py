"""The parts of a page, and the formats of its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...tasks.ids.display import display_id
from ...tasks.storage.passwords import without_passwords
from ..messages.wording import format_bytes, one_line, shell_word

MOST_CHARACTERS = 200
"""Longest value on the page, such as an id or a path."""


@dataclass(frozen=True)
class Fact:
    """One number at the top of the page."""

    name: str
    value: str
    detail: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart with its title and a description in words."""

    title: str
    description: str
    item: Mapping[str, Any]
    """The argument of `Bokeh.embed.embed_item` in BokehJS."""
    keys: Sequence[tuple[str, str]] = ()
    """Names of the series and their colours; empty for a single series."""


@dataclass(frozen=True)
class Names:
    """Some vertices in one cell of a table."""

    shown: Sequence[tuple[str, str]]
    """For each vertex its label and id, or its id and an empty text."""
    left: int
    """The number of vertices that are not shown."""


@dataclass(frozen=True)
class Table:
    """Rows under a caption. Columns whose name ends in ">" hold numbers and are right-aligned."""

    caption: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str | Names, ...]]
    note: str = ""
    folded: bool = False
    """Whether the table only repeats the numbers of a chart; it is then closed."""

    @property
    def columns(self) -> list[tuple[str, bool]]:
        """Name of each column, and whether it holds numbers."""
        return [(name.removesuffix(">"), name.endswith(">")) for name in self.header]


@dataclass(frozen=True)
class Section:
    """A part of the page under a heading: sentences, then charts, then tables with the numbers of the charts."""

    key: str
    """The anchor; letters only."""
    title: str
    text: list[str]
    charts: list[Chart]
    tables: list[Table]
    beside: int = 0
    """Number of leading tables that are narrow enough to stand beside the charts and each other."""
    folded: bool = False
    """Whether the section describes the run rather than the graph; it is then closed."""
    commands: Sequence[tuple[str, str]] = ()
    """Descriptions of next steps, each with its command."""


def number(value: int) -> str:
    """A number with commas between thousands."""
    return f"{value:,}"


def span(first: int, last: int) -> str:
    """A range of numbers, such as "3 to 7", or one number if both are equal."""
    return number(first) if first == last else f"{number(first)} to {number(last)}"


def counted(count: int, one: str, more: str = "") -> str:
    """A number with its noun. `more` is the plural; without it, `one` with an s."""
    return f"{number(count)} {one if count == 1 else more or f'{one}s'}"


def share(part: int, whole: int) -> str:
    """A part in per cent of the whole; empty if the whole is 0."""
    return f"{part / whole:.1%}" if whole else ""


def size(count: int) -> str:
    """A number of bytes in B, kiB, MiB, GiB, TiB or PiB."""
    return format_bytes(count)


def duration(seconds: float) -> str:
    """Seconds, from one minute on minutes, from one hour on hours."""
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def clipped(value: object, most: int = MOST_CHARACTERS) -> str:
    """A value or an id as one line of text without control characters, cut after `most` characters."""
    text = one_line(str(display_id(value)))
    return text if len(text) <= most else f"{text[:most]}…"


def argument(location: str) -> str:
    """The location of a result as an argument of a command."""
    return shell_word(without_passwords(location))
