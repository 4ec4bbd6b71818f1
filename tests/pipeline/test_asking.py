"""Questions about dense groups: every answer against plain Python, and how little of a result is read for it."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from click.testing import Result as Ended
from distributed import Client
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import strategies
from edgemill.pipeline import (
    Group,
    InputError,
    Result,
    UsageError,
    edges_of,
    find_dn_graph,
    find_group,
    find_vertex,
    foremost,
    groups_of,
    lookup,
    member_ids,
    mine,
    top,
)
from edgemill.pipeline.asking import Order
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.groups import files, graphml
from edgemill.pipeline.manifest import write_manifest
from edgemill.pipeline.new_place import new_file, new_folder
from edgemill.tasks.places import Place
from made import Edge, made

FACEBOOK = Path(__file__).parents[1] / "graphs" / "facebook_combined.parquet"
ORDERS: tuple[Order, ...] = ("lambda", "size", "density")


def call(*arguments: str) -> Ended:
    return CliRunner().invoke(edgemill, arguments)


def sets_of_edges(result: Result, group: Group) -> frozenset[Edge]:
    rows = edges_of(result, group).read_all()
    ends = list(zip(rows[0].to_pylist(), rows[1].to_pylist(), strict=True))
    assert ends == sorted(ends)
    return frozenset(ends)


@given(rows=strategies.edge_lists(14), data=st.data())
@settings(max_examples=20)
def test_every_answer(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Any levels in place of λ, any names, any cuts into files and row groups."""
    naming = data.draw(strategies.namings(14))
    edges = oracles.simple_edges((naming.names[u], naming.names[v]) for u, v in rows)
    levels = {edge: data.draw(st.integers(0, 5)) for edge in sorted(edges)}
    cut = st.integers(1, 9)
    result = made(
        tmp_path_factory.mktemp("made") / "out",
        levels,
        id_type=naming.type,
        alone=naming.names,
        rows_per_file=data.draw(cut),
        rows_per_group=data.draw(cut),
        first_id=data.draw(st.integers(-50, 50)),
    )
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
        assert find_vertex(result, vertex).degree == sum(vertex in edge for edge in edges)
        groups |= dict(zip(found, around, strict=True))
    assert len(groups) == len(known)
    for group, own in groups.items():
        assert find_group(result, group.component) == group
        assert member_ids(result, group).to_pylist() == sorted(own.vertices)
        assert sets_of_edges(result, group) == own.edges
        if group.dn_graph:
            assert find_dn_graph(result, group.component) == group


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Forty DN-graphs of few sizes: whole cliques, and cliques less an edge."""
    levels: dict[Edge, int] = {}
    for number in range(40):
        size = 3 + number % 4
        edges = list(itertools.combinations(range(10 * number, 10 * number + size), 2))
        levels |= dict.fromkeys(edges[: len(edges) - number % 2 * (size > 3)], size - 2)
    return made(tmp_path_factory.mktemp("many") / "out", levels, rows_per_file=13, rows_per_group=5)


@pytest.mark.parametrize("by", ORDERS)
def test_the_first(many: Result, by: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ties go to the larger λ, then to more vertices, more edges, the smaller id, in whatever batches they come."""
    rows = many.dn_graphs.to_table().to_pylist()
    first = {"lambda": "lambda", "size": "vertices", "density": "density"}[by]
    rows.sort(key=lambda row: (-row[first], -row["lambda"], -row["vertices"], -row["edges"], row["id"]))
    for count in (1, 3, 17, 40, 100):
        assert top(many, by, count).to_pylist() == rows[:count]
        with monkeypatch.context() as patch:
            patch.setattr(foremost, "PENDING_ROWS", 0)
            assert top(many, by, count).to_pylist() == rows[:count]


def test_ties(tmp_path: Path) -> None:
    """Two of each two that agree in what comes before; λ is made up, so that it does not go with the size."""
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
    """The result with other rows in a table, and a manifest that says so."""
    path = next((result.path / table).iterdir())
    pq.write_table(change(pq.read_table(path)), path, write_page_checksum=True)
    outputs = [
        output.model_copy(update={"bytes": (result.path / output.path).stat().st_size})
        for output in result.manifest.outputs
    ]
    (result.path / "manifest.json").unlink()
    write_manifest(result.path, result.manifest.model_copy(update={"outputs": outputs}))
    return Result(result.path)


