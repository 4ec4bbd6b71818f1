"""What the model is fitted to: docs/scaling/measured.csv and docs/scaling/shards.csv."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Point:
    """Something measured. Numbers that do not matter to it are 0."""

    what: str
    graph: str
    edges: float
    local: float
    """Edges with triangles."""
    triangles: float
    rows: float
    rounds: float
    """Of one partition."""
    devices: float
    """GPUs, each with a shard."""
    count: float
    """Tasks, packets, exchanges, bytes, or edges of the largest round."""
    seconds: float
    source: str
    """The page and its section, or the command."""


@dataclass(frozen=True)
class ShardCounts:
    """Counts of one graph in so many shards. What was not counted is 0."""

    graph: str
    shards: int
    vertices: int
    corners: int
    """Vertices in triangles."""
    all_edges: int
    edges: int
    """Edges with triangles. Shards store no others."""
    triangles: int
    support_max: int
    lambda_max: int
    stored: float
    """Entries of the largest shard over all entries."""
    rows: int
    """Pairs of a vertex and a shard that stores a neighbour of it."""
    both: int
    """Pairs of an edge and a shard in which both ends have a row."""
    late: int
    """Those in which both rows have an edge of the same λ or more: rows that are left when the edge is removed."""
    entries_uneven: float
    """Entries read by the busiest shard over the mean."""
    triangles_uneven: float
    exchanges: int
    rounds: int
    levels: int
    alarms: float
    """For each edge, as are reports and grants."""
    reports: float
    grants: float


def read_points(path: Path) -> list[Point]:
    """The lines of measured.csv."""
    return _read(path, Point)


def read_counts(path: Path) -> list[ShardCounts]:
    """The lines of shards.csv."""
    return _read(path, ShardCounts)


def _read(path: Path, kind: Callable[..., T]) -> list[T]:
    readers: dict[str, Callable[[str], object]] = {
        "str": str,
        "int": lambda text: int(text or 0),
        "float": lambda text: float(text or 0),
    }
    readings = {field.name: readers[str(field.type)] for field in fields(kind)}  # type: ignore[arg-type]
    with path.open(newline="", encoding="utf-8") as file:
        return [kind(**{name: readings[name](text) for name, text in line.items()}) for line in csv.DictReader(file)]
