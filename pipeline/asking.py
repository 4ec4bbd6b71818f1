"""Questions about the dense groups of a result: the foremost ones, those around a vertex, what is in one.

A group is a component of the hierarchy; those that hold no other are the DN-graphs. Answers read what they need: a
vertex or a component is looked up by the statistics of row groups, and tables pass through memory in batches.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from operator import index
from typing import Any, Literal, SupportsIndex

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..tasks.errors import InputError, UsageError
from .lookup import look_up, reading
from .result import Result

__all__ = [
    "Group",
    "Order",
    "Vertex",
    "edges_of",
    "find_dn_graph",
    "find_group",
    "find_vertex",
    "groups_of",
    "members_of",
    "top",
]

Order = Literal["lambda", "size", "density"]

_COLUMN: dict[str, str] = {"lambda": "lambda", "size": "vertices", "density": "density"}
_TIES = ("lambda", "vertices", "edges")
_PENDING_ROWS = 1 << 20


@dataclass(frozen=True)
class Vertex:
    """A vertex of a result."""

    id: int | str
    degree: int
    triangles: int
    lam: int
    """The largest λ of its edges."""
    component: int | None
    """The innermost group that holds it; None if it has no edges."""


@dataclass(frozen=True)
class Group:
    """A component of the hierarchy: connected edges of λ ≥ k that no other edge of λ ≥ k touches."""

    component: int
    """Its id; that of the DN-graph too, if it is one."""
    k: int
    parent: int | None
    """The next larger group; None for a connected component of the graph."""
    vertices: int
    edges: int
    dn_graph: bool

    @property
    def density(self) -> float:
        """Edges of the group among all pairs of its vertices."""
        return 2 * self.edges / (self.vertices * (self.vertices - 1))


def top(result: Result, by: Order = "lambda", count: int = 20) -> pa.Table:
    """The first `count` DN-graphs by λ, vertices ("size") or density, as rows of `Result.dn_graphs`, best first.

    Ties go to the larger λ, then to more vertices, more edges, the smaller id. Memory is O(count).
    Raises UsageError for another order or count < 1, or if the result has no DN-graphs; InputError for damage.
    """
    if by not in _COLUMN:
        raise UsageError(f"DN-graphs are ordered by {', '.join(_COLUMN)}, not by {by!r}")
    if count < 1:
        raise UsageError(f"the first {count} DN-graphs are none: ask for 1 or more")
    order = [(name, "descending") for name in dict.fromkeys([_COLUMN[by], *_TIES])] + [("id", "ascending")]

    def best(rows: pa.Table) -> pa.Table:
        return rows.take(pc.select_k_unstable(rows, min(count, len(rows)), order)) if len(rows) else rows

    table = result.dn_graphs
    found = table.schema.empty_table()
    with reading(result.place):
        for batch in table.to_batches():
            found = pa.concat_tables([found, pa.Table.from_batches([batch])])
            if len(found) > count + _PENDING_ROWS:
                found = best(found)
    return best(found)


def find_vertex(result: Result, vertex: SupportsIndex | str) -> Vertex:
    """The vertex of that id; an id of integers may be given as text, as on a command line.

    Raises UsageError if there is no such vertex, or if the result has no groups; InputError for damage.
    """
    _ = result.hierarchy  # says why there are no groups
    table = look_up(result, "vertices")
    key = _as_id(vertex, table.type, result)
    row = table.row(key)
    if row is None:
        raise UsageError(f"there is no vertex {key!r} in {result.place}")
    return Vertex(key, row["degree"], row["triangles"], row["lambda"], row["component"])


def groups_of(result: Result, vertex: Vertex | SupportsIndex | str, count: int | None = None) -> list[Group]:
    """The groups that a vertex is in, innermost first, all or the first `count`; none if it has no edges.

    Raises as `find_vertex` does.
    """
    if not isinstance(vertex, Vertex):
        vertex = find_vertex(result, vertex)
    table = look_up(result, "hierarchy")
    groups: list[Group] = []
    component = vertex.component
    while component is not None and len(groups) != count:
        row = table.row(component)
        if row is None or (groups and row["k"] >= groups[-1].k):
            raise InputError(f"the result is damaged: {result.place}: hierarchy: no component {component} above others")
        groups.append(Group(**row, dn_graph=not groups and _dn_graph(result, component) is not None))
        component = groups[-1].parent
    return groups


def find_dn_graph(result: Result, dn_graph: int) -> Group:
    """The DN-graph of that id. Raises UsageError if there is no such, or the result has none; InputError for damage."""
    row = _dn_graph(result, dn_graph)
    if row is None:
        other = look_up(result, "hierarchy").row(dn_graph) if _fits(dn_graph) else None
        hint = "edgemill top lists some" if other is None else "it is a component that holds others (--component)"
        raise UsageError(f"there is no DN-graph {dn_graph} in {result.place}: {hint}")
    return Group(dn_graph, row["lambda"], row["parent"], row["vertices"], row["edges"], dn_graph=True)


def find_group(result: Result, component: int) -> Group:
    """The component of that id. Raises UsageError if there is no such, or no hierarchy; InputError for damage."""
    row = look_up(result, "hierarchy").row(component) if _fits(component) else None
    if row is None:
        raise UsageError(f"there is no component {component} in {result.place}: edgemill of lists those of a vertex")
    return Group(**row, dn_graph=_dn_graph(result, component) is not None)


def members_of(result: Result, group: Group) -> pa.Array:
    """The ids of the vertices in a group, ascending.

    A DN-graph's are looked up. Others take one scan of two columns of the vertex table, and of the components of a
    higher k in memory, 24 bytes each. Raises InputError for damage.
    """
    found = _dn_graph_members(result, group.component) if group.dn_graph else _component_members(result, group)
    if len(found) != group.vertices:
        raise InputError(
            f"the result is damaged: {result.place}: component {group.component} has {len(found)} vertices, "
            f"not {group.vertices}"
        )
    return found


def edges_of(result: Result, group: Group, members: pa.Array | None = None) -> pa.RecordBatchReader:
    """The edges of a group, as rows of `Result.edges`, in their order: those of λ ≥ k with an end, so both, in it.

    Batches pass through memory one at a time; `members`, from `members_of`, lie in it. Row groups without
    members or without such λ are not read. Raises InputError for damage, while batches are read too.
    """
    inside = members_of(result, group) if members is None else members
    return pa.RecordBatchReader.from_batches(result.edges.schema, _edges_of(result, group, inside))


def _edges_of(result: Result, group: Group, members: pa.Array) -> Iterator[pa.RecordBatch]:
    source, found = result.manifest.input.source_column, 0
    for part in look_up(result, "edges").row_groups:
        near = _between(members, part.bounds(source))
        if not len(near):
            continue
        # An edge of λ ≥ k that touches the group belongs to it, whatever its other end.
        inside = pc.field(source).isin(near) & (pc.field("lambda") >= group.k)
        with reading(result.place):
            for batch in part.fragment.to_batches(filter=inside):
                if batch.num_rows:
                    found += batch.num_rows
                    yield batch
    if found != group.edges:
        raise InputError(
            f"the result is damaged: {result.place}: component {group.component} has {found} edges, not {group.edges}"
        )


def _between(ascending: pa.Array, bounds: tuple[Any, Any] | None) -> pa.Array:
    """Those in the closed interval; all without one. Arrow orders text by UTF-8, which is Python's order too."""
    if bounds is None:
        return ascending
    positions = range(len(ascending))
    start = bisect_left(positions, bounds[0], key=lambda at: ascending[at].as_py())
    stop = bisect_right(positions, bounds[1], key=lambda at: ascending[at].as_py())
    return ascending.slice(start, stop - start)


