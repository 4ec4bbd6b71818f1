"""Groups of cores: by NetworkX, in buckets and on workers, checked, and refused."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runs
from edgemill.pipeline import Result, UsageError, member_ids, mine
from edgemill.pipeline import groups_of as groups_around
from edgemill.pipeline.programs import running
from edgemill.pipeline.stages import limits
from edgemill.tasks.verify import program_checks
from edgemill.tasks.verify import tables as verify_tables
from edgemill.tasks.verify.reading import Flaw
from edgemill.tasks.verify.result import verify
from examples import examples
from in_process import call

HOW: dict[str, Any] = {"device": "cpu", "output.report": False, "programs": ("core_groups",)}
SPLIT: dict[str, Any] = {"partitions": 3, "ingest": {"rows_per_block": 40}}


def drawn(seed: int) -> nx.Graph:
    """Two dense parts in a sparse graph, and a third part that nothing connects to it."""
    graph = nx.disjoint_union_all(
        [nx.gnm_random_graph(90, 150, seed), nx.gnp_random_graph(14, 0.7, seed), nx.gnp_random_graph(20, 0.5, seed)]
    )
    graph.add_edges_from([(3, 92), (4, 93), (5, 105), (92, 110)])
    return nx.disjoint_union(graph, nx.gnp_random_graph(12, 0.6, seed))


def expected(graph: nx.Graph) -> dict[tuple[int, frozenset[int]], tuple[int, bool]]:
    """K and vertices of each group: its edges, and whether it contains no smaller group."""
    core = nx.core_number(graph)
    found = {
        (k, frozenset(part))
        for k in range(1, max(core.values()) + 1)
        for part in nx.connected_components(nx.k_core(graph, k, core))
        if min(core[v] for v in part) == k
    }
    return {
        (k, part): (graph.subgraph(part).number_of_edges(), not any(own < part for _, own in found))
        for k, part in found
    }


def groups_of(result: Result) -> dict[tuple[int, frozenset[Any]], tuple[int, bool]]:
    """The same by the tables, whose parents and densities are checked on the way."""
    rows = {row["id"]: row for row in result.core_groups.to_table().to_pylist()}
    members: dict[int, set[Any]] = {group: set() for group in rows}
    for row in result.vertices.to_table().to_pylist():
        group = row["core_group"]
        assert group is None or rows[group]["k"] == row["core"]
        while group is not None:
            members[group].add(row["id"])
            group = rows[group]["parent"]
    for group, row in rows.items():
        assert row["vertices"] == len(members[group])
        assert row["density"] == pytest.approx(2 * row["edges"] / (row["vertices"] * (row["vertices"] - 1)))
        if row["parent"] is not None:
            assert rows[row["parent"]]["k"] < row["k"]
    return {(row["k"], frozenset(members[group])): (row["edges"], row["is_leaf"]) for group, row in rows.items()}


def write(graph: nx.Graph, path: Path, label: Any = int) -> Path:
    ends = sorted((label(u), label(v)) for u, v in graph.edges)
    return runs.write_rows(path, ends, pa.string() if label is not int else pa.int64())


def tables(result: Result) -> list[pa.Table]:
    return [result.core_groups.to_table(), result.vertices.to_table()]


@pytest.mark.parametrize("name", ["karate", "drawn", "clique", "path"])
def test_the_groups_of_networkx(tmp_path: Path, name: str) -> None:
    graph = {
        "karate": nx.karate_club_graph(),
        "drawn": drawn(1),
        "clique": nx.complete_graph(6),
        "path": nx.path_graph(5),
    }[name]
    found = mine(write(graph, tmp_path / "rows.parquet"), tmp_path / "out", **HOW)
    assert groups_of(found) == expected(graph)
    assert found.core_groups.schema.names == ["id", "k", "parent", "vertices", "edges", "density", "is_leaf", "track"]


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), min_size=1, max_size=50))
@settings(max_examples=examples(15, 4), deadline=None)
def test_any_graph_in_any_buckets(tmp_path_factory: pytest.TempPathFactory, ends: list[tuple[int, int]]) -> None:
    graph = nx.Graph((u, v) for u, v in ends if u != v)
    folder = tmp_path_factory.mktemp("drawn")
    rows = runs.write_rows(folder / "rows.parquet", ends)
    if not graph.number_of_edges():
        return
    whole = mine(rows, folder / "whole", **HOW)
    how: dict[str, Any] = HOW | SPLIT | {"ingest": {"rows_per_block": 5}}
    split = mine(rows, folder / "split", **how)
    assert groups_of(whole) == expected(graph)
    assert tables(split) == tables(whole)


@pytest.mark.parametrize("label", [int, "v{:03}".format], ids=["numbers", "names"])
def test_buckets_lambda_and_checkpoints_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, label: Any
) -> None:
    rows = write(drawn(2), tmp_path / "rows.parquet", label)
    whole = mine(rows, tmp_path / "whole", **HOW)
    monkeypatch.setattr("edgemill.pipeline.plan.plan.MIN_BUCKET_ROWS", 20)
    beside: dict[str, Any] = HOW | {"programs": ("lambda", "core_groups")}
    saved: dict[str, Any] = {"checkpoint": {"path": str(tmp_path / "kept"), "every_seconds": 0}}

    def fail(*_: Any) -> Any:
        raise RuntimeError("on purpose")

    with monkeypatch.context() as patch:
        patch.setattr("edgemill.pipeline.programs.results.publish_groups", fail)
        with pytest.raises(RuntimeError, match="on purpose"):
            mine(rows, tmp_path / "out", **beside, **SPLIT, **saved)
    monkeypatch.setattr(running, "add_groups", fail)  # it is in the checkpoint
    again = mine(rows, tmp_path / "out", **beside, **SPLIT, **saved)
    assert len(list((tmp_path / "out/core_groups").iterdir())) > 1
    assert again.core_groups.to_table().equals(whole.core_groups.to_table())
    own = ["id", "core", "core_group"]
    assert again.vertices.to_table().select(own).equals(whole.vertices.to_table().select(own))
    assert all(check.ok for check in verify(again.place.url, rows).checks)


@pytest.mark.timeout(120)
def test_two_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = write(drawn(3), tmp_path / "rows.parquet")
    alone = mine(rows, tmp_path / "alone", **HOW)
    monkeypatch.setattr(limits, "LEAST_ENTRIES", 1)
    monkeypatch.setattr("edgemill.pipeline.plan.plan.MIN_BUCKET_ROWS", 20)
    ended = call(
        *("run", "--input", str(rows), "--output", str(tmp_path / "two"), "--programs", "core_groups"),
        *("--workers", "2", "--device", "cpu", "--set", "partitioning.count=2", "--set", "output.report=false"),
    )
    assert ended.exit_code == 0, ended.output
    found = Result(tmp_path / "two")
    assert (found.manifest.programs[0].groups, len(list((tmp_path / "two/core_groups").iterdir())) > 1) == (2, True)
    assert tables(found) == tables(alone)


def test_directions_and_vertices_without_edges(tmp_path: Path) -> None:
    """Directions, repeats and loops are ignored; a vertex with a loop alone is in no group."""
    rows = runs.write_rows(tmp_path / "rows.parquet", [(1, 2), (2, 1), (2, 3), (3, 1), (3, 4), (7, 7)])
    found = mine(rows, tmp_path / "out", **HOW, directed=True)
    assert groups_of(found) == {(1, frozenset({1, 2, 3, 4})): (4, False), (2, frozenset({1, 2, 3})): (3, True)}
    alone = found.vertices.to_table().filter(pc.field("id") == 7).to_pylist()
    assert [(row["core"], row["core_group"]) for row in alone] == [(0, None)]
    assert all(check.ok for check in verify(found.place.url, rows).checks)


def test_wrong_groups_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = mine(
        write(drawn(4), tmp_path / "rows.parquet"), tmp_path / "out", **HOW | {"programs": ("lambda", "core_groups")}
    )
    manifest = verify_tables.read_manifest(found.place)
    vertices = verify_tables.read_vertices(found.place, manifest)
    edges = verify_tables.read_edges(found.place, "src", "dst", vertices, manifest)
    good = program_checks.check_core_groups(found.place, manifest, edges, vertices)
    assert good == (f"{len(found.core_groups.to_table())} groups computed again", True)
    table = pq.read_table(tmp_path / "out/core_groups")
    for name, value in (("edges", 1), ("vertices", 1), ("k", 1), ("is_leaf", 1)):
        values = table[name].to_numpy(zero_copy_only=False).copy()
        values[2] = values[2] + value if name != "is_leaf" else not values[2]
        at = table.schema.get_field_index(name)
        changed = table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))
        monkeypatch.setattr("edgemill.tasks.verify.groups.read_table", lambda *_, changed=changed, **__: changed)
        with pytest.raises(Flaw, match="has no track" if name == "is_leaf" else f"{name} says"):
            program_checks.check_core_groups(found.place, manifest, edges, vertices)


def test_an_update_finds_them_from_nothing(tmp_path: Path) -> None:
    graph = drawn(5)
    how: dict[str, Any] = HOW | {"programs": ("lambda", "core_groups")}
    first = mine(write(graph, tmp_path / "rows.parquet"), tmp_path / "first", **how)
    graph.add_edges_from([(0, 90), (1, 91), (2, 95)])
    rows = write(graph, tmp_path / "more.parquet")
    later: dict[str, Any] = how | {"nightly.previous": first.place.url}
    second = mine(rows, tmp_path / "second", **later)
    assert groups_of(second) == expected(graph)
    assert all(check.ok for check in verify(second.place.url, rows).checks)


def test_what_has_no_groups(tmp_path: Path) -> None:
    rows = write(nx.path_graph(4), tmp_path / "rows.parquet")
    plain = mine(rows, tmp_path / "plain", **HOW | {"programs": ("coreness",)})
    with pytest.raises(UsageError, match=r"plain has no table core_groups: run again with programs="):
        _ = plain.core_groups
    told = call("run", "--input", str(rows), "--output", str(tmp_path / "out"), "--programs", "core_groups", "--json")
    assert told.exit_code == 0 and json.loads(told.stdout.splitlines()[-1])


def test_the_group_of_several_vertices(tmp_path: Path) -> None:
    """By sets, from the innermost group, from Python and from the command line; with and without λ."""
    graph = drawn(6)
    for programs in (("core_groups",), ("lambda", "core_groups")):
        how: dict[str, Any] = HOW | {"programs": programs}
        out = tmp_path / "-".join(programs)
        found = mine(write(graph, tmp_path / "rows.parquet"), out, **how)
        for vertices in ([92], [92, 93], [92, 110, 0], [105, 3], [0, 130]):
            around = sorted((k, part) for k, part in expected(graph) if part >= set(vertices))[::-1]
            told = groups_around(found, vertices, groups="core_groups")
            assert [(own.k, frozenset(member_ids(found, own).to_pylist())) for own in told] == around
            assert groups_around(found, vertices, 1, "core_groups") == told[:1]
            ended = call("of", str(out), *map(str, vertices), "--groups", "core_groups", "--json")
            assert [json.loads(line) for line in ended.stdout.splitlines()] == [asdict(own) for own in told]
    shown = call("of", str(out), "92", "93", "--groups", "core_groups", "-n", "1").output
    best = groups_around(found, [92, 93], 1, "core_groups")[0]
    assert shown.splitlines()[-1].split()[:4] == [
        str(size) for size in (best.component, best.k, best.vertices, best.edges)
    ]
    assert "no path connects them" in call("of", str(out), "0", "130", "--groups", "core_groups").output
    at = call("of", str(out), "92", "--groups", "core_groups", "--level", "2", "--json").stdout
    assert json.loads(at) == asdict(
        next(own for own in groups_around(found, 92, groups="core_groups")[::-1] if own.k >= 2)
    )
    alone: dict[str, Any] = HOW | {"programs": ("lambda",)}
    plain = mine(write(graph, tmp_path / "rows.parquet"), tmp_path / "plain", **alone)
    ended = call("of", plain.place.url, "92", "--groups", "core_groups")
    assert ended.exit_code == 2 and "has no table core_groups" in ended.output