def test_a_hierarchy_that_does_not_rise_is_damage(tmp_path: Path) -> None:
    """A circle would have no end."""

    def with_k(k: list[int], rows: pa.Table) -> pa.Table:
        return rows.set_column(1, "k", pa.array(k, pa.int32()))

    levels = dict.fromkeys(itertools.combinations(range(4), 2), 2)
    made(tmp_path / "out", levels | {(3, 4): 0})
    sound = Result(tmp_path / "out")
    assert [(group.component, group.k) for group in groups_of(sound, 0)] == [(2, 2), (5, 0)]
    for k in ([2, 2], [2, 3]):
        result = rewritten(sound, "hierarchy", partial(with_k, k))
        with pytest.raises(InputError, match="component 5 cannot hold component 2"):
            groups_of(result, 0)
    circle = rewritten(result, "hierarchy", lambda rows: rows.set_column(2, "parent", pa.array([2, 2], pa.int64())))
    with pytest.raises(InputError, match="component 2 cannot hold component 2"):
        groups_of(circle, 0)


def test_members_are_ascending_whatever_the_files(many: Result) -> None:
    """Only within a file they are sorted."""
    result = Result(many.path)
    group = find_dn_graph(result, top(result, count=1)["id"][0].as_py())
    known, edges = member_ids(result, group), edges_of(result, group).read_all()
    rows = result.dn_graph_members.to_table()
    turned = rows.take(pa.array(range(len(rows))[::-1]))
    vars(result)["dn_graph_members"] = ds.dataset(turned)
    assert member_ids(result, group) == known
    assert edges_of(result, group).read_all() == edges


