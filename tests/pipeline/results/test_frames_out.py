"""Tables of a result, and the edges of a group, as frames and graphs of other libraries."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
import shutil
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import igraph
import networkx as nx
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import edgemill
import oracles
from edgemill.pipeline import InputError, Result, UsageError, edges_of, find_group, ktruss
from edgemill.pipeline.output.manifest import write_manifest
from edgemill.tasks.publish.result_columns import edge_columns
from made import Edge, made
from runs import EDGE_COLUMNS

TABLES = ("edges", "vertices", "hierarchy", "dn_graphs", "dn_graph_members")


@pytest.fixture(scope="module", params=["integers", "strings"])
def result(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Two cliques joined by a path, and a vertex without edges, in several files of several row groups."""
    clique = dict.fromkeys(itertools.combinations(range(5), 2), 3)
    other = dict.fromkeys(itertools.combinations(range(6, 10), 2), 2)
    levels: dict[Edge, int] = clique | other | {(4, 5): 0, (5, 6): 0}
    folder = tmp_path_factory.mktemp("made") / "out"
    if request.param == "integers":
        return made(folder, levels, alone=[77], rows_per_file=10, rows_per_group=4)
    named = {(f"v{u}", f"v{v}"): value for (u, v), value in levels.items()}
    return made(folder, named, id_type=pa.string(), alone=["é"], rows_per_file=10, rows_per_group=4)


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """Rows of a frame of pandas or Dask, with None for null."""
    frame = frame.compute(scheduler="synchronous") if hasattr(frame, "compute") else frame
    return [
        {name: None if value is pd.NA else value for name, value in row.items()} for row in frame.to_dict("records")
    ]


@pytest.mark.parametrize("name", TABLES)
def test_frames_of_tables(result: Result, name: str) -> None:
    table = getattr(result, name)
    expected = ds.dataset(sorted((result.path / name).glob("*.parquet"))).to_table()
    assert table.to_table() == table.to_arrow() == expected
    rows = expected.to_pylist()
    assert table.to_polars().to_dicts() == rows
    assert rows_of(table.to_pandas()) == rows
    lazy = table.to_dask()
    assert rows_of(lazy) == rows
    files = list(table.get_fragments())
    assert lazy.npartitions == sum(file.metadata.num_row_groups for file in files) > len(files) - 1
    numbers = [
        field.name for field in expected.schema if not pa.types.is_string(field.type)
    ]  # Dask has its own type for text
    assert lazy.dtypes[numbers].to_dict() == table.to_pandas().dtypes[numbers].to_dict()
    first = expected.column_names[:1]
    assert table.to_arrow(first) == pa.table(
        table.to_dask(first).compute(scheduler="synchronous"), expected.select(first).schema
    )
    assert list(table.to_pandas(first)) == table.to_polars(first).columns == first


def test_nullable_ids_stay_integers(result: Result) -> None:
    components = result.vertices.to_pandas()["component"]
    assert components.dtype == pd.Int64Dtype() and components.isna().sum() == 1
    assert result.hierarchy.to_pandas()["parent"].dtype == pd.Int64Dtype()


def test_part_of_a_table(result: Result) -> None:
    dense = pc.field("lambda") >= 3
    expected = [row for row in result.edges.to_table().to_pylist() if row["lambda"] >= 3]
    assert len(expected) == 10
    filtered = result.edges.filter(dense)
    for found in (
        result.edges.to_arrow(filter=dense).to_pylist(),
        filtered.to_arrow().to_pylist(),
        result.edges.to_polars(filter=dense).to_dicts(),
        rows_of(result.edges.to_pandas(filter=dense)),
        rows_of(filtered.to_pandas()),
        rows_of(filtered.to_dask()),
        filtered.filter(pc.field("support") > 0).to_polars().to_dicts(),
    ):
        assert found == expected
    assert filtered.to_networkx().number_of_edges() == 10
    assert "some of 18 rows" in repr(filtered)


