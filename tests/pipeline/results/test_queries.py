"""Queries of dense groups: every answer against plain Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import strategies
from drawn_results import drawn_result
from edgemill.pipeline import (
    Group,
    InputError,
    Result,
    edges_of,
    find_dn_graph,
    find_group,
    find_vertex,
    group_at,
    groups_of,
    member_ids,
    top,
)
from edgemill.pipeline.output.manifest import write_manifest
from edgemill.pipeline.queries.groups import Order
from edgemill.pipeline.results import streaming as top_k
from examples import examples
from made import Edge, made

ORDERS: tuple[Order, ...] = ("lambda", "size", "density")


def sets_of_edges(result: Result, group: Group) -> frozenset[Edge]:
    rows = edges_of(result, group).read_all()
    ends = list(zip(rows[0].to_pylist(), rows[1].to_pylist(), strict=True))
    assert ends == sorted(ends)
    return frozenset(ends)


@given(rows=strategies.edge_lists(14), data=st.data())
@settings(max_examples=examples(20, 8))
def test_every_answer(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Drawn values of λ, ids, and sizes of files and row groups."""
    folder = tmp_path_factory.mktemp("made") / "out"
    naming, levels, result = drawn_result(folder, rows, data, 14, 5, first_id=data.draw(st.integers(-50, 50)))
    known = oracles.networkx_hierarchy(levels)
    dense = {edges for _, edges in oracles.maximal_dn_graphs(levels)}
    groups: dict[Group, oracles.Component] = {}
    for vertex in naming.names:
        around = sorted((own for own in known.values() if vertex in own.vertices), key=lambda own: -own.k)
        found = groups_of(result, vertex)
        assert [(group.k, group.vertices, group.edges, group.dn_graph) for group in found] == [
            (own.k, len(own.vertices), len(own.edges), own.edges in dense) for own in around
        ]
        assert [group.parent for group in found] == [group.component for group in found[1:]] + [None] * bool(found)
        assert find_vertex(result, vertex).degree == sum(vertex in edge for edge in levels)
        assert groups_of(result, [vertex, vertex]) == groups_of(result, {vertex}) == found
        groups |= dict(zip(found, around, strict=True))
    several = data.draw(st.lists(st.sampled_from(sorted(naming.names)), min_size=2, max_size=4)) if naming.names else []
    if several:
        common = sorted((own for own in known.values() if own.vertices >= {*several}), key=lambda own: -own.k)
        found = groups_of(result, several)
        assert [groups[group].edges for group in found] == [own.edges for own in common]
        assert groups_of(result, pa.array(several, naming.type), count=1) == found[:1]
        for level in range(4):
            within = [group for group in found if group.k >= level]
            at = group_at(result, map(partial(find_vertex, result), several), level)
            assert at == (within[-1] if within else None)
    assert len(groups) == len(known)
    for group, own in groups.items():
        assert find_group(result, group.component) == group
        assert member_ids(result, group).to_pylist() == sorted(own.vertices)
        assert sets_of_edges(result, group) == own.edges
        if group.dn_graph:
            assert find_dn_graph(result, group.component) == group


