"""Panels with logarithmic axes, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

Spots = Sequence[tuple[float, float]]


@dataclass
class Panel:
    """One plot; what is outside its axes is not to be drawn."""

    title: str
    across: tuple[float, float]
    """Least and most of the axis to the right."""
    up: tuple[float, float]
    """The same of the axis upwards."""
    size: tuple[int, int]
    """Width and height within the axes, in pixels."""
    marked_across: Sequence[float]
    """Values of the axis to the right that have a line and a number."""
    marked_up: Sequence[float]
    """The same of the axis upwards."""
    parts: list[str] = field(default_factory=list)

    def x(self, value: float) -> float:
        """Pixels from the left."""
        return self.size[0] * math.log(value / self.across[0]) / math.log(self.across[1] / self.across[0])

    def y(self, value: float) -> float:
        """Pixels from the top."""
        return self.size[1] * (1 - math.log(value / self.up[0]) / math.log(self.up[1] / self.up[0]))

    def line(self, spots: Spots, colour: str, dashed: bool = False, width: float = 1.6) -> None:
        """Through all spots, in order."""
        style = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<polyline points="{self._path(spots)}" fill="none" stroke="{colour}" stroke-width="{width}"{style}/>'
        )

    def between(self, least: Spots, most: Spots, colour: str) -> None:
        """What lies between two lines."""
        spots = [*least, *reversed(most)]
        self.parts.append(f'<polygon points="{self._path(spots)}" fill="{colour}" fill-opacity="0.25"/>')

    def mark(self, spot: tuple[float, float], mark: str, colour: str) -> None:
        """A character in the middle of a spot."""
        x, y = self.x(spot[0]), self.y(spot[1])
        self.parts.append(
            f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" fill="{colour}" font-size="11">{mark}</text>'
        )

    def upright(self, value: float, text: str) -> None:
        """A dashed line at a value of the axis to the right, with its name."""
        x = self.x(value)
        self.parts.append(f'<path d="M{x:.1f} 0V{self.size[1]}" stroke="#000" stroke-dasharray="3 3"/>')
        self.parts.append(f'<text x="{x + 4:.1f}" y="12" font-size="11">{text}</text>')

    def drawn(self, left: float, top: float, names: tuple[str, str] = ("", "")) -> str:
        """With axes, their names and the title, `left` and `top` pixels into the picture."""
        width, height = self.size
        axes = [
            f'<text x="0" y="-8" font-weight="bold">{self.title}</text>',
            f'<text x="{width}" y="{height + 32}" text-anchor="end" fill="#555">{names[0]}</text>',
            f'<text x="{width}" y="-8" text-anchor="end" fill="#555">{names[1]}</text>',
        ]
        for value in self.marked_up:
            y = self.y(value)
            axes.append(f'<path d="M0 {y:.1f}H{width}" stroke="#eee"/>')
            axes.append(f'<text x="-6" y="{y + 4:.1f}" text-anchor="end" fill="#555">{value:,.6g}</text>')
        for value in self.marked_across:
            x = self.x(value)
            axes.append(f'<path d="M{x:.1f} 0V{height}" stroke="#eee"/>')
            axes.append(f'<text x="{x:.1f}" y="{height + 16}" text-anchor="middle" fill="#555">{value:,.6g}</text>')
        axes.append(f'<rect width="{width}" height="{height}" fill="none" stroke="#bbb"/>')
        return f'<g transform="translate({left:.0f},{top:.0f})">{"".join([*axes, *self.parts])}</g>'

    def _path(self, spots: Spots) -> str:
        return " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in spots)


def powers(base: float, least: float, most: float) -> list[float]:
    """Those that lie between two numbers, or are one of them."""
    first, last = math.ceil(math.log(least, base) - 1e-9), math.floor(math.log(most, base) + 1e-9)
    return [base**power for power in range(first, last + 1)]


def legend(entries: Sequence[tuple[str, str, str]], left: float, top: float, step: float) -> str:
    """Marks with their names and colours, beside each other."""
    return "".join(
        f'<text x="{left + at * step:.0f}" y="{top:.0f}" fill="{colour}">{mark} {name}</text>'
        for at, (mark, name, colour) in enumerate(entries)
    )


def document(width: float, height: float, parts: Sequence[str]) -> str:
    """The file."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}"'
        ' font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>', *parts, "</svg>"]) + "\n"
