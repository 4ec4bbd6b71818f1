"""The k-truss of one k, compared with NetworkX."""

from __future__ import annotations

import io
import itertools
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import strategies
from edgemill.pipeline import GroupEdges, InputError, Result, UsageError, ktruss, ktruss_groups, members_of
from edgemill.pipeline.queries.trusses import truss_group
from examples import examples
from in_process import call
from known_graphs import FACEBOOK
from made import Edge, made
from runs import EDGE_COLUMNS


def ascending(edges: Iterable[Edge]) -> list[Edge]:
    return sorted((min(edge), max(edge)) for edge in edges)


def ends_of(rows: GroupEdges) -> list[Edge]:
    table = rows.read_all()
    return list(zip(table[0].to_pylist(), table[1].to_pylist(), strict=True))


def held_to_networkx(result: Result, graph: nx.Graph[Any], k: int) -> None:
    """The same edges as `networkx.k_truss`, and its connected components as groups, each with its own edges."""
    truss = nx.k_truss(graph, k)
    assert ends_of(ktruss(result, k)) == ascending(truss.edges)
    components = [truss.subgraph(own) for own in nx.connected_components(truss) if len(own) > 1]
    rows = ktruss_groups(result, k).to_pylist()
    assert sorted((row["edges"], row["vertices"]) for row in rows) == sorted(
        (own.number_of_edges(), own.number_of_nodes()) for own in components
    )
    assert [row["edges"] for row in rows] == sorted((row["edges"] for row in rows), reverse=True)
    found = {row["component"]: ends_of(ktruss(result, k, row["component"])) for row in rows}
    assert sorted(found.values()) == sorted(ascending(own.edges) for own in components)
    for row in rows:
        assert row["density"] == pytest.approx(nx.density(nx.Graph(found[row["component"]])))
        assert row["highest_k"] >= k