@pytest.mark.parametrize("by", ORDERS)
def test_top(many: Result, by: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ties go to the larger λ, then to more vertices, more edges, the smaller id, for any size of batches."""
    rows = many.dn_graphs.to_table().to_pylist()
    first = {"lambda": "lambda", "size": "vertices", "density": "density"}[by]
    rows.sort(key=lambda row: (-row[first], -row["lambda"], -row["vertices"], -row["edges"], row["id"]))
    for count in (1, 3, 17, 40, 100):
        assert top(many, by, count).to_pylist() == rows[:count]
        with monkeypatch.context() as patch:
            patch.setattr(top_k, "PENDING_ROWS", 0)
            assert top(many, by, count).to_pylist() == rows[:count]


def test_ties(tmp_path: Path) -> None:
    """Pairs that are equal in all earlier criteria. λ is invented, so that it does not depend on the size."""
    sizes = {0: (5, 9), 10: (5, 10), 20: (7, 9), 30: (4, 9), 40: (4, 8), 50: (4, 9)}
    levels: dict[Edge, int] = {}
    for start, (vertices, lam) in sizes.items():
        edges = list(itertools.combinations(range(start, start + vertices), 2))
        levels |= dict.fromkeys(edges[: len(edges) - (start == 30)], lam)
    result = made(tmp_path / "out", levels)
    found = {
        by: [(row["vertices"], row["edges"], row["lambda"]) for row in top(result, by).to_pylist()] for by in ORDERS
    }
    assert found["lambda"] == [(5, 10, 10), (7, 21, 9), (5, 10, 9), (4, 6, 9), (4, 5, 9), (4, 6, 8)]
    assert found["size"] == [(7, 21, 9), (5, 10, 10), (5, 10, 9), (4, 6, 9), (4, 5, 9), (4, 6, 8)]
    assert found["density"] == [(5, 10, 10), (7, 21, 9), (5, 10, 9), (4, 6, 9), (4, 6, 8), (4, 5, 9)]


def rewritten(result: Result, table: str, change: Callable[[pa.Table], pa.Table]) -> Result:
    """The result with other rows in one table, and a matching manifest."""
    path = next((result.path / table).iterdir())
    pq.write_table(change(pq.read_table(path)), path, write_page_checksum=True)
    outputs = [
        output.model_copy(update={"bytes": (result.path / output.path).stat().st_size})
        for output in result.manifest.outputs
    ]
    (result.path / "manifest.json").unlink()
    write_manifest(result.path, result.manifest.model_copy(update={"outputs": outputs}))
    return Result(result.path)


def test_a_parent_without_smaller_k_is_damage(tmp_path: Path) -> None:
    """A cycle would never end."""

    def with_k(k: list[int], rows: pa.Table) -> pa.Table:
        return rows.set_column(1, "k", pa.array(k, pa.int32()))

    levels = dict.fromkeys(itertools.combinations(range(4), 2), 2)
    made(tmp_path / "out", levels | {(3, 4): 0})
    sound = Result(tmp_path / "out")
    assert [(group.component, group.k) for group in groups_of(sound, 0)] == [(2, 2), (5, 0)]
    for k in ([2, 2], [2, 3]):
        result = rewritten(sound, "hierarchy", partial(with_k, k))
        with pytest.raises(InputError, match=r"5.*parent.*2"):
            groups_of(result, 0)
    circle = rewritten(result, "hierarchy", lambda rows: rows.set_column(2, "parent", pa.array([2, 2], pa.int64())))
    with pytest.raises(InputError, match=r"2.*parent.*2"):
        groups_of(circle, 0)


def test_members_are_ascending_whatever_the_files(many: Result) -> None:
    """They are sorted only within a file."""
    result = Result(many.path)
    group = find_dn_graph(result, top(result, count=1)["id"][0].as_py())
    known, edges = member_ids(result, group), edges_of(result, group).read_all()
    rows = result.dn_graph_members.to_table()
    turned = rows.take(pa.array(range(len(rows))[::-1]))
    vars(result)["dn_graph_members"] = ds.dataset(turned)
    assert member_ids(result, group) == known
    assert edges_of(result, group).read_all() == edges


def test_a_memory_error_is_not_damage(many: Result) -> None:
    def short(only: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 9 failed")

    result = Result(many.path)
    vars(result)["dn_graphs"] = SimpleNamespace(schema=many.dn_graphs.schema, get_fragments=short)
    with pytest.raises(MemoryError, match=r"malloc.*9"):
        top(result)


def test_facebook(facebook: Result) -> None:
    """The components around vertex 1912 by NetworkX, at a few levels."""
    best = top(facebook, count=3).to_pylist()
    assert [(row["lambda"], row["vertices"], row["edges"], row["triangles"]) for row in best] == [
        (95, 139, 8987, 362768),
        (45, 100, 3970, 88195),
        (29, 46, 940, 11481),
    ]
    around = groups_of(facebook, 1912)
    assert [group.k for group in around] == list(range(95, -1, -1))
    assert around[0] == find_dn_graph(facebook, best[0]["id"])
    table = facebook.edges.to_table()
    levels = table["lambda"].to_pylist()
    ends = list(zip(table[0].to_pylist(), table[1].to_pylist(), strict=True))
    for group in (around[0], around[50], around[83], around[-1]):
        graph = nx.Graph(edge for edge, level in zip(ends, levels, strict=True) if level >= group.k)
        inside = graph.subgraph(nx.node_connected_component(graph, 1912))
        assert member_ids(facebook, group).to_pylist() == sorted(inside)
        assert sets_of_edges(facebook, group) == {(min(edge), max(edge)) for edge in inside.edges}
