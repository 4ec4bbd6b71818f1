"""Panels with logarithmic axes, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

Spots = Sequence[tuple[float, float]]


@dataclass
class Panel:
    """One plot. What is outside its axes must not be drawn."""

    title: str
    across: tuple[float, float]
    """Least and most of the axis to the right."""
    up: tuple[float, float]
    """Least and most of the axis upwards."""
    names: tuple[str, str]
    """What the axes show."""
    size: tuple[int, int] = (400, 320)
    """Width and height within the axes, in pixels."""
    parts: list[str] = field(default_factory=list)

    def x(self, value: float) -> float:
        """Pixels from the left."""
        return self.size[0] * _share(value, self.across)

    def y(self, value: float) -> float:
        """Pixels from the top."""
        return self.size[1] * (1 - _share(value, self.up))

    def line(self, spots: Spots, colour: str, width: float = 1.6) -> None:
        """A line through all spots, in order."""
        self.parts.append(
            f'<polyline points="{self._path(spots)}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
        )

    def between(self, least: Spots, most: Spots, colour: str) -> None:
        """The area between two lines."""
        path = self._path([*least, *reversed(most)])
        self.parts.append(f'<polygon points="{path}" fill="{colour}" fill-opacity="0.25"/>')

    def mark(self, spot: tuple[float, float], mark: str, colour: str) -> None:
        """A character in the middle of a spot."""
        x, y = self.x(spot[0]), self.y(spot[1]) + 4
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="{colour}" font-size="11">{mark}</text>'
        )

    def drawn(self, left: float, top: float) -> str:
        """The panel with its axes, their names and the title."""
        width, height = self.size
        axes = [
            f'<text x="0" y="-24" font-weight="bold">{self.title}</text>',
            f'<text x="{width}" y="{height + 34}" text-anchor="end" fill="#555">{self.names[0]}</text>',
            f'<text x="0" y="-7" fill="#555">{self.names[1]}</text>',
        ]
        for value in powers(*self.up):
            y = self.y(value)
            axes.append(f'<path d="M0 {y:.1f}H{width}" stroke="#eee"/>')
            axes.append(f'<text x="-6" y="{y + 4:.1f}" text-anchor="end" fill="#555">{value:,.6g}</text>')
        for value in powers(*self.across):
            x = self.x(value)
            axes.append(f'<path d="M{x:.1f} 0V{height}" stroke="#eee"/>')
            axes.append(f'<text x="{x:.1f}" y="{height + 16}" text-anchor="middle" fill="#555">{value:,.6g}</text>')
        axes.append(f'<rect width="{width}" height="{height}" fill="none" stroke="#bbb"/>')
        return f'<g transform="translate({left:.0f},{top:.0f})">{"".join([*axes, *self.parts])}</g>'

    def _path(self, spots: Spots) -> str:
        return " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in spots)


def _share(value: float, ends: tuple[float, float]) -> float:
    return math.log(value / ends[0]) / math.log(ends[1] / ends[0])


def powers(least: float, most: float) -> list[float]:
    """The powers of ten from one number to another."""
    first, last = math.ceil(math.log10(least) - 1e-9), math.floor(math.log10(most) + 1e-9)
    return [10.0**power for power in range(first, last + 1)]


def legend(entries: Sequence[tuple[str, str, str]], left: float, top: float, step: float) -> str:
    """Marks with their names and colours, beside each other."""
    return "".join(
        f'<text x="{left + at * step:.0f}" y="{top:.0f}" fill="{colour}">{mark} {name}</text>'
        for at, (mark, name, colour) in enumerate(entries)
    )


def document(width: float, height: float, about: str, parts: Sequence[str]) -> str:
    """The file."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img"'
        f' font-family="sans-serif" font-size="12"><title>{about}</title>'
    )
    return "\n".join([head, f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>', *parts, "</svg>"]) + "\n"