def test_memory_that_is_short_is_no_damage(many: Result) -> None:
    def short(only: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 9 failed")

    result = Result(many.path)
    vars(result)["dn_graphs"] = SimpleNamespace(schema=many.dn_graphs.schema, get_fragments=short)
    with pytest.raises(MemoryError, match="malloc of size 9 failed"):
        top(result)


@pytest.fixture(scope="module")
def facebook(tmp_path_factory: pytest.TempPathFactory, client: Client) -> Result:
    out = tmp_path_factory.mktemp("facebook") / "out"
    return mine(FACEBOOK, out, client=client, partitions=2, row_group_rows=400)


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


Keeps = Callable[[str, dict[str, tuple[Any, Any]]], bool]
"""Table and bounds of a row group's columns to whether it stays whole."""


def damaged(result: Result, folder: Path, keeps: Keeps) -> tuple[Result, dict[str, tuple[int, int]]]:
    """A copy in which the pages of all row groups but some cannot be read; row groups left whole and all, by table."""
    shutil.copytree(result.path, folder)
    counts: dict[str, tuple[int, int]] = {}
    for output in result.manifest.outputs:
        table = Path(output.path).parent.name
        whole, every = counts.get(table, (0, 0))
        content = bytearray((folder / output.path).read_bytes())
        footer = pq.read_metadata(folder / output.path)
        for group in map(footer.row_group, range(footer.num_row_groups)):
            columns = [group.column(number) for number in range(group.num_columns)]
            bounds = {
                column.path_in_schema: (column.statistics.min, column.statistics.max)
                for column in columns
                if column.statistics.has_min_max
            }
            stays = keeps(table, bounds)
            whole, every = whole + stays, every + 1
            for column in columns if not stays else ():
                start = column.dictionary_page_offset or column.data_page_offset
                content[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
        (folder / output.path).write_bytes(content)
        counts[table] = whole, every
    return Result(folder), counts


def within(value: Any, bounds: tuple[Any, Any]) -> bool:
    return bool(bounds[0] <= value <= bounds[1])


@pytest.mark.parametrize("kind", ["integers", "strings"])
def test_a_vertex_is_looked_up(facebook: Result, tmp_path: Path, kind: str) -> None:
    """All pages but those that may hold the vertex, one of its groups or its DN-graph are beyond reading."""
    if kind == "strings":
        rows = pq.read_table(FACEBOOK)
        names = [pa.array([f"user {vertex}" for vertex in column.to_pylist()]) for column in rows.columns]
        pq.write_table(pa.table(names, names=["src", "dst"]), tmp_path / "rows.parquet")
        facebook = mine(tmp_path / "rows.parquet", tmp_path / "whole", client=None, row_group_rows=400)
    vertex: Any = "user 1912" if kind == "strings" else 1912
    known = groups_of(facebook, vertex)
    ids = [group.component for group in known]

    def needed(table: str, bounds: dict[str, tuple[Any, Any]]) -> bool:
        if table == "vertices":
            return within(vertex, bounds["id"])
        if table == "hierarchy":
            return any(within(component, bounds["component"]) for component in ids)
        return table == "dn_graphs" and within(ids[0], bounds["id"])

    result, counts = damaged(facebook, tmp_path / "damaged", needed)
    assert groups_of(result, vertex) == known
    assert groups_of(result, vertex, 1) == known[:1]
    assert counts["vertices"][0] == 1 < counts["vertices"][1]
    assert counts["edges"][0] == 0 < counts["edges"][1]
    for table in (result.edges, result.vertices):
        with pytest.raises(OSError, match="page"):
            table.to_table()


def test_what_was_read_is_not_read_again(many: Result, tmp_path: Path) -> None:
    shutil.copytree(many.path, tmp_path / "out")
    result = Result(tmp_path / "out")
    known = groups_of(result, 30)
    for output in result.manifest.outputs:
        (result.path / output.path).unlink()
    assert groups_of(result, 30) == known == groups_of(many, 30)


def test_several_threads_read_footers_once(many: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    result, read, together = Result(many.path), lookup._row_groups, Barrier(8)
    made: list[Any] = []

    def counted(place: Place, table: Any) -> list[lookup.RowGroup]:
        made.append(table)
        return read(place, table)

    def asked(vertex: int) -> list[Group]:
        together.wait()
        return groups_of(result, vertex)

    vertices = [*range(0, 400, 10), *range(0, 400, 10)]
    known = [groups_of(many, vertex) for vertex in vertices]
    monkeypatch.setattr(lookup, "_row_groups", counted)
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(asked, vertices)) == known
    assert sorted(map(id, made)) == sorted(map(id, (result.vertices, result.hierarchy, result.dn_graphs)))


def test_a_subgraph_is_looked_up(facebook: Result, tmp_path: Path) -> None:
    """All pages but those that may hold its members or edges are beyond reading."""
    group = find_dn_graph(facebook, top(facebook, count=2).to_pylist()[1]["id"])
    members = member_ids(facebook, group).to_pylist()
    known = edges_of(facebook, group).read_all()

    def needed(table: str, bounds: dict[str, tuple[Any, Any]]) -> bool:
        if table == "edges":
            return bounds["lambda"][1] >= group.k and any(within(member, bounds["src"]) for member in members)
        if table == "dn_graph_members":
            return within(group.component, bounds["dn_graph"])
        return table == "dn_graphs" and within(group.component, bounds["id"])

    result, counts = damaged(facebook, tmp_path / "damaged", needed)
    found = find_dn_graph(result, group.component)
    assert found == group
    assert edges_of(result, found).read_all() == known
    assert 0 < counts["edges"][0] < counts["edges"][1] / 2
    assert counts["vertices"][0] == counts["hierarchy"][0] == 0


@pytest.mark.parametrize("letter", ["x", "λ"])
def test_ids_too_long_for_statistics(tmp_path: Path, letter: str) -> None:
    """Arrow leaves them out of the footer."""
    names = [letter * 5000 + str(number) for number in range(8)]
    levels = dict.fromkeys(itertools.combinations(names[:4], 2), 2) | {(names[4], names[5]): 0}
    result = made(tmp_path / "out", levels, id_type=pa.string(), alone=names[6:], rows_per_group=3)
    footer = pq.read_metadata(next((result.path / "vertices").iterdir()))
    assert not footer.row_group(0).column(0).statistics.has_min_max
    assert [group.dn_graph for group in groups_of(result, names[2])] == [True]
    assert [group.k for group in groups_of(result, names[4])] == [0]
    assert groups_of(result, names[7]) == []
    assert sets_of_edges(result, groups_of(result, names[2])[0]) == set(itertools.combinations(names[:4], 2))
    with pytest.raises(UsageError, match="there is no vertex"):
        groups_of(result, letter * 5000)


ODD = ["plain", "a,b", 'say "hi"', "<&>'", "line\nbreak", "tab\there", "", "é漢", " spaces "]
"""Ids that CSV and XML have to quote."""


@pytest.fixture
def odd(tmp_path: Path) -> Result:
    """A clique on odd ids, and a path out of it."""
    levels = dict.fromkeys(itertools.combinations(sorted(ODD), 2), len(ODD) - 2)
    return made(
        tmp_path / "odd", levels | {("plain", "z,1"): 0, ("z,1", "z,2"): 0}, id_type=pa.string(), rows_per_group=4
    )


def read_back(content: bytes, form: str) -> list[tuple[Any, ...]]:
    """The rows of the edges, sorted; all as text but in Parquet."""
    if form == "parquet":
        return [tuple(row.values()) for row in pq.read_table(io.BytesIO(content)).to_pylist()]
    if form == "csv":
        header, *rows = csv.reader(io.StringIO(content.decode(), newline=""))
        assert header == ["src", "dst", "support", "lambda"]
        return sorted((source, target, int(support), int(lam)) for source, target, support, lam in rows)
    graph = nx.read_graphml(io.BytesIO(content))
    return sorted((*sorted(edge[:2]), edge[2]["support"], edge[2]["lambda"]) for edge in graph.edges(data=True))


@pytest.mark.parametrize("form", ["parquet", "csv", "graphml"])
def test_a_group_as_a_file(odd: Result, tmp_path: Path, form: str) -> None:
    dense = top(odd).to_pylist()[0]["id"]
    inside = find_dn_graph(odd, dense)
    whole = groups_of(odd, "z,2")[0]
    for option, group in (("--dn-graph", inside), ("--component", inside), ("--component", whole)):
        rows = sorted(tuple(row.values()) for row in edges_of(odd, group).read_all().to_pylist())
        arguments = ["subgraph", str(odd.path), option, str(group.component)]
        file = tmp_path / f"group.{form}"
        for more in (["--output", str(file)], ["--output", str(file), "--overwrite", "--format", form]):
            ended = call(*arguments, *more)
            assert (ended.exit_code, ended.output) == (0, "")
            assert read_back(file.read_bytes(), form) == rows
        piped = call(*arguments, "--format", form)
        assert piped.exit_code == 0
        assert piped.stdout_bytes == file.read_bytes()
        file.unlink()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["odd"]


def test_graphml_has_all_vertices_and_integers_read_back(many: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphml, "NODES", 2)
    graph = top(many, count=1).to_pylist()[0]
    ended = call("subgraph", str(many.path), "--dn-graph", str(graph["id"]), "--format", "graphml")
    read = nx.read_graphml(io.BytesIO(ended.stdout_bytes), node_type=int)
    assert sorted(read) == member_ids(many, find_dn_graph(many, graph["id"])).to_pylist()
    assert ended.stdout.count("<node id=") == graph["vertices"]
    assert (len(read), read.number_of_edges(), read.is_directed()) == (graph["vertices"], graph["edges"], False)


@pytest.mark.parametrize("letter", ["\x00", "\x0c", "\x1f", "\ufffe", "\uffff"])
def test_what_xml_cannot_hold(tmp_path: Path, letter: str) -> None:
    levels = {(f"a{letter}", "b"): 1, (f"a{letter}", "c"): 1, ("b", "c"): 1}
    result = made(tmp_path / "out", levels, id_type=pa.string())
    file = tmp_path / "group.graphml"
    ended = call("subgraph", str(result.path), "--dn-graph", "5", "--output", str(file))
    assert ended.exit_code == 2
    assert f"vertex {f'a{letter}'!r} has a character that XML cannot hold: choose parquet or csv" in ended.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("name", "form"),
    [
        (None, "csv"),
        ("x.CSV", "csv"),
        ("x.Parquet", "parquet"),
        ("a.graphml", "graphml"),
        ("a.csv.gz", "csv"),
        ("", "csv"),
    ],
)
def test_formats_by_the_ends_of_names(name: str | None, form: str) -> None:
    assert files.format_of(name) == form


def test_columns_that_csv_has_to_quote(tmp_path: Path) -> None:
    names = ('a,"b"', "to\nline")
    made(tmp_path / "out", {(1, 2): 1, (1, 3): 1, (2, 3): 1}, names=names, first_id=0)
    ended = call("subgraph", str(tmp_path / "out"), "--component", "0")
    header, *rows = csv.reader(io.StringIO(ended.stdout_bytes.decode(), newline=""))
    assert (header, len(rows)) == ([*names, "support", "lambda"], 3)


def test_parquet_is_nothing_for_a_terminal(many: Result) -> None:
    terminal, screen = os.openpty()
    command = [sys.executable, "-m", "edgemill.pipeline", "subgraph", str(many.path), "--dn-graph", "5"]
    ended = subprocess.run([*command, "--format", "parquet"], stdout=screen, stderr=subprocess.PIPE, text=True)
    os.close(screen)
    os.close(terminal)
    assert ended.returncode == 2
    assert "Parquet is not for a terminal: add --output FILE" in ended.stderr


def test_what_comes_meanwhile_stays(tmp_path: Path) -> None:
    file, folder = tmp_path / "file", tmp_path / "folder"
    with pytest.raises(UsageError, match=r"file exists: choose another"), new_file(file) as made_file:
        made_file.write(b"ours")
        file.write_text("theirs")
    with pytest.raises(UsageError, match=r"folder exists: choose another"), new_folder(folder, ["a"]) as made_folder:
        (made_folder / "a").touch()
        folder.mkdir()
    assert (file.read_text(), list(folder.iterdir())) == ("theirs", [])
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]


