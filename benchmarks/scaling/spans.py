"""Ranges of numbers, and numbers short enough for tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A range of non-negative numbers."""

    least: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Span:
        """From the least to the greatest of some numbers."""
        found = list(values)
        return cls(min(found), max(found))

    def __add__(self, other: Span) -> Span:
        return Span(self.least + other.least, self.most + other.most)

    def __mul__(self, factor: float | Span) -> Span:
        if isinstance(factor, Span):
            return Span(self.least * factor.least, self.most * factor.most)
        return Span(self.least * factor, self.most * factor)

    def __str__(self) -> str:
        least, most = short(self.least), short(self.most)
        return least if least == most else f"{least} - {most}"


def sum_of(spans: Sequence[Span]) -> Span:
    """The range of the sum of numbers in these ranges."""
    return sum(spans, Span(0, 0))


def exactly(value: float) -> Span:
    """The range of one number."""
    return Span(value, value)


def short(value: float) -> str:
    """A number with one decimal below ten, and none above."""
    return f"{value:.1f}" if round(value, 1) < 10 else f"{value:,.0f}"


def seconds_of(value: float, digits: int = 3) -> str:
    """A time with so many digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.{digits}g} {unit}"
    return f"{value / 1e-9:.{digits}g} ns" if value else "0"
