"""An HTML page as plain Python: what it shows and what it asks a browser to do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser

EMPTY = {"meta", "link", "img", "br"}


@dataclass
class Shown:
    """What was found on a page."""

    text: str = ""
    """All text but scripts and styles."""
    headings: list[tuple[str, str]] = field(default_factory=list)
    """Element and text, in order."""
    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    """By caption: rows of cells, the header first; a list in a cell is text with commas."""
    scripts: list[tuple[str | None, str]] = field(default_factory=list)
    """Type and content."""
    elements: Counter[str] = field(default_factory=Counter)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    """Element, name, value."""

    def attribute(self, name: str) -> list[str]:
        """All values of an attribute."""
        return [value for _, found, value in self.attributes if found == name]


def read_page(html: str) -> Shown:
    """Parse a page; fails unless every element that is opened is closed, in order."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    assert not parser.open, parser.open
    return parser.shown


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.shown = Shown()
        self.open: list[str] = []
        self._caption, self._kind = "", ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shown.elements[tag] += 1
        self.shown.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in EMPTY:
            self.open.append(tag)
        match tag:
            case "script":
                self.shown.scripts.append((dict(attrs).get("type"), ""))
            case "caption":
                self._caption = ""
            case "tr":
                self.shown.tables.setdefault(self._caption, []).append([])
            case "td" | "th":
                self.shown.tables[self._caption][-1].append("")
            case "li" if "td" in self.open and self.shown.tables[self._caption][-1][-1]:
                self.shown.tables[self._caption][-1][-1] += ", "
            case "h1" | "h2" | "h3" | "h4":
                self.shown.headings.append((tag, ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        match inside:
            case "script":
                kind, content = self.shown.scripts[-1]
                self.shown.scripts[-1] = kind, content + data
            case "style":
                return
            case "caption":
                self._caption += data
            case "td" | "th":
                self.shown.tables[self._caption][-1][-1] += data
            case "li" if "td" in self.open:
                self.shown.tables[self._caption][-1][-1] += data
            case "h1" | "h2" | "h3" | "h4":
                self.shown.headings[-1] = inside, self.shown.headings[-1][1] + data
        if inside != "script":
            self.shown.text += data