def test_a_folder_that_cannot_be_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, rename = tmp_path / "folder", os.rename
    with new_folder(folder, ["a"]) as made_folder:
        (made_folder / "a").write_text("earlier")

    def fails(old: Path, new: Path) -> None:
        if new == folder and not str(old).endswith(".old"):
            raise OSError(5, "Input/output error")
        rename(old, new)

    monkeypatch.setattr(os, "rename", fails)
    with pytest.raises(OSError, match="Input/output"), new_folder(folder, ["a"], overwrite=True) as made_folder:
        (made_folder / "a").write_text("later")
    assert (folder / "a").read_text() == "earlier"
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_a_link_into_the_result_is_in_it(many: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(many.path)
    monkeypatch.setenv("HOME", str(many.path))
    for name in (tmp_path / "link" / "group.csv", "~/group.csv"):
        ended = call("subgraph", str(many.path), "--dn-graph", "5", "--output", str(name))
        assert (ended.exit_code, "lies in the result" in ended.stderr) == (2, True)


def test_files_that_are_there_stay(many: Result, tmp_path: Path) -> None:
    file = tmp_path / "group.csv"
    file.write_text("mine")
    group = str(top(many, count=1)["id"][0])
    arguments = ["subgraph", str(many.path), "--dn-graph", group, "--output"]
    for place, text in {
        file: "exists: choose another, or replace it with --overwrite",
        tmp_path: "is a folder: name a file",
        tmp_path / "absent" / "group.csv": "cannot write",
        many.path / "group.csv": "lies in the result",
        "nowhere://bucket/group.csv": "nowhere://bucket/group.csv cannot be opened",
    }.items():
        ended = call(*arguments, str(place))
        assert ended.exit_code == 2
        assert text in ended.stderr
    assert (file.read_text(), [entry.name for entry in tmp_path.iterdir()]) == ("mine", ["group.csv"])
    assert call(*arguments, str(file), "--overwrite").exit_code == 0
    assert file.read_text().startswith("src,dst,support,lambda\n")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ended = call(*arguments, str(pipe), "--overwrite")
    assert (ended.exit_code, pipe.is_fifo()) == (2, True)
    assert "is a device or a pipe, which no file replaces" in ended.stderr


@pytest.mark.parametrize("arguments", [["subgraph", "OUT", "--dn-graph", "5"], ["top", "OUT"], ["--help"]])
def test_a_full_disk(many: Result, arguments: list[str]) -> None:
    """Written at once or at the end, as Python is told or not."""
    words = (str(many.path) if word == "OUT" else word for word in arguments)
    command = [sys.executable, "-m", "edgemill.pipeline", *words]
    held = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=held)
    assert ended.returncode == 7
    assert ended.stderr == "Error: no room left on the disk: No space left on device\n"


