"""Compute the dense groups of a result again, level by level with NumPy alone, and compare them row by row.

Components are found by union-find over batches of edges. Shares no code with the kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..storage.folders import Folder
from .reading import Flaw, Int, positions, read_table
from .tables import EdgeTable, VertexTable, is_two_sided, measure_of


def find_roots(up: Int, vertices: Int) -> Int:
    """The root of each of the vertices, where up[v] is the parent of v and a root is its own parent.

    Changes `up`: the vertices then point to their roots, and their ancestors to their grandparents (path halving;
    Tarjan and van Leeuwen, JACM 1984). A path of n vertices takes about log2(n) steps if all are looked up at once.
    """
    found = up[vertices]
    rising = np.flatnonzero(up[found] != found)
    while rising.size:
        at = found[rising]
        above = up[up[at]]
        up[at] = above
        found[rising] = above
        rising = rising[up[above] != above]
    up[vertices] = found
    return found


def join(up: Int, source: Int, target: Int) -> None:
    """Join the trees with the roots source[i] and target[i], for all i. The smallest vertex of a component is its root.

    Each root with a smaller neighbour becomes a child of its smallest neighbour. Two rounds at least halve the roots
    with neighbours, so there are at most 2 log2(roots) rounds.
    """
    while (apart := np.flatnonzero(source != target)).size:
        source, target = source[apart], target[apart]
        np.minimum.at(up, np.maximum(source, target), np.minimum(source, target))
        source, target = find_roots(up, source), find_roots(up, target)


_HIERARCHY = {
    "component": pa.int64(),
    "k": pa.int32(),
    "parent": pa.int64(),
    "vertices": pa.int64(),
    "edges": pa.int64(),
}
_GROUPS_OF_PROGRAM = {
    "id": pa.int64(),
    "k": pa.int32(),
    "parent": pa.int64(),
    "vertices": pa.int64(),
    "edges": pa.int64(),
    "density": pa.float64(),
    "is_leaf": pa.bool_(),
}
_DN_GRAPHS = {
    "id": pa.int64(),
    "lambda": pa.int32(),
    "vertices": pa.int64(),
    "edges": pa.int64(),
    "density": pa.float64(),
    "triangles": pa.int64(),
    "parent": pa.int64(),
}
_BICLIQUES = {"butterflies" if name == "triangles" else name: kind for name, kind in _DN_GRAPHS.items()}


def check_groups(
    out: Folder, manifest: dict[str, Any], edges: EdgeTable, vertices: VertexTable, backed: Int
) -> tuple[str, bool]:
    """Compare hierarchy/, dn_graphs/, dn_graph_members/ and the vertices' component with the groups computed from λ.

    `backed` [edges] is the number of triangles whose other edges have at least the edge's λ. For an edge of a DN-graph
    these are the triangles inside the DN-graph, since it contains all adjacent edges of at least its λ. Raises Flaw.
    """
    size = len(vertices.ids)
    computed, home, of_edge = _components(edges, size)
    parent = computed["parent"]
    has_child = np.zeros(parent.size, np.bool_)
    has_child[parent[parent >= 0]] = True
    is_graph = ~has_child & (computed["k"] > 0)
    stored_hierarchy = _read(out, manifest, "hierarchy", _HIERARCHY)
    number = _ids(computed, int(edges.low.max(initial=0)), stored_hierarchy["component"])
    outer = np.where(parent >= 0, number[parent], -1) if parent.size else parent

    hierarchy = {"component": number, **{name: computed[name] for name in ("k", "vertices", "edges")}, "parent": outer}
    _compare(stored_hierarchy, hierarchy, "component")
    two_sided = is_two_sided(manifest)
    inside = np.bincount(of_edge, backed, minlength=number.size).astype(np.int64) // (4 if two_sided else 3)
    pairs = np.maximum(computed["vertices"] * (computed["vertices"] - 1), 1) / 2
    left = np.zeros(number.size, np.int64)
    if two_sided:
        ends = np.unique(np.stack([of_edge, edges.source]), axis=1)[0]  # each vertex of the first side once
        left = np.bincount(ends, minlength=number.size)  # right for components that contain no other one
        pairs = np.maximum(left * (computed["vertices"] - left), 1)
    graphs = {
        "id": number,
        "lambda": computed["k"],
        "vertices": computed["vertices"],
        "edges": computed["edges"],
        "density": computed["edges"] / pairs,
        measure_of(manifest): inside,
        "parent": outer,
        "left_vertices": left,
    }
    tracks = manifest.get("tracks")  # results of earlier releases have no tracks
    wanted = (_BICLIQUES if two_sided else _DN_GRAPHS) | ({} if tracks is None else {"track": pa.int64()})
    wanted |= {"left_vertices": pa.int64()} if two_sided else {}
    stored_graphs = _read(out, manifest, "dn_graphs", wanted)
    if tracks is not None:
        _check_tracks(stored_graphs.pop("track"), tracks)
    _compare(stored_graphs, {k: v[is_graph] for k, v in graphs.items()}, "id")

    homes = np.append(number, -1)[home]
    stored = vertices.component
    assert stored is not None
    for at in np.flatnonzero(stored != homes)[:1].tolist():
        raise Flaw(f"vertex {vertices.name(at)}: component says {stored[at]}, but is {homes[at]} (-1 for none)")
    ids = ["vertex", *(["side"] if two_sided else [])]
    table = read_table(out, manifest, "dn_graph_members", ids, {"dn_graph": pa.int64()}, first="dn_graph")
    members = np.full(size, -1)
    rows = positions(table["vertex"], vertices.ids)
    if (rows < 0).any() or np.unique(rows).size != rows.size:
        raise Flaw("dn_graph_members has vertices that are not in the vertex table, or twice")
    if two_sided and not table["side"].combine_chunks().equals(vertices.side.combine_chunks().take(pa.array(rows))):
        raise Flaw("dn_graph_members has another side for a vertex than the vertex table")
    members[rows] = table["dn_graph"].to_numpy()
    expected = np.where(np.append(is_graph, False)[home], homes, -1)
    for at in np.flatnonzero(members != expected)[:1].tolist():
        raise Flaw(
            f"vertex {vertices.name(at)} is in DN-graph {members[at]}, but should be in {expected[at]} (-1 for none)"
        )

    roots = int((parent < 0).sum())
    counts = {"components": number.size, "roots": roots, "dn_graphs": int(is_graph.sum()), "members": rows.size}
    if manifest["dense"] != counts:
        raise Flaw(f"the manifest's dense is {manifest['dense']}; the tables give {counts}")
    return f"{counts['components']:,} components, {counts['dn_graphs']:,} DN-graphs computed again", True


def groups_by_level(edges: EdgeTable, size: int) -> tuple[dict[str, NDArray[Any]], Int]:
    """The components of the edges of level `edges.low` or more, for each level, as columns of a table of groups; and
    the id of the innermost group of each of the `size` vertices, -1 without edges.
    """
    computed, home, _ = _components(edges, size)
    parent = computed["parent"]
    number = (computed["least"] << int(edges.low.max(initial=0)).bit_length()) + computed["k"]
    groups = {
        "id": number,
        **{name: computed[name] for name in ("k", "vertices", "edges")},
        "parent": np.where(parent >= 0, number[parent], -1) if parent.size else parent,
        "density": 2 * computed["edges"] / np.maximum(computed["vertices"] * (computed["vertices"] - 1), 1),
        "is_leaf": ~np.isin(np.arange(parent.size), parent),
    }
    return groups, np.append(number, -1)[home]


def read_groups(out: Folder, manifest: dict[str, Any], table: str) -> dict[str, NDArray[Any]]:
    """A table of groups of a program as arrays, with parent -1 for none, after a check of its tracks. Raises Flaw."""
    (record,) = (own for own in manifest["programs"] if f"{own.get('group_column')}s" == table)
    tracks = record.get("tracks")  # results of earlier releases have no tracks
    if tracks is None:
        return _read(out, manifest, table, _GROUPS_OF_PROGRAM)
    found = _read(out, manifest, table, _GROUPS_OF_PROGRAM | {"track": pa.int64()}, ("parent", "track"))
    track, listed = found.pop("track"), _are_listed(found, record.get("group_level"))
    for at in np.flatnonzero((track >= 0) != listed)[:1].tolist():
        raise Flaw(f"group {found['id'][at]} {'has no track' if listed[at] else 'is not listed, but has a track'}")
    _check_tracks(track[listed], tracks, "groups")
    return found


def _are_listed(groups: dict[str, NDArray[Any]], level: int | None) -> NDArray[np.bool_]:
    """[groups] whether each is one of those at a level, or with None contains no smaller group."""
    if level is None:
        leaf: NDArray[np.bool_] = groups["is_leaf"]
        return leaf
    order = np.argsort(groups["id"])
    at = order[np.minimum(np.searchsorted(groups["id"], groups["parent"], sorter=order), max(order.size - 1, 0))]
    below = (groups["parent"] < 0) | (groups["k"][at] < level) if order.size else np.zeros(0, np.bool_)
    return (groups["k"] >= level) & below


def compare_groups(stored: dict[str, NDArray[Any]], groups: dict[str, NDArray[Any]]) -> None:
    """Compare a table of groups with `groups`. Raises Flaw."""
    _compare(stored, groups, "id")


def _ids(components: dict[str, Int], highest: int, stored: Int) -> Int:
    """Ids of components, from their least vertices and k."""
    earlier = components["least"] * (highest + 1) + components["k"]  # as builds before 23 November 2026 made them
    if np.array_equal(np.sort(stored), np.sort(earlier)):
        return earlier
    return (components["least"] << highest.bit_length()) + components["k"]


def _check_tracks(track: Int, record: dict[str, Any], what: str = "DN-graphs") -> None:
    """Check that DN-graphs, or listed groups of a program, have distinct tracks below the next free number, and the
    manifest's number of new ones.
    """
    numbers = np.sort(track)
    for at in np.flatnonzero(numbers[1:] == numbers[:-1])[:1].tolist():
        raise Flaw(f"track {numbers[at]} is that of several {what}")
    for outside in numbers[(numbers < 1) | (numbers >= record["next"])][:1].tolist():
        raise Flaw(f"track {outside} is not from 1 to {record['next'] - 1}, as the manifest says")
    parts = [record[name] for name in ("continued", "again", "new")]
    if sum(parts) != track.size or min(parts) < 0:
        raise Flaw(f"the manifest's tracks are {parts}; the table has {track.size:,} {what}")
    first = record["next"] - record["new"]
    if (found := int((numbers >= first).sum())) != record["new"]:
        raise Flaw(f"{found:,} tracks are {first} or more; the manifest says that {record['new']:,} are new")


def _components(edges: EdgeTable, size: int) -> tuple[dict[str, Int], Int, Int]:
    """Components as columns, inner ones first; the innermost component of each vertex; the component of each edge."""
    up, top, home = np.arange(size), np.full(size, -1), np.full(size, -1)
    vertex_count, edge_count = np.ones(size, np.int64), np.zeros(size, np.int64)  # vertices and edges of each root
    of_edge = np.full(edges.low.size, -1)
    by_level = np.argsort(-edges.low.astype(np.int64), kind="stable")
    ends = np.flatnonzero(np.append(np.diff(edges.low[by_level]) != 0, by_level.size > 0)) + 1
    columns: dict[str, list[Int]] = {name: [] for name in ("k", "least", "vertices", "edges")}
    parent: list[tuple[Int, Int]] = []
    count = start = 0
    for end in ends.tolist():
        own = by_level[start:end]
        start = end
        source, target = find_roots(up, edges.source[own]), find_roots(up, edges.target[own])
        before = np.unique(np.concatenate([source, target]))
        join(up, source, target)
        after = find_roots(up, before)
        source = find_roots(up, source)
        lost = before != after
        np.add.at(vertex_count, after[lost], vertex_count[before[lost]])
        np.add.at(edge_count, after[lost], edge_count[before[lost]])
        np.add.at(edge_count, source, 1)
        new, position = np.unique(after, return_inverse=True)
        previous = top[before]
        parent.append((previous[previous >= 0], (count + position)[previous >= 0]))
        first_seen = before[previous < 0]
        home[first_seen] = (count + position)[previous < 0]
        top[new] = count + np.arange(new.size)
        of_edge[own] = top[source]
        for name, column in (("k", np.full(new.size, edges.low[own[0]])), ("least", new)):
            columns[name].append(column)
        columns["vertices"].append(vertex_count[new])
        columns["edges"].append(edge_count[new])
        count += new.size
    found = {name: np.concatenate([np.zeros(0, np.int64), *parts]) for name, parts in columns.items()}
    found["parent"] = np.full(count, -1)
    for inner, outer in parent:
        found["parent"][inner] = outer
    return found, home, of_edge


def _read(
    out: Folder,
    manifest: dict[str, Any],
    name: str,
    columns: dict[str, pa.DataType],
    nulls: Sequence[str] = ("parent",),
) -> dict[str, NDArray[Any]]:
    """The table as arrays, with -1 for null in the columns `nulls`, such as the parent of a root."""
    table = read_table(out, manifest, name, [], columns, nulls=nulls)
    filled = {column: table[column].fill_null(-1) if column in nulls else table[column] for column in columns}
    return {column: values.to_numpy(zero_copy_only=False) for column, values in filled.items()}


def _compare(stored: dict[str, NDArray[Any]], expected: dict[str, NDArray[Any]], key: str) -> None:
    by_key = np.argsort(expected[key])
    if stored[key].size != by_key.size:
        raise Flaw(f"there are {stored[key].size:,} rows of {key}, but should be {by_key.size:,}")
    for name, column in stored.items():
        correct = expected[name][by_key]
        wrong = np.abs(column - correct) > 1e-12 if name == "density" else column != correct
        for at in np.flatnonzero(wrong)[:1].tolist():
            raise Flaw(f"{key} {stored[key][at]}: {name} says {column[at]}, but is {correct[at]}")