def _dn_graph(result: Result, dn_graph: int) -> dict[str, Any] | None:
    return look_up(result, "dn_graphs").row(dn_graph) if _fits(dn_graph) else None


def _fits(number: int) -> bool:
    return -(2**63) <= number < 2**63


def _dn_graph_members(result: Result, dn_graph: int) -> pa.Array:
    with reading(result.place):
        rows = result.dn_graph_members.to_table(columns=["vertex"], filter=pc.field("dn_graph") == dn_graph)
    return _ascending(rows["vertex"])


def _component_members(result: Result, group: Group) -> pa.Array:
    inner = pa.array(_within(result, group))
    inside = pc.field("component").isin(inner) & (pc.field("lambda") >= group.k)
    with reading(result.place):
        rows = result.vertices.to_table(columns=["id"], filter=inside)
    return _ascending(rows["id"])


def _ascending(column: pa.ChunkedArray) -> pa.Array:
    whole = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return whole.take(pc.sort_indices(whole))


def _within(result: Result, group: Group) -> NDArray[np.int64]:
    """Ids of a component and of all in it: the parent of each is one of a smaller k."""
    with reading(result.place):
        higher = result.hierarchy.to_table(columns=["component", "parent"], filter=pc.field("k") > group.k)
    higher = higher.filter(pc.is_valid(higher["parent"]))
    component, parent = higher["component"].to_numpy(), higher["parent"].to_numpy()
    order = np.argsort(parent, kind="stable")
    component, parent = component[order], parent[order]
    found = [np.array([group.component], np.int64)]
    while len(found[-1]):
        first, last = (np.searchsorted(parent, found[-1], side) for side in ("left", "right"))
        children = last - first
        before = np.cumsum(children) - children
        found.append(component[np.repeat(first - before, children) + np.arange(children.sum())])
    return np.concatenate(found)


def _as_id(given: SupportsIndex | str, id_type: pa.DataType, result: Result) -> int | str:
    """An id of the table's type. Raises UsageError if what was given is none."""
    try:
        if not isinstance(given, str):
            key: int | str = index(given)
        else:
            key = int(given) if pa.types.is_integer(id_type) else given
        pa.scalar(key, id_type)
    except (TypeError, ValueError, OverflowError, pa.ArrowException):
        raise UsageError(f"{given!r} is no id of {result.place}, whose ids are {id_type}") from None
    return key
