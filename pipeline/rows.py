"""Rows of a result's tables, and those that are asked for by their ids. Fields are columns, in their order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from ..tasks.errors import InputError
from ..tasks.spelling import spelled
from .lookup import look_up
from .result import Result

__all__ = ["Component", "DNGraph", "Group", "Vertex", "find", "path", "rows_of", "whole"]


@dataclass(frozen=True)
class Vertex:
    """A vertex of a result."""

    id: int | str
    """A UUID is text."""
    degree: int
    triangles: int
    lam: int
    """The largest λ of its edges."""
    component: int | None
    """The innermost group that holds it; None if it has no edges."""


@dataclass(frozen=True)
class Component:
    """A component of the hierarchy: connected edges of λ ≥ k that no other edge of λ ≥ k touches."""

    component: int
    """Its id; that of the DN-graph too, if it is one."""
    k: int
    parent: int | None
    """The next larger group; None for a connected component of the graph."""
    vertices: int
    edges: int


@dataclass(frozen=True)
class Group(Component):
    """A component of which it is known whether it is a DN-graph."""

    dn_graph: bool

    @property
    def density(self) -> float:
        """Edges of the group among all pairs of its vertices."""
        return 2 * self.edges / (self.vertices * (self.vertices - 1))


@dataclass(frozen=True)
class DNGraph:
    """A component with k > 0 that holds no other."""

    id: int
    lam: int
    vertices: int
    edges: int
    density: float
    triangles: int
    """All three edges of which are in it."""
    parent: int | None
    track: int | None = None
    """The number that it keeps over the nights of a series; None in results of earlier releases."""


Row = TypeVar("Row", Vertex, Component, DNGraph)
_TABLES: dict[type, str] = {Vertex: "vertices", Component: "hierarchy", DNGraph: "dn_graphs"}


def rows_of(kind: type[Row], table: pa.Table) -> list[Row]:
    """All rows of some of such a table."""
    return [kind(*row.values()) for row in table.to_pylist()]


def find(result: Result, kind: type[Row], id: int | str | bytes) -> Row | None:
    """The row of that id. Raises UsageError if the result has no such table, InputError for damage."""
    row = look_up(result, _TABLES[kind]).row(id)
    return None if row is None else kind(*map(spelled, row.values()))


def path(result: Result, component: int | None) -> Iterator[Component]:
    """A component and those that hold it, innermost first; none for None. Raises as `find`, and if it is not there."""
    inner: Component | None = None
    while component is not None:
        found = find(result, Component, component)
        if found is None:
            raise InputError(f"the result is damaged: {result.place}: there is no component {component}")
        if inner is not None and found.k >= inner.k:
            raise InputError(
                f"the result is damaged: component {component} cannot hold component {inner.component}: {result.place}"
            )
        yield found
        inner, component = found, found.parent


def whole(text: str) -> int:
    """An id in plain digits, of at most 64 bits. Raises ValueError."""
    if not re.fullmatch(r"-?[0-9]{1,19}", text) or not -(2**63) <= int(text) < 2**63:
        raise ValueError(f"{text[:80]!r} is not a whole number of 64 bits")
    return int(text)
