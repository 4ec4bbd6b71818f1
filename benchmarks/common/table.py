"""Markdown tables, and numbers short enough for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with its first column to the left and numbers to the right, padded to be read as text too."""
    lines = [list(head), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * width if column == 0 else "-" * (width - 1) + ":" for column, width in enumerate(widths)]
    return "\n".join(_line(line, widths) for line in (lines[0], rule, *lines[1:]))


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(texts, widths, strict=True)
    padded = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)]
    return "| " + " | ".join(padded) + " |"


def seconds(value: float) -> str:
    """Seconds, with three decimals below one, six below a millisecond, and two above."""
    if 0 < value < 1e-3:
        return f"{value:.6f}"
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"


def span(values: Sequence[float]) -> str:
    """Least and greatest of some seconds."""
    return f"{seconds(min(values))}-{seconds(max(values))}"


def millions(value: float) -> str:
    """A count in millions, to three digits or so."""
    return f"{value / 1e6:.3g}" if value < 1e8 else f"{value / 1e6:.0f}"


def mebibytes(value: float) -> str:
    """Bytes as MiB, whole from ten on."""
    return f"{value / 2**20:.1f}" if abs(value) < 10 * 2**20 else f"{value / 2**20:.0f}"
