"""Rows of a result's tables as value types, and their look-up by id. Fields are the columns, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from ...tasks.errors import InputError
from ...tasks.ids.display import display_id
from .lookup import sorted_table
from .result import Result


@dataclass(frozen=True)
class Vertex:
    """A vertex of a result."""

    id: int | str
    """A UUID is text."""
    degree: int
    triangles: int | None
    """None in a result without λ."""
    lam: int | None
    """The largest λ of its edges; None in a result without λ."""
    component: int | None
    """The innermost group that contains it; None for a vertex without edges, and in a result without λ."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The columns of vertex programs, by name."""


@dataclass(frozen=True)
class Component:
    """A component of the hierarchy: a connected component of the edges with λ ≥ k."""

    component: int
    """Its id. A DN-graph has the same id."""
    k: int
    parent: int | None
    """The next larger group; None for a connected component of the graph."""
    vertices: int
    edges: int


@dataclass(frozen=True)
class Group(Component):
    """A component, and whether it is a DN-graph."""

    dn_graph: bool

    @property
    def density(self) -> float:
        """The share of the pairs of its vertices that are edges."""
        return 2 * self.edges / (self.vertices * (self.vertices - 1))


@dataclass(frozen=True)
class DNGraph:
    """A component with k > 0 that contains no other component."""

    id: int
    lam: int
    vertices: int
    edges: int
    density: float
    triangles: int
    """Triangles with all three edges in it."""
    parent: int | None
    track: int | None = None
    """The number that it keeps from night to night in a series; None in results of earlier releases."""


Row = TypeVar("Row", Vertex, Component, DNGraph)
_TABLES: dict[type, str] = {Vertex: "vertices", Component: "hierarchy", DNGraph: "dn_graphs"}


def rows_of(kind: type[Row], table: pa.Table) -> list[Row]:
    """The rows of a table as values of the type `kind`."""
    return [kind(*row.values()) for row in table.to_pylist()]


def find(result: Result, kind: type[Row], id: int | str | bytes) -> Row | None:
    """The row with the id `id`, or None. Raises UsageError if the result has no such table, InputError for damage."""
    row = sorted_table(result, _TABLES[kind]).row(id)
    if row is None:
        return None
    values = {name: display_id(value) for name, value in row.items()}
    if kind is not Vertex:
        return kind(*values.values())
    added = {name: values[name] for program in result.manifest.programs for name in program.columns}
    return kind(
        values["id"], values["degree"], values.get("triangles"), values.get("lambda"), values.get("component"), added
    )


def path_to_root(result: Result, component: int | None) -> Iterator[Component]:
    """A component and its ancestors, innermost first; empty for None.

    Raises as `find` does, and InputError if a component is missing or has no smaller k than its child.
    """
    inner: Component | None = None
    while component is not None:
        found = find(result, Component, component)
        if found is None:
            raise InputError(f"the result is damaged: {result.place}: there is no component {component}")
        if inner is not None and found.k >= inner.k:
            raise InputError(
                f"the result is damaged: {result.place}: component {component} cannot be the parent of component "
                f"{inner.component}"
            )
        yield found
        inner, component = found, found.parent


def parse_int64(text: str) -> int:
    """The integer of 64 bits that `text` writes in plain digits. Raises ValueError."""
    if not re.fullmatch(r"-?[0-9]{1,19}", text) or not -(2**63) <= int(text) < 2**63:
        raise ValueError(f"{text[:80]!r} is not a whole number of 64 bits")
    return int(text)
