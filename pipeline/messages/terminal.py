"""Text for a terminal: control characters are escaped, whichever code writes them; tables without lines.

Only rich may move the cursor and colour text. It writes to the unescaped stream, and its texts are escaped when they
are rendered. Names are not parsed as markup.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from .wording import escaped

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table


class EscapedStream:
    """A text stream that escapes control characters. It has no `buffer`, through which libraries would bypass it."""

    def __init__(self, stream: TextIO) -> None:
        self.unescaped = stream

    def write(self, text: str) -> int:
        """Write the text, and return its length before escaping."""
        self.unescaped.write(escaped(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self.unescaped, name)


@contextmanager
def escaping() -> Iterator[None]:
    """Escape what is written to standard output and error within the block."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_escaped_once(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def unescaped(stream: TextIO) -> TextIO:
    """The underlying stream, for output that contains control sequences on purpose."""
    return stream.unescaped if isinstance(stream, EscapedStream) else stream


def echo(text: str, err: bool = False) -> None:
    """Print escaped text on standard output, or on standard error."""
    stream = sys.stderr if err else sys.stdout
    stream.write(f"{escaped(text)}\n")
    stream.flush()


def console_on(stream: TextIO, width: int | None = None) -> Console:
    """A rich console that escapes texts and does not parse markup."""
    from rich.console import Console, ConsoleOptions
    from rich.segment import Segment
    from rich.text import Text

    class Escaping(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=escaped(segment.text))

        def render_str(self, text: str, **how: Any) -> Text:
            return super().render_str(escaped(text), **how)  # before rich measures it

        def on_broken_pipe(self) -> None:
            raise  # rich would exit with code 1

    return Escaping(file=unescaped(stream), width=width, highlight=False, markup=False, emoji=False)


class Binary:
    """Standard output for the bytes of a file: unchanged in a pipe, escaped text on a terminal."""

    def __init__(self) -> None:
        self._to_terminal = sys.stdout.isatty()
        self._buffer: BinaryIO = unescaped(sys.stdout).buffer

    def write(self, content: bytes) -> int:
        if self._to_terminal:
            sys.stdout.write(escaped(content.decode(errors="replace")))
        else:
            self._buffer.write(content)
        return len(content)

    def flush(self) -> None:
        """Raises OSError for a full disk."""
        sys.stdout.flush()
        self._buffer.flush()


def _escaped_once(stream: TextIO) -> TextIO:
    escaping: Any = stream if isinstance(stream, EscapedStream) else EscapedStream(stream)
    return escaping  # type: ignore[no-any-return]


_WIDE = 10_000


def print_whole(console: Console, body: RenderableType) -> None:
    """Print `body` at least as wide as its numbers need. A narrow terminal wraps lines; no digit is cut off."""
    from rich.measure import Measurement

    least, width = Measurement.get(console, console.options.update(width=_WIDE), body).minimum, console.width
    console.width = max(width, least)
    console.print(body)
    console.width = width


def grid(*columns: str) -> Table:
    """A table without lines. A column whose name ends in ">" holds numbers: it is right-aligned and does not wrap."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, show_header=any(columns), header_style="dim")
    for name in columns:
        number = name.endswith(">")
        table.add_column(name.rstrip(">"), justify="right" if number else "left", no_wrap=number)
    return table
