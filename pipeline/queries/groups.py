"""Queries of the dense groups of a result: top groups, the groups around a vertex, a group's members and edges.

A vertex or a group is looked up by the statistics of row groups. Larger tables are read in batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice, takewhile
from typing import Any, Literal, SupportsIndex, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray

from ...tasks.errors import InputError, UsageError
from ...tasks.ids.display import display_id
from ..messages.wording import shown
from ..results.listed_groups import ListedGroups, listed_groups
from ..results.lookup import (
    AnyId,
    Component,
    DNGraph,
    Group,
    RowGroup,
    Vertex,
    find,
    find_component,
    parse_vertex_id,
    path_to_root,
    sorted_table,
)
from ..results.result import Result, ResultOrPath, open_result, plain_id
from ..results.streaming import stream, stream_fragment, top_k
from ..settings.declared_programs import LAMBDA
from ..settings.setting_names import naming_keywords
from .attributes import attributes_of, json_value, label_column, labels_of
from .group_edges import GroupEdges
from .program_columns import top_edges, top_vertices

Order = Literal["lambda", "size", "density"] | str
VertexOrVertices: TypeAlias = Vertex | AnyId | Iterable[Vertex | AnyId]
"""A vertex or its id, or several: a list, a set, an array of NumPy or Arrow. Text and bytes are one id."""


_COLUMN: dict[str, str] = {"lambda": "lambda", "size": "vertices", "density": "density"}


@naming_keywords()
def top(
    result: ResultOrPath, by: Order | None = None, count: int = 20, groups: str = LAMBDA, level: int | None = None
) -> pa.Table:
    """The first `count` DN-graphs by λ ("lambda", the default), vertices ("size") or density, largest first, as rows of
    `Result.dn_graphs`; or, by a column of a vertex program such as "pagerank", the first `count` vertices, as rows of
    `Result.vertices`; or, by a column of edges such as "jaccard", the first edges: their ids and the value.

    With `groups`, the name of a program that finds some, the first `count` of its groups by vertices ("size", the
    default) or density: id, k, vertices, edges, density, parent, track. They are those at `level`, by default
    communities for "leiden", and for "core_groups" those that contain no smaller group.

    `result` is a Result, its folder or its fsspec URL, as in all queries. Each query opens a path anew; for several
    queries, open a Result once.

    Ties go to the larger λ, then to more vertices, more edges, the smaller id. Memory is O(count), with `groups` 40
    bytes for each of its groups. Raises UsageError for another order or count < 1, or if the result has no DN-graphs or
    no such groups; InputError for damage.
    """
    if count < 1:
        raise UsageError(f"count must be at least 1, got {count}")
    result = open_result(result)
    if groups != LAMBDA:
        return _top_groups(result, by or "size", count, groups, level)
    if level is not None:
        raise UsageError("level is that of groups of a program: name it with groups, or leave level out")
    by = by or LAMBDA
    if by in _COLUMN:
        return top_k(result, _COLUMN[by], count)
    columns = [name for program in result.manifest.programs for name in program.columns]
    of_edges = [name for program in result.manifest.programs for name in program.edge_columns]
    if by in columns:
        return top_vertices(result, by, count)
    if by in of_edges:
        return top_edges(result, by, count)
    more = f", vertices by {', '.join(columns)}" if columns else ""
    more += f", edges by {', '.join(of_edges)}" if of_edges else ""
    raise UsageError(f"DN-graphs are ordered by {', '.join(_COLUMN)}{more}, not by {by!r}")


def _top_groups(result: Result, by: str, count: int, program: str, level: int | None) -> pa.Table:
    listed = listed_groups(result, program, level)
    if by not in ("size", "density"):
        raise UsageError(f"groups of {program} are ordered by size, density, not by {by!r}")
    return listed.largest(_COLUMN[by], count)


@naming_keywords()
def find_vertex(result: ResultOrPath, vertex: AnyId) -> Vertex:
    """The vertex with the id `vertex`. An integer or a UUID may be given as text, as on a command line.

    Raises UsageError if there is no such vertex, or if the result has λ and no groups; InputError for damage.
    """
    result = open_result(result)
    if result.manifest.has_lambda:
        _ = result.hierarchy  # raises if the result has no groups
    key = parse_vertex_id(vertex, result)
    found = find(result, Vertex, key)
    if found is None:
        source = result.manifest.input
        why = ""
        if source.bipartite == "prefix" and not str(key).startswith(
            (f"{source.source_column}:", f"{source.target_column}:")
        ):
            why = f"; ids begin with the name of their column: {source.source_column}:… or {source.target_column}:…"
        raise UsageError(f"there is no vertex {shown(display_id(key))} in {result.place}{why}")
    return found


@naming_keywords()
def groups_of(
    result: ResultOrPath, vertex: VertexOrVertices, count: int | None = None, groups: str = LAMBDA
) -> list[Group]:
    """The groups that contain a vertex, or all of several vertices, innermost first: all, or the first
    `count`.

    `groups` are those of λ ("lambda"), or of a program by its name: "core_groups" or "leiden". The first group is the
    one of largest k: no connected component of the edges with a larger λ, or level, contains the vertices.
    Empty if a vertex has no edges, or if no path connects the vertices. Raises as `find_vertex` does, and UsageError if
    no vertex is named, or if the result does not have these groups.
    """
    result = open_result(result)
    around = enumerate(islice(_common_groups(result, _vertices_of(result, vertex, groups), groups), count))
    # Only the innermost group can be a DN-graph: it contains no other component.
    two_sided = result.manifest.input.two_sided
    return [
        _group(result, found, groups)
        if not level
        else Group(**vars(found), dn_graph=False, groups=groups, two_sided=two_sided)
        for level, found in around
    ]


def _vertices_of(result: Result, vertex: VertexOrVertices, groups: str) -> list[Vertex]:
    """The vertex, or the vertices, looked up unless they are of the type Vertex. At least one.

    Raises UsageError if the result has no `groups`.
    """
    result.table(result.groups_table(groups))
    if isinstance(vertex, pa.Array):
        vertex = vertex.to_pylist()
    if isinstance(vertex, str | bytes) or not isinstance(vertex, Iterable):
        vertex = [vertex]
    found = [own if isinstance(own, Vertex) else find_vertex(result, own) for own in vertex]
    if not found:
        raise UsageError("no vertex is named: the list is empty")
    return found


def _common_groups(result: Result, vertices: Sequence[Vertex], groups: str) -> Iterator[Component]:
    """The groups that contain all of the vertices, innermost first."""
    column = "" if groups == LAMBDA else result.groups_record(groups).group_column or ""
    first, *others = (own.component if groups == LAMBDA else own.values[column] for own in vertices)
    path = path_to_root(result, first, groups)
    if not set(others) - {first}:
        yield from path
        return
    common = list(path)
    for other in set(others) - {first}:
        at = {group.component: place for place, group in enumerate(common)}
        meeting = (at[group.component] for group in path_to_root(result, other, groups) if group.component in at)
        common = common[next(meeting, len(common)) :]
    yield from common


@naming_keywords()
def find_dn_graph(result: ResultOrPath, dn_graph: SupportsIndex) -> Group:
    """The DN-graph with that id. Raises UsageError if there is none, InputError for damage."""
    result, dn_graph = open_result(result), plain_id(dn_graph, "the id of a DN-graph")
    found = find(result, DNGraph, dn_graph)
    if found is None:
        other = find(result, Component, dn_graph)
        hint = "edgemill top lists some" if other is None else "it is a component that contains others (--component)"
        raise UsageError(f"there is no DN-graph {dn_graph} in {result.place}: {hint}")
    own = found.id, found.lam, found.parent, found.vertices, found.edges
    return Group(*own, dn_graph=True, two_sided=result.manifest.input.two_sided)


@naming_keywords()
def find_group(result: ResultOrPath, component: SupportsIndex, groups: str = LAMBDA) -> Group:
    """The component with that id, or the group of a program, as for `groups_of`. Raises UsageError if there is none or
    no table of them, InputError for damage.
    """
    result, component = open_result(result), plain_id(component, "the id of a component")
    found = find_component(result, groups, component)
    if found is None:
        raise UsageError(
            f"there is no component {component} in {result.place}: edgemill of lists the components of a vertex"
        )
    return _group(result, found, groups)


@naming_keywords()
def group_at(result: ResultOrPath, vertex: VertexOrVertices, level: int, groups: str = LAMBDA) -> Group | None:
    """The group around a vertex at a level: the connected component of the edges with λ ≥ `level` that contains it, or
    that contains all of several vertices. `groups` as for `groups_of`: level 1 of "leiden" has the communities.

    None if there is none. The group's own `k` may be higher than `level`: the same edges are a component up to that k.
    Raises UsageError for a level below 0, and as `groups_of` does.
    """
    if level < 0:
        raise UsageError(f"level must be at least 0, got {level}")
    result = open_result(result)
    around = _common_groups(result, _vertices_of(result, vertex, groups), groups)
    within = list(takewhile(lambda group: group.k >= level, around))
    return _group(result, within[-1], groups) if within else None


@naming_keywords()
def member_ids(result: ResultOrPath, group: Group | SupportsIndex) -> pa.Array:
    """The ids of the vertices in a group, ascending. `group` is a Group, or the id of a component or DN-graph of λ.

    The members of a DN-graph are looked up. Another group takes one scan of two columns of the vertex table, and
    24 bytes of memory for each component of a higher k. Raises UsageError if there is no such group, InputError for
    damage.
    """
    result = open_result(result)
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
    """The ids of the first `most` stored vertices of a DN-graph, ascending. Raises InputError for damage."""
    table = sorted_table(result, "dn_graph_members")
    columns, where = ["dn_graph", "vertex"], pc.field("dn_graph") == dn_graph
    parts = (stream_fragment(group.fragment, columns, where) for group, _ in table.near(pa.array([dn_graph])))
    found, left = [pa.array([], result.dn_graph_members.schema.field("vertex").type)], most
    with result.reading():
        for batch in chain.from_iterable(parts):
            found.append(batch["vertex"].slice(0, left))
            left -= len(found[-1])
            if left <= 0:
                break
    return _ascending(pa.chunked_array(found))


@naming_keywords()
def edges_of(result: ResultOrPath, group: Group | SupportsIndex, members: pa.Array | None = None) -> GroupEdges:
    """The edges of a group, as rows of `Result.edges`, in their order: the edges with λ ≥ k between its members, or for
    a group of a program all edges between them.

    Read them as a `pyarrow.RecordBatchReader`, or convert them to a frame or graph (`to_pandas()`, `to_networkx()`, …).
    One batch is in memory at a time, beside the members, which `member_ids` gives if `members` is None. Row groups
    without members or without such λ are not read. Raises as `member_ids` does, and InputError while batches are read.
    """
    result = open_result(result)
    group = as_group(result, group)
    inside = member_ids(result, group) if members is None else members
    return GroupEdges(
        result.edges.schema,
        partial(_edges_of, result, group, inside),
        partial(_pieces_of, result, group, inside),
    )


def _pieces_of(result: Result, group: Group, members: pa.Array) -> list[tuple[ds.ParquetFileFragment, pc.Expression]]:
    return [(row_group.fragment, where) for row_group, where in _row_groups(result, group, members)]


def _row_groups(result: Result, group: Group, members: pa.Array) -> Iterator[tuple[RowGroup, pc.Expression]]:
    """The row groups that can hold edges of a group, each with the condition that its edges meet."""
    source, target = result.manifest.input.source_column, result.manifest.input.target_column
    of_lambda = group.groups == LAMBDA
    for row_group, near in sorted_table(result, "edges").near(members, group.k if of_lambda else 0):
        # An edge with λ ≥ k and one end in the group is an edge of the group.
        other = pc.field("lambda") >= group.k if of_lambda else pc.field(target).isin(members)
        yield row_group, pc.field(source).isin(near) & other


def _edges_of(result: Result, group: Group, members: pa.Array) -> Iterator[pa.RecordBatch]:
    edges, found = sorted_table(result, "edges"), 0
    for row_group, where in _row_groups(result, group, members):
        for batch in edges.scan([row_group], where):
            if batch.num_rows:
                found += batch.num_rows
                yield batch
    if found != group.edges:
        raise InputError(
            f"the result is damaged: {result.place}: component {group.component} has {found} edges, not {group.edges}"
        )


def as_group(result: Result, group: Group | SupportsIndex) -> Group:
    """The group, looked up if `group` is an id. A DN-graph has the id of its component."""
    return group if isinstance(group, Group) else find_group(result, group)


def _group(result: Result, found: Component, groups: str = LAMBDA) -> Group:
    is_dn_graph = groups == LAMBDA and find(result, DNGraph, found.component) is not None
    return Group(**vars(found), dn_graph=is_dn_graph, groups=groups, two_sided=result.manifest.input.two_sided)


def _component_members(result: Result, group: Group) -> pa.Array:
    table = result.table(result.groups_table(group.groups))
    with result.reading():
        higher = table.to_table(columns=[table.schema.names[0], "parent"], filter=pc.field("k") > group.k)
    inner = pa.array(_descendants(group.component, higher))
    if group.groups == LAMBDA:
        inside = pc.field("component").isin(inner) & (pc.field("lambda") >= group.k)
    else:
        inside = pc.field(result.groups_record(group.groups).group_column).isin(inner)
    with result.reading():
        rows = result.vertices.to_table(columns=["id"], filter=inside)
    return _ascending(rows["id"])


def _ascending(column: pa.ChunkedArray) -> pa.Array:
    whole = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return whole.take(pc.sort_indices(whole))


def _descendants(group: int, higher: pa.Table) -> NDArray[np.int64]:
    """Ids of a group and of all its descendants. `higher` are the ids and parents of all groups of a higher k."""
    higher = higher.filter(pc.is_valid(higher["parent"]))
    component, parent = (column.to_numpy() for column in higher.columns)
    order = np.argsort(parent, kind="stable")
    component, parent = component[order], parent[order]
    found = [np.array([group], np.int64)]
    while len(found[-1]):
        first, last = (np.searchsorted(parent, found[-1], side) for side in ("left", "right"))
        children = last - first
        before = np.cumsum(children) - children
        found.append(component[np.repeat(first - before, children) + np.arange(children.sum())])
    return np.concatenate(found)


MEMBER_COLUMNS = ("id", "degree_inside", "degree", "triangles", "butterflies", "lambda")
"""Columns of the table of members; attributes follow."""


@naming_keywords()
def members_of(result: ResultOrPath, group: Group | SupportsIndex, limit: int | None = None) -> pa.Table:
    """The vertices in a group: a row for each, or for the first `limit` of them.

    `group` is a Group, or the id of a component or DN-graph. Columns: `id`; `degree_inside` (int64, edges of the vertex
    inside the group); in a graph with two sides `side` (text, the column of the input); `degree` (int64) and
    `triangles` (int64), or `butterflies`, in the whole graph; `lambda` (int32, the largest λ of
    the vertex's edges, equal in the group and in the graph); then the attributes of vertices. Sorted by
    `degree_inside`, largest first, then by id. Edges are read in batches; the members are in memory.

    In a result without λ, a member of a group of a program has `id`, `degree` and the attributes, sorted by id.

    Raises UsageError for a limit below 1 or if there is no such group, InputError for damage.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"limit must be at least 1, got {limit}")
    result = open_result(result)
    group = as_group(result, group)
    ids = member_ids(result, group)
    if result.manifest.has_lambda:
        inside = _degrees_inside(result, group, ids)
        order = np.argsort(-inside, kind="stable")[:limit]
        chosen = ids.take(pa.array(order))
        own = pa.table({"id": chosen, "degree_inside": inside[order]})
    else:
        chosen = ids.slice(0, limit)
        own = pa.table({"id": chosen})
    for part in (_vertices(result, chosen), attributes_of(result, chosen)):
        for name in part.column_names:
            own = own.append_column(part.schema.field(name), part[name])
    return own