def test_the_commands_print(many: Result) -> None:
    out = str(many.path)
    rows = top(many, "size", 3).to_pylist()
    ended = call("top", out, "--by", "size", "-n", "3", "--json")
    assert [json.loads(line) for line in ended.stdout.splitlines()] == rows
    lines = call("top", out, "--by", "size", "-n", "3").stdout.splitlines()
    assert lines[0].split() == ["DN-graph", "lambda", "vertices", "edges", "density", "triangles", "parent", "members"]
    assert [int(line.split()[0]) for line in lines[1:]] == [row["id"] for row in rows]
    assert len(call("top", out).stdout.splitlines()) == 21

    (group,) = groups_of(many, 30)
    ended = call("of", out, "30", "--json")
    assert [json.loads(line) for line in ended.stdout.splitlines()] == [vars(group)]
    assert call("of", out, "30").stdout.splitlines()[0] == "vertex 30: lambda 4, degree 5, 7 triangles"
    assert "DN-graph" in call("of", out, "30", "-n", "1").stdout


def test_odd_ids_on_a_terminal(odd: Result) -> None:
    lines = call("of", str(odd.path), "line\nbreak").stdout.splitlines()
    assert lines[0] == f"vertex line\\x0abreak: lambda {len(ODD) - 2}, degree {len(ODD) - 1}, 7 triangles"
    assert [line.split()[5:] for line in lines[2:]] == [["DN-graph"], ["connected", "component"]]