def test_a_table_is_still_a_dataset(result: Result) -> None:
    """DuckDB finds it by the name of a variable and reads only what it needs; polars scans it lazily."""
    edges = result.edges
    assert isinstance(edges, ds.Dataset)
    assert duckdb.execute('SELECT count(*) FROM edges WHERE "lambda" = 2').fetchall() == [(6,)]
    plan = duckdb.execute('EXPLAIN SELECT support FROM edges WHERE "lambda" = 2').fetchall()[0][1]
    assert "Filters" in plan and "Projections" in plan
    assert pl.scan_pyarrow_dataset(edges).filter(pl.col("lambda") == 2).collect().height == 6
    assert pl.DataFrame(edges).height == pa.table(edges).num_rows == edges.count_rows() == 18


def test_repr_of_a_table(result: Result) -> None:
    kind = result.edges.schema.field(0).type
    columns = ", ".join([f"src {kind}", f"dst {kind}", *(f"{own.name} {own.type}" for own in edge_columns(True))])
    assert repr(result.edges) == f"edges of {result.place}: 18 rows ({columns})"


def expected_graph(result: Result) -> nx.Graph:
    graph = nx.Graph()
    for row in result.edges.to_table().to_pylist():
        graph.add_edge(row["src"], row["dst"], **{name: row[name] for name in EDGE_COLUMNS})
    return graph


def same(left: nx.Graph, right: nx.Graph) -> bool:
    """The same nodes, edges and attributes."""
    return bool(
        dict(left.nodes(data=True)) == dict(right.nodes(data=True))
        and nx.to_dict_of_dicts(left) == nx.to_dict_of_dicts(right)
    )


def from_igraph(graph: igraph.Graph) -> nx.Graph:
    """Nodes are the names of vertices, with the attributes that are not None."""
    found = nx.Graph()
    names = graph.vs["name"]
    for vertex in graph.vs:
        others = vertex.attributes().items()
        found.add_node(
            vertex["name"], **{name: value for name, value in others if name != "name" and value is not None}
        )
    for edge in graph.es:
        found.add_edge(*(names[end] for end in edge.tuple), **edge.attributes())
    assert not graph.is_directed() and found.number_of_edges() == graph.ecount()
    return found


def test_graphs_of_edges_and_vertices(result: Result) -> None:
    expected = expected_graph(result)
    assert same(result.edges.to_networkx(), expected)
    assert same(from_igraph(result.edges.to_igraph()), expected)
    for row in result.vertices.to_table().to_pylist():
        expected.add_node(row.pop("id"), **{name: value for name, value in row.items() if value is not None})
    assert expected.number_of_nodes() == 11
    assert same(result.vertices.to_networkx(), expected)
    assert same(from_igraph(result.vertices.to_igraph()), expected)


def test_attributes_of_vertices_are_those_of_nodes(tmp_path: Path) -> None:
    given: dict[str, Any] = {"name": (pa.string(), {1: "a", 3: "c"}), "score": (pa.int64(), {1: 9})}
    graph = made(tmp_path / "out", dict.fromkeys([(1, 2), (1, 3), (2, 3)], 1), attributes=given)
    nodes = graph.vertices.to_networkx().nodes
    assert [(nodes[id].get("name"), nodes[id].get("score")) for id in (1, 2, 3)] == [
        ("a", 9),
        (None, None),
        ("c", None),
    ]
    vertices = graph.vertices.to_igraph().vs
    assert (vertices["name"], vertices["name_"], vertices["score"]) == ([1, 2, 3], ["a", None, "c"], [9, None, None])
    assert vertices["degree"] == [2, 2, 2]


def test_graphs_of_dn_graphs(result: Result) -> None:
    levels = {(row["src"], row["dst"]): row["lambda"] for row in result.edges.to_table().to_pylist()}
    graphs = oracles.maximal_dn_graphs(levels)
    assert len(graphs) == 2
    for found in (result.dn_graphs.to_networkx(), from_igraph(result.dn_graphs.to_igraph())):
        parts = {
            frozenset(tuple(sorted(edge)) for edge in found.subgraph(part).edges)
            for part in nx.connected_components(found)
        }
        assert parts == {edges for _, edges in graphs}
        names = dict(found.nodes(data="dn_graph"))
        members = result.dn_graph_members.to_table().to_pylist()
        assert names == {row["vertex"]: row["dn_graph"] for row in members}
    assert result.dn_graphs.filter(pc.field("lambda") == 3).to_networkx().number_of_edges() == 10