@given(rows=strategies.edge_lists(14), data=st.data())
@settings(max_examples=examples(20, 8))
def test_drawn_graphs(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    naming = data.draw(strategies.namings(14))
    edges = oracles.simple_edges((naming.names[u], naming.names[v]) for u, v in rows)
    cut = st.integers(1, 9)
    result = made(
        tmp_path_factory.mktemp("made") / "out",
        oracles.networkx_lambda(edges),
        id_type=naming.type,
        alone=naming.names,
        rows_per_file=data.draw(cut),
        rows_per_group=data.draw(cut),
    )
    for k in range(2, result.manifest.lam.max + 4):
        held_to_networkx(result, nx.Graph(list(edges)), k)


@pytest.mark.parametrize("k", [pytest.param(20, marks=pytest.mark.slow), 97])
def test_facebook(facebook: Result, k: int) -> None:
    rows = pq.read_table(FACEBOOK)
    graph = nx.Graph(zip(rows[0].to_pylist(), rows[1].to_pylist(), strict=True))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    held_to_networkx(facebook, graph, k)


def test_only_row_groups_with_such_edges_are_read(facebook: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    from edgemill.pipeline.results.lookup import SortedTable

    scan, scanned = SortedTable.scan, []

    def counted(self: SortedTable, groups: Any, wanted: Any, columns: Any = None) -> Any:
        scanned.append(sum(group.rows for group in groups))
        return scan(self, groups, wanted, columns)

    monkeypatch.setattr(SortedTable, "scan", counted)
    reader = ktruss(facebook, 90)
    assert scanned == []
    first = next(iter(reader))
    assert len(scanned) == 1  # only the first row group
    assert first.num_rows + reader.read_all().num_rows == sum(
        count for lam, count in facebook.manifest.lam.histogram if lam >= 88
    )
    assert sum(scanned) < facebook.manifest.counts.edges / 2


@pytest.fixture
def two(tmp_path: Path) -> Result:
    """A clique of five and one of four, joined by an edge, with names."""
    levels = dict.fromkeys(itertools.combinations("abcde", 2), 3) | dict.fromkeys(itertools.combinations("vwxy", 2), 2)
    return made(
        tmp_path / "out",
        levels | {("e", "v"): 0},
        id_type=pa.string(),
        alone=["z"],
        first_id=9,
        attributes={"name": (pa.string(), {"a": "A & <a>", "y": "Y"}), "age": (pa.int32(), {"a": 7})},
        label="name",
    )


@pytest.mark.parametrize("form", ["parquet", "csv", "graphml"])
@pytest.mark.parametrize("component", [None, "v"])
def test_files(two: Result, tmp_path: Path, form: str, component: str | None) -> None:
    """The 4-truss, whole and one component, with attributes, to a file and to a pipe."""
    rows = ktruss_groups(two, 4).to_pylist()
    assert [row["edges"] for row in rows] == [10, 6]
    cliques = {"v": "vwxy", None: "abcdevwxy"}[component]
    wanted = [edge for edge in itertools.combinations(cliques, 2) if (edge[0] < "v") == (edge[1] < "v")]
    arguments = ["ktruss", str(two.path), "-k", "4", "--format", form]
    if component is not None:
        arguments += ["--component", str(rows[1]["component"])]
    file = tmp_path / f"truss.{form}"
    ended = call(*arguments, "--output", str(file))
    assert (ended.exit_code, ended.output) == (0, "")
    assert call(*arguments).stdout_bytes == file.read_bytes()
    names = ["src", "dst", *EDGE_COLUMNS, "src_name", "src_age", "dst_name", "dst_age"]
    if form == "parquet":
        table = pq.read_table(file)
        assert table.column_names == names
        assert list(zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True)) == wanted
        labels = {"a": "A & <a>", "y": "Y"}
        for end in ("src", "dst"):
            assert table[f"{end}_name"].to_pylist() == [labels.get(id) for id in table[end].to_pylist()]
            assert table[f"{end}_age"].to_pylist() == [7 if id == "a" else None for id in table[end].to_pylist()]
    elif form == "csv":
        lines = file.read_text().splitlines()
        assert lines[0] == ",".join(names)
        assert [tuple(line.replace('"', "").split(",")[:2]) for line in lines[1:]] == wanted
    else:
        graph = nx.read_graphml(io.BytesIO(file.read_bytes()))
        assert ascending(graph.edges) == wanted
        known = {"a": {"name": "A & <a>", "age": 7}, "y": {"name": "Y"}}
        assert dict(graph.nodes(data=True)) == {id: known.get(id, {}) for id in cliques}


def test_the_list(two: Result) -> None:
    ended = call("ktruss", str(two.path), "-k", "4", "--list", "--json")
    rows = [json.loads(line) for line in ended.stdout.splitlines()]
    assert rows == ktruss_groups(two, 4).to_pylist()
    assert [row["highest_k"] for row in rows] == [5, 4]
    lines = call("ktruss", str(two.path), "-k", "4", "--list").stdout.splitlines()
    assert lines[0].split() == ["component", "vertices", "edges", "density", "highest", "k"]
    assert [int(line.split()[0]) for line in lines[1:]] == [row["component"] for row in rows]
    ended = call("ktruss", str(two.path), "-k", "6", "--list")
    assert ended.exit_code == 0 and re.fullmatch(r"The 6-truss .*no edges: .* k is 5\.\n", ended.stdout)
    assert call("ktruss", str(two.path), "-k", "6").stdout.count("\n") == 1
    best = rows[0]["component"]
    assert members_of(two, truss_group(two, 4, best))["id"].to_pylist() == list("abcde")


def test_frames_of_a_truss(two: Result) -> None:
    """Also of a k-truss without edges."""
    for k, edges in ((5, 10), (6, 0)):
        assert len(ktruss(two, k).to_pandas()) == len(ktruss(two, k).to_dask().compute()) == edges
    assert ktruss(two, 5).to_networkx().number_of_nodes() == 5


def test_components_outside_the_truss(two: Result) -> None:
    whole = ktruss_groups(two, 2)["component"][0].as_py()
    five = ktruss_groups(two, 5)["component"][0].as_py()
    with pytest.raises(UsageError, match=rf"component {whole} .*the 5-truss, .* k is 2"):
        ktruss(two, 5, whole)
    with pytest.raises(UsageError, match=rf"{five}.*{whole}.*2-truss"):
        ktruss(two, 2, five)
    with pytest.raises(UsageError, match="component 77"):
        ktruss(two, 2, 77)
    with pytest.raises(UsageError, match=r"2.*got 1"):
        ktruss(two, 1)


def test_bad_calls(two: Result, tmp_path: Path) -> None:
    out = str(two.path)
    for arguments, text in (
        (["-k", "1"], "1 is not in the range"),
        ([], "Missing option '-k'"),
        (["-k", "4", "--list", "--component", "1"], "--list prints a table: leave out --component"),
        (["-k", "4", "--json"], "--json needs --list"),
        (["-k", "4", "--component", "77"], "there is no component 77"),
    ):
        ended = call("ktruss", out, *arguments)
        assert (ended.exit_code, text in ended.output) == (2, True), ended.output
    ended = call("ktruss", out, "-k", "4", "--component", "77", "--output", str(tmp_path / "x.csv"))
    assert (ended.exit_code, (tmp_path / "x.csv").exists()) == (2, False)


def test_a_run_without_convergence(tmp_path: Path) -> None:
    result = made(tmp_path / "out", {(1, 2): 0}, converged=False, dense=False)
    for question in (ktruss, ktruss_groups):
        with pytest.raises(UsageError, match=r"converge.*4-truss"):
            question(result, 4)


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    people = {"c": (pa.string(), {1: "x"})}
    result = made(tmp_path / "out", {(1, 2): 0}, names=("a", "a_c"), attributes=people, label="c")
    ended = call("ktruss", str(result.path), "-k", "2")
    assert (ended.exit_code, "two columns" in ended.output, "'a_c'" in ended.output) == (2, True, True)


def test_damage_is_reported(two: Result) -> None:
    for file in (two.path / "edges").iterdir():
        content = bytearray(file.read_bytes())
        content[4:200] = bytes(196)
        file.write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        ktruss(Result(two.path), 2).read_all()