def test_a_vertex_without_edges_and_a_negative_one(tmp_path: Path) -> None:
    result = made(tmp_path / "out", {(-7, -3): 0}, alone=[-9])
    assert call("of", str(result.path), "-7").stdout.splitlines()[0].startswith("vertex -7: lambda 0")
    assert groups_of(result, -9) == []
    assert "It has no edges, so it is in no group." in call("of", str(result.path), "-9").stdout
    assert top(result).num_rows == 0
    assert call("top", str(result.path), "--json").stdout == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["of", "OUT", "1000"], "there is no vertex 1000 in OUT"),
        (["of", "OUT", "anna"], "'anna' is no id of OUT, whose ids are int64"),
        (["of", "OUT", "1_0"], "'1_0' is no id of OUT, whose ids are int64"),
        (["of", "OUT", str(2**70)], "is no id of OUT"),
        (["of", "OUT"], "Missing argument 'VERTEX'"),
        (["of", "absent", "1"], "there is no result at absent"),
        (["top", "OUT", "-n", "0"], "0 is not in the range"),
        (["top", "OUT", "--by", "colour"], "'colour' is not one of"),
        (["subgraph", "OUT", "--dn-graph", "6"], "there is no DN-graph 6 in OUT: edgemill top lists some"),
        (["subgraph", "OUT", "--dn-graph", str(2**70)], "there is no DN-graph"),
        (["subgraph", "OUT", "--component", "6"], "there is no component 6 in OUT"),
        (["subgraph", "OUT"], "say which group: --dn-graph ID, --component ID or --track N"),
        (["subgraph", "OUT", "--component", "5", "--dn-graph", "5"], "say which group"),
    ],
)
def test_wrong_questions_exit_2(many: Result, arguments: list[str], text: str) -> None:
    out = str(many.path)
    ended = call(*(out if word == "OUT" else word for word in arguments))
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert text.replace("OUT", out) in ended.stderr


def test_wrong_questions_in_python(many: Result, odd: Result) -> None:
    with pytest.raises(UsageError, match="ordered by lambda, size, density, not by 'id'"):
        top(many, "id")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="ask for 1 or more"):
        top(many, count=0)
    with pytest.raises(UsageError, match=r"5 is no id of .*, whose ids are string"):
        groups_of(odd, 5)
    with pytest.raises(UsageError, match=r"3\.5 is no id of .*, whose ids are int64"):
        groups_of(many, 3.5)  # type: ignore[arg-type]
    assert groups_of(many, np.int64(30)) == groups_of(many, 30) == groups_of(many, "30")
    with pytest.raises(UsageError, match="is a component that holds others"):
        find_dn_graph(odd, groups_of(odd, "z,2")[0].component)