def test_the_hierarchy_as_a_forest(result: Result) -> None:
    forest = result.hierarchy.to_networkx()
    rows = result.hierarchy.to_table().to_pylist()
    assert set(forest.edges) == {(row["parent"], row["component"]) for row in rows if row["parent"] is not None}
    assert {node: forest.nodes[node]["k"] for node in forest} == {row["component"]: row["k"] for row in rows}
    assert nx.is_forest(forest)


@pytest.mark.parametrize(
    ("name", "graph"), [("dn_graph_members", "networkx"), ("dn_graph_members", "igraph"), ("hierarchy", "igraph")]
)
def test_tables_that_do_not_convert_to_graphs(result: Result, name: str, graph: str) -> None:
    with pytest.raises(UsageError, match=rf"{name}.*converted"):
        getattr(getattr(result, name), f"to_{graph}")()


def test_the_edges_of_a_group(result: Result) -> None:
    row = next(row for row in result.dn_graphs.to_table().to_pylist() if row["lambda"] == 3)
    edges = edges_of(result, find_group(result, row["id"]))
    expected = [row for row in result.edges.to_table().to_pylist() if row["lambda"] == 3]
    for _ in range(2):  # each call reads anew
        assert edges.to_arrow().to_pylist() == expected
        assert edges.to_polars().to_dicts() == expected
        assert rows_of(edges.to_pandas()) == expected
        assert rows_of(edges.to_dask()) == expected
        assert pl.DataFrame(edges).to_dicts() == expected
    complete = nx.complete_graph(5)
    assert nx.is_isomorphic(edges.to_networkx(), complete)
    assert nx.is_isomorphic(from_igraph(edges.to_igraph()), complete)
    assert {value for *_, value in edges.to_networkx().edges(data="lambda")} == {3}
    assert duckdb.execute("SELECT count(*) FROM edges").fetchall() == [(10,)]
    assert "edges of a group (src" in repr(edges)
    assert edges.schema == result.edges.schema
    assert edges.read_all().to_pylist() == expected  # a reader can be read once
    assert edges.read_all().num_rows == 0
    assert pa.Table.from_batches(edges_of(result, find_group(result, row["id"]))).to_pylist() == expected


@pytest.mark.parametrize(
    ("package", "extra"),
    [
        ("pandas", "pip install 'edgemill[pandas]'"),
        ("polars", "pip install 'edgemill[polars]'"),
        ("networkx", "pip install 'edgemill[networkx]'"),
        ("igraph", "pip install 'edgemill[igraph]'"),
        ("cudf", "install cudf as its documentation says"),
    ],
)
def test_missing_package(result: Result, monkeypatch: pytest.MonkeyPatch, package: str, extra: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError) as error:
        getattr(result.edges, f"to_{package}")()
    assert str(error.value).startswith(f"to_{package}() needs the package {package}, which cannot be imported")
    assert str(error.value).endswith(extra)


def test_dask_needs_pandas(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"to_dask\(\).*package"):
        result.edges.to_dask()


@pytest.mark.parametrize(
    "ask",
    [
        lambda result: result.edges.to_pandas(),
        lambda result: result.edges.to_polars(),
        lambda result: result.edges.to_networkx(),
        lambda result: result.vertices.to_igraph(),
        lambda result: result.dn_graphs.to_networkx(),
    ],
)
def test_damage_is_reported(tmp_path: Path, ask: Callable[[Result], Any]) -> None:
    result = made(tmp_path / "out", dict.fromkeys(itertools.combinations(range(20), 2), 18))
    file = min((result.path / "edges").iterdir())
    content = bytearray(file.read_bytes())
    content[20:60] = bytes(40)
    file.write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        ask(Result(tmp_path / "out"))


