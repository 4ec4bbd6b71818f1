"""Questions about the dense groups of a result: the foremost ones, those around a vertex, what is in one.

A group is a component of the hierarchy; those that hold no other are the DN-graphs. Answers read what they need: a
vertex or a component is looked up by the statistics of row groups, and tables pass through memory in batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from operator import index
from typing import Literal, SupportsIndex, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..tasks.errors import InputError, UsageError
from ..tasks.spelling import parse_id, spelled
from .calls.asked import AnyResult, opened, plain_id
from .foremost import foremost
from .frames.group_edges import GroupEdges
from .lookup import RowGroup, look_up, reading
from .result import Result
from .rows import Component, DNGraph, Group, Vertex, find, path
from .streaming import stream_fragment

__all__ = [
    "AnyId",
    "Order",
    "as_group",
    "as_id",
    "dn_graph_members",
    "edges_of",
    "find_dn_graph",
    "find_group",
    "find_vertex",
    "group_at",
    "groups_of",
    "member_ids",
    "top",
]

Order = Literal["lambda", "size", "density"]

AnyId: TypeAlias = SupportsIndex | str | bytes | UUID
"""An id of a vertex, or its text."""

_COLUMN: dict[str, str] = {"lambda": "lambda", "size": "vertices", "density": "density"}


def top(result: AnyResult, by: Order = "lambda", count: int = 20) -> pa.Table:
    """The first `count` DN-graphs by λ, vertices ("size") or density, as rows of `Result.dn_graphs`, best first.

    `result` is a Result, its folder or its fsspec URL, here and in all questions. A path is opened for each question:
    open a Result once to ask several.

    Ties go to the larger λ, then to more vertices, more edges, the smaller id. Memory is O(count).
    Raises UsageError for another order or count < 1, or if the result has no DN-graphs; InputError for damage.
    """
    if by not in _COLUMN:
        raise UsageError(f"DN-graphs are ordered by {', '.join(_COLUMN)}, not by {by!r}")
    if count < 1:
        raise UsageError(f"the first {count} DN-graphs are none: ask for 1 or more")
    return foremost(opened(result), _COLUMN[by], count)


def find_vertex(result: AnyResult, vertex: AnyId) -> Vertex:
    """The vertex of that id; an id of integers, or a UUID, may be given as text, as on a command line.

    Raises UsageError if there is no such vertex, or if the result has no groups; InputError for damage.
    """
    result = opened(result)
    _ = result.hierarchy  # says why there are no groups
    key = as_id(vertex, result)
    found = find(result, Vertex, key)
    if found is None:
        raise UsageError(f"there is no vertex {spelled(key)!r} in {result.place}")
    return found


def groups_of(result: AnyResult, vertex: Vertex | AnyId, count: int | None = None) -> list[Group]:
    """The groups that a vertex is in, innermost first, all or the first `count`; none if it has no edges.

    Raises as `find_vertex` does.
    """
    result = opened(result)
    if not isinstance(vertex, Vertex):
        vertex = find_vertex(result, vertex)
    around = enumerate(islice(path(result, vertex.component), count))
    return [_group(result, found) if not out else Group(**vars(found), dn_graph=False) for out, found in around]


def find_dn_graph(result: AnyResult, dn_graph: SupportsIndex) -> Group:
    """The DN-graph of that id. Raises UsageError if there is no such, or the result has none; InputError for damage."""
    result, dn_graph = opened(result), plain_id(dn_graph, "the id of a DN-graph")
    found = find(result, DNGraph, dn_graph)
    if found is None:
        other = find(result, Component, dn_graph)
        hint = "edgemill top lists some" if other is None else "it is a component that holds others (--component)"
        raise UsageError(f"there is no DN-graph {dn_graph} in {result.place}: {hint}")
    return Group(found.id, found.lam, found.parent, found.vertices, found.edges, dn_graph=True)


def find_group(result: AnyResult, component: SupportsIndex) -> Group:
    """The component of that id. Raises UsageError if there is no such, or no hierarchy; InputError for damage."""
    result, component = opened(result), plain_id(component, "the id of a component")
    found = find(result, Component, component)
    if found is None:
        raise UsageError(f"there is no component {component} in {result.place}: edgemill of lists those of a vertex")
    return _group(result, found)


def group_at(result: AnyResult, vertex: Vertex | SupportsIndex | str, level: int) -> Group | None:
    """The group around a vertex at a level: the connected component of the edges with λ ≥ `level` that it is in.

    None if no edge of the vertex has such a λ. The group's own `k` may be higher: the same edges are a component up to
    there. Raises UsageError for a level below 0, and as `find_vertex` does.
    """
    if level < 0:
        raise UsageError(f"level {level} is below 0, the least λ of an edge: ask for 0 or more")
    result = opened(result)
    if not isinstance(vertex, Vertex):
        vertex = find_vertex(result, vertex)
    found: Component | None = None
    for group in path(result, vertex.component):
        if group.k < level:
            break
        found = group
    return None if found is None else _group(result, found)


def member_ids(result: AnyResult, group: Group | SupportsIndex) -> pa.Array:
    """The ids of the vertices in a group, ascending. `group` is a Group, or the id of a component or DN-graph.

    A DN-graph's are looked up. Others take one scan of two columns of the vertex table, and of the components of a
    higher k in memory, 24 bytes each. Raises UsageError if there is no such group, InputError for damage.
    """
    result = opened(result)
    group = as_group(result, group)
    if group.dn_graph:
        found = dn_graph_members(result, group.component, group.vertices + 1)
    else:
        found = _component_members(result, group)
    if len(found) != group.vertices:
        raise InputError(
            f"the result is damaged: {result.place}: component {group.component} has {len(found)} vertices, "
            f"not {group.vertices}"
        )
    return found


def dn_graph_members(result: Result, dn_graph: int, most: int) -> pa.Array:
    """The ids of the vertices of a DN-graph, ascending; at most the first `most` that are stored. Raises InputError."""
    table = look_up(result, "dn_graph_members")
    columns, wanted = ["dn_graph", "vertex"], pc.field("dn_graph") == dn_graph
    parts = (stream_fragment(group.fragment, columns, wanted) for group, _ in table.near(pa.array([dn_graph])))
    found, left = [pa.array([], result.dn_graph_members.schema.field("vertex").type)], most
    with reading(result.place):
        for batch in chain.from_iterable(parts):
            found.append(batch["vertex"].slice(0, left))
            left -= len(found[-1])
            if left <= 0:
                break
    return _ascending(pa.chunked_array(found))


def edges_of(result: AnyResult, group: Group | SupportsIndex, members: pa.Array | None = None) -> GroupEdges:
    """The edges of a group, as rows of `Result.edges`, in their order: those of λ ≥ k with an end, so both, in it.

    They are read as a `pyarrow.RecordBatchReader`, or made into a frame or a graph (`to_pandas()`, `to_networkx()`, …).
    Batches pass through memory one at a time; `members`, from `member_ids`, lie in it. Row groups without
    members or without such λ are not read. Raises as `member_ids` does, and InputError while batches are read too.
    """
    result = opened(result)
    group = as_group(result, group)
    inside = member_ids(result, group) if members is None else members
    return GroupEdges(
        result.edges.schema,
        lambda: _edges_of(result, group, inside),
        lambda: [(part.fragment, wanted) for part, wanted in _parts(result, group, inside)],
    )


def _parts(result: Result, group: Group, members: pa.Array) -> Iterator[tuple[RowGroup, pc.Expression]]:
    """The row groups that can hold edges of a group, each with what tells these from others."""
    source = result.manifest.input.source_column
    for part, near in look_up(result, "edges").near(members, group.k):
        # An edge of λ ≥ k that touches the group belongs to it, whatever its other end.
        yield part, pc.field(source).isin(near) & (pc.field("lambda") >= group.k)


def _edges_of(result: Result, group: Group, members: pa.Array) -> Iterator[pa.RecordBatch]:
    edges, found = look_up(result, "edges"), 0
    for part, wanted in _parts(result, group, members):
        for batch in edges.scan([part], wanted):
            if batch.num_rows:
                found += batch.num_rows
                yield batch
    if found != group.edges:
        raise InputError(
            f"the result is damaged: {result.place}: component {group.component} has {found} edges, not {group.edges}"
        )


def as_group(result: Result, given: Group | SupportsIndex) -> Group:
    """The group itself, or that of an id: a DN-graph has that of its component."""
    return given if isinstance(given, Group) else find_group(result, given)


def _group(result: Result, found: Component) -> Group:
    return Group(**vars(found), dn_graph=find(result, DNGraph, found.component) is not None)


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


def as_id(given: AnyId, result: Result) -> int | str | bytes:
    """An id of the result's type. Raises UsageError if what was given is none."""
    id_type = result.vertices.schema.field("id").type
    given = getattr(given, "as_py", lambda: given)()  # Arrow's scalars
    try:
        if isinstance(given, str):
            return parse_id(given, id_type)
        key = given.bytes if isinstance(given, UUID) else given if isinstance(given, bytes) else index(given)
        pa.scalar(key, id_type)
    except (TypeError, ValueError, OverflowError, pa.ArrowException):
        kinds = result.manifest.input.id_type
        raise UsageError(f"{given!r} is no id of {result.place}, whose ids are {kinds}") from None
    return key