@pytest.mark.parametrize(
    "command", [["top"], ["of", "1"], ["subgraph", "--dn-graph", "5"], ["subgraph", "--component", "5"]]
)
@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"dense": False}, "was made by an earlier release: run again"),
        ({"dense": False, "converged": False}, "did not converge"),
    ],
)
def test_results_without_dense_groups(tmp_path: Path, command: list[str], how: dict[str, Any], why: str) -> None:
    made(tmp_path / "out", {(1, 2): 0}, **how)
    ended = call(command[0], str(tmp_path / "out"), *command[1:])
    assert ended.exit_code == 2
    assert f"Error: {tmp_path / 'out'} has no table " in ended.stderr
    assert why in ended.stderr


def test_damage_is_told(many: Result, tmp_path: Path) -> None:
    group = find_dn_graph(many, top(many, count=1).to_pylist()[0]["id"])
    damaged(many, tmp_path / "out", lambda table, bounds: False)
    for arguments in (["top", "OUT"], ["of", "OUT", "30"], ["subgraph", "OUT", "--component", str(group.component)]):
        ended = call(*(str(tmp_path / "out") if word == "OUT" else word for word in arguments))
        assert ended.exit_code == 3
        assert f"Error: the result is damaged: {tmp_path / 'out'}" in ended.stderr
    only_edges, _ = damaged(many, tmp_path / "only edges", lambda table, bounds: table != "edges")
    with pytest.raises(InputError, match="the result is damaged"):
        edges_of(only_edges, group).read_all()
    file = tmp_path / "group.csv"
    ended = call("subgraph", str(only_edges.path), "--component", str(group.component), "--output", str(file))
    assert ended.exit_code == 3
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["only edges", "out"]


@pytest.mark.parametrize("wrong", [{"vertices": 9}, {"edges": 9}])
def test_counts_that_do_not_agree(many: Result, wrong: dict[str, Any]) -> None:
    """What is found in a group is held against what its row says."""
    group = find_dn_graph(many, top(many, count=1).to_pylist()[0]["id"])
    with pytest.raises(InputError, match=f"component {group.component} has .* not 9"):
        edges_of(many, replace(group, **wrong)).read_all()


def test_in_an_object_store(many: Result) -> None:
    place = Place("memory://asking/many")
    place.files.put(str(many.path), place.path(), recursive=True)
    try:
        result = Result(place.url)
        assert top(result) == top(many)
        assert groups_of(result, 30) == groups_of(many, 30)
        (group,) = groups_of(many, 30)
        assert edges_of(result, group).read_all() == edges_of(many, group).read_all()
        assert call("of", place.url, "30").stdout == call("of", str(many.path), "30").stdout
    finally:
        place.remove("")


def test_a_group_is_written_to_an_object_store(many: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole or not at all, by way of the local disk, where nothing stays."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    place, group = Place("memory://groups"), str(top(many, count=1)["id"][0])
    files, arguments = place.files, ["subgraph", str(many.path), "--dn-graph", group]
    url, target = f"{place.url}/in/group.csv", place.path("in/group.csv")
    try:
        assert call(*arguments, "--output", url).exit_code == 0
        assert files.cat_file(target) == call(*arguments).stdout_bytes
        files.pipe_file(target, b"mine")
        for output, text in {url: "exists: choose another", f"{place.url}/in": "is a folder: name a file"}.items():
            ended = call(*arguments, "--output", output)
            assert ended.exit_code == 2
            assert text in ended.stderr
        with pytest.raises(ZeroDivisionError), new_file(url, overwrite=True) as file:
            file.write(b"half")
            raise ZeroDivisionError
        with new_file(url, overwrite=True) as file:
            file.write(b"whole")
            file.flush()
            assert files.cat_file(target) == b"mine"
        assert files.cat_file(target) == b"whole"
        assert call(*arguments, "--output", url, "--overwrite").exit_code == 0
        assert files.cat_file(target) == call(*arguments).stdout_bytes
        files.put(str(many.path), place.path("out"), recursive=True)
        ended = call(arguments[0], f"{place.url}/out", *arguments[2:], "--output", f"{place.url}/out/group.csv")
        assert (ended.exit_code, "lies in the result" in ended.stderr) == (2, True)
        assert files.find(place.path("in")) == [target]
    finally:
        place.remove("")
    assert not list(tmp_path.iterdir())