def test_a_temporary_result_is_removed_with_its_last_reference(tmp_path: Path) -> None:
    """A table and its result do not form a cycle. The folder is removed with the last of them."""
    result = made(tmp_path / "out", {(1, 2): 0})
    table = result.edges
    gone = weakref.ref(result)
    gc.disable()
    try:
        del result
        assert gone() is None
        assert table.to_pandas().shape == (1, 2 + len(EDGE_COLUMNS))
        assert table.to_networkx().number_of_edges() == 1
    finally:
        gc.enable()


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_like_a_frame(result: Result, name: str, tmp_path: Path) -> None:
    table = getattr(result, name)
    rows = table.to_arrow()
    first, *others = rows.column_names
    assert len(table) == len(rows) and bool(table.filter(pc.field(first).is_null()))
    assert table[first] == rows[first] and table[others] == rows.select(others)
    assert table.head() == rows.slice(0, 5) and table.head(2, columns=others) == rows.slice(0, 2).select(others)
    few = table.filter(pc.field(others[-1]).is_valid())
    assert len(few) == few.count_rows() == len(rows) - rows[others[-1]].null_count
    with pytest.raises(UsageError, match=rf"{name}.*'zebra'.*{first}"):
        table["zebra"]
    for wrong in (0, slice(3), pc.field(first) == 1):
        with pytest.raises(TypeError):
            table[wrong]
    with pytest.raises(TypeError):
        iter(table)
    table.to_parquet(tmp_path / "some.parquet", columns=others, filter=pc.field(others[-1]).is_valid())
    table.to_parquet(tmp_path / "all.parquet")
    table.to_parquet(tmp_path / "all.parquet")  # replaces it
    assert pq.read_table(tmp_path / "all.parquet") == rows
    assert pq.read_table(tmp_path / "some.parquet") == few.to_arrow(others)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.parquet", "some.parquet"]
    with pytest.raises(UsageError, match=r"none/all.parquet.*such"):
        table.to_parquet(tmp_path / "none/all.parquet")


def _copies(thing: Any) -> list[Any]:
    return [pickle.loads(pickle.dumps(thing)), copy.copy(thing), copy.deepcopy(thing)]


def test_copies_of_a_result_and_its_tables(result: Result, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also where the other process has another working folder, of filtered tables, and of edges of groups."""
    monkeypatch.chdir(result.path.parent)
    here = Result(result.path.name)
    sent = pickle.dumps((here, here.edges))
    monkeypatch.chdir(tmp_path)
    got, edges = pickle.loads(sent)
    assert (got.manifest, len(edges), edges.to_arrow()) == (result.manifest, len(result.edges), result.edges.to_arrow())
    for name in TABLES:
        table = getattr(result, name)
        for other in _copies(table):
            assert type(other) is type(table) and repr(other) == repr(table) and other.to_arrow() == table.to_arrow()
    few = result.vertices.filter(pc.field("lambda") == 3).filter(pc.field("degree") == 4)
    for other in _copies(few):
        assert other.to_arrow() == few.to_arrow() and 0 < len(other) < len(result.vertices)
        assert other.to_networkx().number_of_edges() == result.vertices.to_networkx().number_of_edges()
    group = result.dn_graphs.to_arrow()["id"][0].as_py()
    for edges in (edges_of(result, group), ktruss(result, 4)):
        whole = edges.to_arrow()
        next(iter(edges))  # a copy reads from the start
        for other in _copies(edges):
            assert other.read_all() == whole and other.schema == whole.schema
    for other in _copies(find_group(result, group)):
        assert other == find_group(result, group)


def test_a_pickled_result_that_was_replaced(tmp_path: Path) -> None:
    sent = pickle.dumps(made(tmp_path / "out", {(1, 2): 0}))
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(UsageError, match="out"):
        pickle.loads(sent)
    manifest = made(tmp_path / "out", {(1, 3): 0}).manifest
    (tmp_path / "out/manifest.json").unlink()
    write_manifest(tmp_path / "out", manifest.model_copy(update={"run": "20260101T000000-abcdef"}))
    with pytest.raises(InputError, match=r"pickled.*20260101T000000-abcdef"):
        pickle.loads(sent)


def test_a_result_is_opened_by_its_path(result: Result, tmp_path: Path) -> None:
    for path in (result.path, str(result.path), result.place):
        assert edgemill.open(path).manifest == result.manifest
    with pytest.raises(UsageError, match="none"):
        edgemill.open(tmp_path / "none")