def _degrees_inside(result: Result, group: Group, ids: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    inside = np.zeros(len(ids), np.int64)
    source, target = result.edges.schema.names[:2]
    for batch in edges_of(result, group, ids):
        for end in (source, target):
            at = pc.index_in(batch[end], value_set=ids)
            if at.null_count:
                raise InputError(
                    f"the result is damaged: {result.place}: an edge of component {group.component} has an end that "
                    "is not a member of it"
                )
            inside += np.bincount(at.to_numpy(), minlength=len(ids))
    return inside


def _vertices(result: Result, ids: pa.Array) -> pa.Table:
    """Side, degree, triangles or butterflies, and λ of the vertices `ids`, in their order; the degree without λ."""
    manifest = result.manifest
    table, side = sorted_table(result, "vertices"), ["side"] if manifest.input.two_sided else []
    names = ["id", *side, "degree"]
    names += [manifest.measure, "lambda"] if manifest.has_lambda else []
    schema = pa.schema([result.vertices.schema.field(name) for name in names])
    ascending = ids.take(pc.sort_indices(ids))
    batches = [
        batch
        for group, near in table.near(ascending)
        for batch in table.scan([group], pc.field("id").isin(near), names)
    ]
    found = pa.Table.from_batches(batches, schema)
    at = pc.index_in(ids, value_set=found["id"])
    if at.null_count:
        missing = ids[pc.index(pc.is_null(at), True).as_py()].as_py()
        raise InputError(f"the result is damaged: {result.place}: member {missing} is not in the table of vertices")
    return found.select(names[1:]).take(at)


def with_members(
    result: Result,
    rows: Iterable[Mapping[str, Any]],
    most: int | None,
    groups: str = LAMBDA,
    level: int | None = None,
) -> Iterator[dict[str, Any]]:
    """Rows of `top` with `members`, the first `most` ids of each group, or all ids if `most` is None.

    If the run had labels, the rows also have `labels`, None for a vertex without one. The members of one group at a
    time are in memory, of groups of a program those of all `rows`. Raises InputError for damage.
    """
    labelled = label_column(result) is not None
    rows = list(rows)
    known: dict[int, pa.Array] = {}
    if groups != LAMBDA:
        known = first_members(result, listed_groups(result, groups, level), [row["id"] for row in rows], most)
    for row in rows:
        least = row["vertices"] if most is None else min(most, row["vertices"])
        ids = dn_graph_members(result, row["id"], least) if groups == LAMBDA else known[row["id"]]
        more: dict[str, Any] = {"members": [json_value(id) for id in ids.to_pylist()]}
        if labelled:
            more["labels"] = labels_of(result, ids)
        yield {**row, **more}


def first_members(result: Result, listed: ListedGroups, groups: Iterable[int], most: int | None) -> dict[int, pa.Array]:
    """The first `most` members of the groups with these ids, or all, by the id of the group. Scans the vertices."""
    none = pa.array([], result.vertices.schema.field("id").type)
    found = dict.fromkeys(groups, none)
    for batch in listed.members(result):
        shown = batch.filter(pc.is_in(batch["group"], pa.array(found, pa.int64())))
        for id in pc.unique(shown["group"]).to_pylist():
            if most is None or len(found[id]) < most:
                own = shown["id"].filter(pc.equal(shown["group"], id))
                found[id] = pa.concat_arrays([found[id], own]).slice(0, most)
    return found


@naming_keywords()
def find_track(result: ResultOrPath, track: SupportsIndex, groups: str = LAMBDA) -> Group:
    """The DN-graph with this track, the number that it keeps over a series of nights; or the listed group of a program.
    Scans the table of these groups.

    Raises UsageError if there is none, if the result has no such groups, or if it was made by a release without tracks;
    InputError if it is damaged.
    """
    found, number, of_lambda = open_result(result), plain_id(track, "a track"), groups == LAMBDA
    table = found.dn_graphs if of_lambda else found.table(found.groups_table(groups))
    if "track" not in table.schema.names:
        raise UsageError(f"{found.place} was made by a release without tracks: edgemill diff matches its groups")
    columns = ["id", "lambda" if of_lambda else "k", "parent", "vertices", "edges"]
    with found.reading():
        batches = stream(table, [*columns, "track"], pc.field("track") == number)
        rows = [row for batch in batches for row in batch.to_pylist()]
    if not rows:
        what = "DN-graph" if of_lambda else f"group of {groups}"
        raise UsageError(
            f"no {what} has track {number} in {found.place}: the track ended before that night or began after it"
        )
    (row,) = rows
    id, k, parent, vertices, edges = (row[name] for name in columns)
    two_sided = found.manifest.input.two_sided
    return Group(id, k, parent, vertices, edges, dn_graph=of_lambda, groups=groups, two_sided=two_sided)
