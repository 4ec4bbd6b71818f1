"""The picture of figures by release, from `benchmarks/history.csv`: each value over the first one of its measure."""

from __future__ import annotations

import csv
from math import log2
from pathlib import Path

from drawing import Spot, document, line, text

HISTORY = Path(__file__).parents[2] / "benchmarks" / "history.csv"
"""Made by `python -m benchmarks record`."""
SHOWN = ("both", "run", "first run")
"""Last parts of the measures that are drawn. All are seconds."""
COLOURS = ("#8b949e", "#3b82c4", "#2a9d6f", "#d9780f", "#a855b5")
"""One for each release, repeated."""
LEFT, RIGHT, TOP, STEP = 300, 780, 74, 24
LEAST, MOST = -2, 1
"""Powers of two of the part of the first value."""


def drawn() -> str:
    """The picture: a row for each measure of a machine with values of several releases, a dot for each release."""
    rows = _rows()
    releases = list(dict.fromkeys(release for values in rows.values() for release in values))
    bottom = TOP + STEP * len(rows)
    parts = [text((24, 28), "Seconds of each release over those of the first, with the last seconds")]
    parts += _legend(releases)
    for power in range(LEAST, MOST + 1):
        x = _across(2.0**power)
        parts.append(line((x, TOP - 10), (x, bottom - 8), "#8b949e55", 1))
        parts.append(text((x, bottom + 10), f"{2.0**power:g}", "quiet", "middle", 12))
    for place, ((measure, _), values) in enumerate(rows.items()):
        y = TOP + STEP * place
        seconds = list(values.values())
        spots: list[Spot] = [(_across(value / seconds[0]), y) for value in seconds]
        parts.append(text((LEFT - 14, y + 4), measure, "", "end", 12))
        parts.append(line(spots[0], spots[-1], "#8b949e", 1.5))
        for (x, _), release in zip(spots, values, strict=True):
            colour = COLOURS[releases.index(release) % len(COLOURS)]
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>')
        parts.append(text((RIGHT + 16, y + 4), f"{seconds[-1]:.3g} s", "quiet", "start", 12))
    return document(880, bottom + 26, "Seconds of each release over those of the first", parts)


def _rows() -> dict[tuple[str, str], dict[str, float]]:
    """Measure and machine → release → seconds, for those with several releases."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    with HISTORY.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["measure"].rpartition("/")[2] in SHOWN and row["unit"] == "s":
                found.setdefault((row["measure"], row["machine"]), {})[row["release"]] = float(row["value"])
    return {key: values for key, values in found.items() if len(values) > 1}


def _across(part: float) -> float:
    return LEFT + (RIGHT - LEFT) * (min(max(log2(part), LEAST), MOST) - LEAST) / (MOST - LEAST)


def _legend(releases: list[str]) -> list[str]:
    parts, x = [], float(LEFT)
    for place, release in enumerate(releases):
        parts.append(f'<circle cx="{x:.1f}" cy="46" r="5" fill="{COLOURS[place % len(COLOURS)]}"/>')
        parts.append(text((x + 12, 50), release, "quiet", "start", 12))
        x += 40 + 7.5 * len(release)
    return parts
