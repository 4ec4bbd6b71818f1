"""Leiden communities in runs: by workers, directions, weights and order of rows; checked, and refused."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edgemill
import runs
from edgemill.pipeline import (
    Result,
    UsageError,
    find_group,
    group_at,
    groups_of,
    member_ids,
    members_of,
    mine,
    top,
)
from edgemill.pipeline.queries.groups import with_members
from edgemill.tasks.errors import InternalError, OutOfRoom
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import Entries, cut_blocks, run_blocks, run_in_one_block
from edgemill.tasks.programs.shipped.leiden import Leiden
from edgemill.tasks.shards import MemoryCarrier
from edgemill.tasks.verify import program_checks
from edgemill.tasks.verify import tables as verify_tables
from edgemill.tasks.verify.reading import Flaw
from edgemill.tasks.verify.result import verify
from examples import examples
from in_process import call

HOW: dict[str, Any] = {"device": "cpu", "output.report": False, "programs": ("leiden",)}


def graph() -> nx.Graph:
    """Groups of 20 with weak ties, and a pair that nothing connects to them."""
    made = nx.planted_partition_graph(6, 20, 0.4, 0.02, seed=4)
    made.add_edge(500, 501)
    return made


def table(made: nx.Graph, seed: int = 0) -> pa.Table:
    """Its edges in some order and direction, with weights."""
    random = np.random.default_rng(seed)
    rows = [(u, v) if random.random() < 0.5 else (v, u) for u, v in made.edges()]
    ends = np.array(rows, np.int64)[random.permutation(len(rows))]
    return pa.table({"src": ends[:, 0], "dst": ends[:, 1], "weight": 1.0 + (ends.sum(axis=1) % 7)})


def communities(result: Result) -> list[set[int]]:
    found: dict[int, set[int]] = {}
    for row in result.vertices.to_table().to_pylist():
        found.setdefault(row["community"], set()).add(row["id"])
    assert all(community == min(members) for community, members in found.items())
    return list(found.values())


def facts(result: Result) -> dict[str, Any]:
    return result.manifest.programs[-1].facts


def test_planted_communities(tmp_path: Path) -> None:
    result = mine(table(graph()), tmp_path / "out", **HOW)
    found = communities(result)
    assert sorted(map(min, found)) == [0, 20, 40, 60, 80, 100, 500] and {500, 501} in found
    assert facts(result)["communities"] == 7 and facts(result)["largest"] == 20
    assert facts(result)["quality"] == pytest.approx(nx.community.modularity(graph(), found))
    verify(str(tmp_path / "out"))


def levels_of(result: Result) -> dict[int, set[frozenset[int]]]:
    """The groups of each level by the table, whose sizes and parents are checked on the way."""
    rows = {row["id"]: row for row in result.community_groups.to_table().to_pylist()}
    members: dict[int, set[int]] = {group: set() for group in rows}
    for row in result.vertices.to_table().to_pylist():
        group = row["community_group"]
        while group is not None:
            members[group].add(row["id"])
            group = rows[group]["parent"]
    assert all(row["vertices"] == len(members[group]) > 1 for group, row in rows.items())
    outer = {group: -1 if row["parent"] is None else rows[row["parent"]]["k"] for group, row in rows.items()}
    assert all(outer[group] < row["k"] for group, row in rows.items())
    return {
        k: {frozenset(members[group]) for group, row in rows.items() if outer[group] < k <= row["k"]}
        for k in range(max((row["k"] for row in rows.values()), default=0) + 1)
    }


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=120), st.booleans())
@settings(max_examples=examples(15, 4), deadline=None)
def test_levels_of_any_graph(
    tmp_path_factory: pytest.TempPathFactory, ends: list[tuple[int, int]], directed: bool
) -> None:
    """Communities of each level are connected and nested, those of level 1 are the communities, and those of level 0
    the components. Order of rows and buckets change nothing.
    """
    made = nx.Graph((u, v) for u, v in ends if u != v)
    folder, how = tmp_path_factory.mktemp("drawn"), HOW | {"directed": directed}
    result = mine(runs.write_rows(folder / "rows.parquet", ends), folder / "out", **how)
    levels = levels_of(result)
    alone = made.number_of_edges() == 0
    assert levels[0] == ({frozenset(part) for part in nx.connected_components(made)} if not alone else set())
    if 1 in levels:
        assert levels[1] == {frozenset(own) for own in communities(result) if len(own) > 1}
    for k, groups in levels.items():
        assert all(nx.is_connected(made.subgraph(own)) for own in groups)
        assert k == 0 or all(any(own <= outer for outer in levels[k - 1]) for own in groups)
    split = how | {"partitions": 3, "ingest": {"rows_per_block": 7}}
    again = mine(runs.write_rows(folder / "back.parquet", ends[::-1]), folder / "again", **split)
    for table in ("vertices", "community_groups"):
        assert getattr(again, table).to_table().equals(getattr(result, table).to_table())
    assert all(check.ok for check in verify(str(folder / "out"), str(folder / "rows.parquet")).checks)


def test_wrong_groups_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = mine(table(graph()), tmp_path / "out", **HOW | {"programs": ("lambda", "leiden")})
    assert facts(found)["levels"] > 1
    manifest = verify_tables.read_manifest(found.place)
    vertices = verify_tables.read_vertices(found.place, manifest)
    edges = verify_tables.read_edges(found.place, "src", "dst", vertices, manifest)
    program_checks.check_community_groups(found.place, manifest, edges, vertices)
    community, group = vertices.added["community"].to_pylist(), vertices.added["community_group"].to_pylist()
    moved = {
        "community": ([20 if value == 0 else value for value in community], "has the community 20"),
        "community_group": ([group[0], *group[:-1]], "rows of id|says"),
    }
    for name, (values, flaw) in moved.items():
        other = replace(vertices, added={**vertices.added, name: pa.chunked_array([values], pa.int64())})
        with pytest.raises(Flaw, match=flaw):
            program_checks.check_community_groups(found.place, manifest, edges, other)
    stored = pq.read_table(tmp_path / "out/community_groups")
    for name in ("k", "parent", "edges"):
        values = [value if value is None or at != 2 else value + 1 for at, value in enumerate(stored[name].to_pylist())]
        if name == "parent":
            values = [values[0]] * len(values)
        at = stored.schema.get_field_index(name)
        changed = stored.set_column(at, stored.schema.field(at), pa.array(values, stored.schema.field(at).type))
        monkeypatch.setattr("edgemill.tasks.verify.groups.read_table", lambda *_, changed=changed, **__: changed)
        with pytest.raises(Flaw):
            program_checks.check_community_groups(found.place, manifest, edges, vertices)


@pytest.mark.parametrize(
    "how", [{"partitions": 3, "ingest": {"rows_per_block": 90}}, {"programs": ("lambda", "leiden")}]
)
def test_the_same_for_any_layout_and_order_of_rows(tmp_path: Path, how: dict[str, Any]) -> None:
    random = nx.gnm_random_graph(300, 1200, seed=3)
    first = communities(mine(table(random, 1), tmp_path / "one", **HOW))
    assert communities(mine(table(random, 2), tmp_path / "two", **HOW | how)) == first


def test_one_of_two_workers_has_all_edges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from edgemill.pipeline.stages import limits

    monkeypatch.setattr(limits, "LEAST_ENTRIES", 10)
    how = HOW | {
        "programs": ("components", "leiden", "coreness"),
        "workers": 2,
        "cluster": {"threads_per_worker": 1},
    }
    result = mine(table(graph()), tmp_path / "out", **how)
    assert [program.groups for program in result.manifest.programs] == [2, 1, 2]
    one = mine(table(graph()), tmp_path / "one", **HOW)
    assert communities(result) == communities(one)
    assert result.community_groups.to_table().equals(one.community_groups.to_table())
    again: dict[str, Any] = how | {"nightly.previous": str(tmp_path / "out")}
    night = mine(table(graph(), 5), tmp_path / "night", **again)
    assert [program.begun for program in night.manifest.programs] == ["nothing", "earlier", "nothing"]
    assert communities(night) == communities(one)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("quality", ["modularity", "potts"])
def test_weights_and_directions(tmp_path: Path, directed: bool, quality: str) -> None:
    """The quality is that of the sums of weights in both directions."""
    rows = table(graph())
    if directed:
        back = rows.rename_columns(["dst", "src", "weight"]).select(["src", "dst", "weight"]).slice(0, 200)
        rows = pa.concat_tables([rows, back])
    pq.write_table(rows, tmp_path / "rows.parquet")
    how = {"weighted": True, "quality": quality, "resolution": 1.5, "iterations": 9}
    chosen = HOW | {"directed": directed, "weight_column": "weight", "leiden": how}
    result = mine(tmp_path / "rows.parquet", tmp_path / "out", **chosen)
    summed = nx.Graph()
    for u, v, w in zip(*(rows[name].to_pylist() for name in ("src", "dst", "weight")), strict=True):
        summed.add_edge(u, v, weight=w + summed.get_edge_data(u, v, {"weight": 0})["weight"])
    found = communities(result)
    if quality == "modularity":
        expected = nx.community.modularity(summed, found, resolution=1.5)
    else:
        inside = sum(summed.subgraph(own).size("weight") for own in found)
        expected = inside - 1.5 * sum(len(own) ** 2 for own in found) / 2
    assert facts(result)["quality"] == pytest.approx(expected)
    verify(str(tmp_path / "out"), str(tmp_path / "rows.parquet"))


@pytest.mark.parametrize("weighted", [False, True])
def test_directed_modularity(tmp_path: Path, weighted: bool) -> None:
    """That of Leicht and Newman, by NetworkX; the same for any layout, and checked again."""
    random = nx.gn_graph(40, seed=2)
    made = nx.DiGraph(random.edges())
    draw = np.random.default_rng(5)
    made.add_edges_from((int(u), int(v)) for u, v in draw.integers(0, 60, (150, 2)) if u != v)
    for u, v in made.edges():
        made.edges[u, v]["weight"] = float((u + v) % 4)
    ends = np.array(made.edges(), np.int64)
    rows = pa.table({"src": ends[:, 0], "dst": ends[:, 1], "weight": (ends.sum(axis=1) % 4).astype(np.float64)})
    pq.write_table(rows, tmp_path / "rows.parquet")
    leiden = {"directed": True, "weighted": weighted, "resolution": 1.25, "iterations": 9}
    how: dict[str, Any] = HOW | {"directed": True, "weight_column": "weight", "leiden": leiden}
    result = mine(tmp_path / "rows.parquet", tmp_path / "out", **how)
    found, weight = communities(result), "weight" if weighted else None
    assert facts(result)["quality"] == pytest.approx(nx.community.modularity(made, found, weight, 1.25))
    assert facts(result)["settled"]
    assert all(check.ok for check in verify(str(tmp_path / "out"), str(tmp_path / "rows.parquet")).checks)
    split = mine(tmp_path / "rows.parquet", tmp_path / "split", **how | {"partitions": 3})
    assert split.vertices.to_table().equals(result.vertices.to_table())
    ignored = mine(tmp_path / "rows.parquet", tmp_path / "ignored", **how | {"leiden": leiden | {"directed": False}})
    assert communities(ignored) != found
    assert facts(result)["quality"] >= 0.95 * nx.community.modularity(made, communities(ignored), weight, 1.25)
    with pytest.raises(UsageError, match="directed is for quality modularity"):
        mine(tmp_path / "rows.parquet", tmp_path / "potts", **how | {"leiden": leiden | {"quality": "potts"}})


def test_directed_modularity_of_an_undirected_graph(tmp_path: Path) -> None:
    how: dict[str, Any] = HOW | {"leiden": {"directed": True}}
    plain = mine(table(graph()), tmp_path / "plain", **HOW)
    found = mine(table(graph()), tmp_path / "out", **how)
    assert found.vertices.to_table().equals(plain.vertices.to_table())


@pytest.mark.parametrize("power", [-40, 60])
@pytest.mark.parametrize("quality", ["modularity", "potts"])
def test_tiny_and_huge_weights(tmp_path: Path, quality: str, power: int) -> None:
    """Communities do not depend on the unit of weights; the quality by the Potts model is in this unit."""
    found = []
    for factor in (1.0, 2.0**power):
        rows = table(graph())
        rows = rows.set_column(2, "weight", pa.array(rows["weight"].to_numpy() * factor))
        pq.write_table(rows, tmp_path / f"{factor}.parquet")
        how = {"weighted": True, "quality": quality, "resolution": factor if quality == "potts" else 1.0}
        chosen = HOW | {"weight_column": "weight", "leiden": how}
        result = mine(tmp_path / f"{factor}.parquet", tmp_path / f"out{factor}", **chosen)
        verify(str(tmp_path / f"out{factor}"), str(tmp_path / f"{factor}.parquet"))
        found.append((communities(result), facts(result)["quality"] / (factor if quality == "potts" else 1)))
    assert found[0][0] == found[1][0] and found[0][1] == pytest.approx(found[1][1])


def test_wrong_communities_are_found(tmp_path: Path) -> None:
    """A vertex in the community of another, and another quality."""
    result = mine(table(graph()), tmp_path / "out", **HOW | {"programs": ("lambda", "leiden")})
    from edgemill.tasks.verify.arcs import Arcs
    from edgemill.tasks.verify.tables import VertexTable

    vertices = result.vertices.to_table()
    record = result.manifest.programs[0].model_dump()
    ids = vertices["id"].combine_chunks()
    at = {value: place for place, value in enumerate(ids.to_pylist())}
    ends = np.array([(at[u], at[v]) for u, v in graph().edges()], np.int64)
    arcs = Arcs(np.concatenate([ends[:, 0], ends[:, 1]]), np.concatenate([ends[:, 1], ends[:, 0]]), None)

    def check(community: list[int], quality: float) -> None:
        own = VertexTable.__new__(VertexTable)
        object.__setattr__(own, "ids", ids)
        added = {"community": pa.array(community), "community_group": vertices["community_group"]}
        object.__setattr__(own, "added", added)
        program_checks.check_leiden(arcs, own, {**record, "facts": {"quality": quality}})

    right = vertices["community"].to_pylist()
    check(right, record["facts"]["quality"])
    with pytest.raises(Flaw, match="quality"):
        check(right, record["facts"]["quality"] + 1e-6)
    moved = [20 if value == 0 else value for value in right]
    with pytest.raises(Flaw, match="community"):
        check(moved, record["facts"]["quality"])


def test_from_python() -> None:
    frame = table(graph()).to_pandas()
    found = edgemill.leiden(frame, resolution=1.0).to_pandas()
    assert set(found.columns) >= {"id", "community"} and found["community"].nunique() == 7


@pytest.mark.parametrize("programs", [("leiden",), ("lambda", "leiden")])
def test_queries(tmp_path: Path, programs: tuple[str, ...]) -> None:
    """`top`, `of`, `members`, `subgraph` and `diff` from Python and the command line, with and without λ."""
    out = str(tmp_path / "out")
    result = mine(table(graph()), out, **HOW | {"programs": programs})
    levels, made = levels_of(result), graph()
    rows = top(result, groups="leiden").to_pylist()
    assert sorted(row["vertices"] for row in rows) == sorted(map(len, levels[1]))
    assert [row["vertices"] for row in rows] == sorted((row["vertices"] for row in rows), reverse=True)
    densest = top(result, by="density", groups="leiden", level=0, count=1).to_pylist()[0]
    assert (densest["vertices"], densest["density"]) == (2, 1.0)
    for k, groups in levels.items():
        listed = list(
            with_members(result, top(result, count=999, groups="leiden", level=k).to_pylist(), None, "leiden", k)
        )
        assert {frozenset(row["members"]) for row in listed} == groups
    told = call("top", out, "--groups", "leiden", "--members", "2", "--json")
    first = json.loads(told.stdout.splitlines()[0])
    assert first["id"] == rows[0]["id"] and len(first["members"]) == 2 and first["members"][0] % 20 == 0
    assert str(rows[0]["id"]) in call("top", out, "--groups", "leiden").output
    around = groups_of(result, [3, 5], groups="leiden")
    assert [frozenset(member_ids(result, own).to_pylist()) for own in around][-1] in levels[0]
    community = group_at(result, 3, 1, "leiden")
    assert community is not None and community in around
    assert set(member_ids(result, community).to_pylist()) == set(range(20))
    ended = call("of", out, "3", "--groups", "leiden", "--level", "1", "--json")
    assert json.loads(ended.stdout) == asdict(community)
    assert find_group(result, community.component, "leiden") == community
    members = members_of(result, community).to_pylist()
    assert len(members) == 20 and all(own["degree"] == made.degree(own["id"]) for own in members)
    ended = call("members", out, str(community.component), "--groups", "leiden", "--limit", "3", "--json")
    assert [json.loads(line)["id"] for line in ended.stdout.splitlines()] == [own["id"] for own in members[:3]]
    assert call("members", out, str(community.component), "--groups", "leiden").exit_code == 0
    ended = call("subgraph", out, "--component", str(community.component), "--groups", "leiden")
    if "lambda" not in programs:
        assert ended.exit_code == 2 and "no table edges" in ended.output
    else:
        inside = made.subgraph(range(20))
        assert len(ended.stdout.splitlines()) == 1 + inside.number_of_edges()
        assert [own["degree_inside"] for own in members] == sorted((d for _, d in inside.degree()), reverse=True)
    made.remove_edges_from([(u, v) for u, v in made.edges() if u < 20 <= v < 40])
    made.add_edges_from((u, v) for u in range(20) for v in range(20, 40))
    later = mine(table(made), tmp_path / "later", **HOW | {"programs": programs})
    fates = edgemill.diff(result, later).program_groups["leiden"]
    assert (fates.continued, fates.merged, fates.born, fates.died) == (5, 1, 0, 0)
    assert edgemill.diff(result, result).program_groups["leiden"].continued == 7
    shown = call("diff", out, str(tmp_path / "later"))
    assert "groups of leiden" in shown.output, shown.output


@pytest.mark.parametrize(
    ("programs", "partitions", "is_update"),
    [(("leiden",), 1, False), (("lambda", "leiden"), 2, False), (("lambda", "leiden"), 1, True)],
)
def test_a_night_begins_with_the_communities_of_the_night_before(
    tmp_path: Path, programs: tuple[str, ...], partitions: int, is_update: bool
) -> None:
    """Without a change the tables are the same; a run from nothing has other facts. In full runs and updates."""
    how: dict[str, Any] = HOW | {"programs": programs, "partitions": partitions, "leiden": {"iterations": 1}}

    def night(made: nx.Graph, name: str, before: str | None = None, **more: Any) -> Result:
        later: dict[str, Any] = {"nightly.previous": before and str(tmp_path / before)}
        return mine(table(made, len(name)), tmp_path / name, **how | later | more)

    random = nx.gnm_random_graph(300, 900, seed=3)
    one = night(random, "one")
    assert one.manifest.programs[-1].begun == "nothing" and "changed_share" not in facts(one)
    same = night(random, "same", "one", **{"output.row_group_rows": 7_000})
    for name in ("vertices", "community_groups"):
        assert getattr(same, name).to_table().equals(getattr(one, name).to_table())
    record = same.manifest.programs[-1]
    assert (record.begun, record.supersteps, record.facts) == ("earlier", 0, facts(one) | {"changed_share": 0.0})
    random.remove_edges_from(list(random.edges())[:9])
    random.add_edges_from([(1000, 1001), (1001, 1002), (3, 1000)])
    later = night(random, "later", "same")
    assert later.manifest.programs[-1].begun == "earlier" and 0 < facts(later)["changed_share"] < 1
    assert (later.manifest.update is not None) == is_update
    assert facts(later)["quality"] >= facts(one)["quality"] - 0.02
    assert communities(later) and levels_of(later)
    rows = tmp_path / "rows.parquet"
    pq.write_table(table(random, 3), rows)
    assert all(check.ok for check in verify(str(tmp_path / "later"), str(rows)).checks)
    nothing: dict[str, Any] = {"leiden": {"iterations": 1, "from_earlier": False}}
    fresh, alone = night(random, "fresh", "later", **nothing), night(random, "alone", **nothing)
    assert fresh.manifest.programs[-1].begun == "nothing" and communities(fresh) == communities(alone)


def test_the_report_of_a_night_has_the_fates_of_communities(tmp_path: Path) -> None:
    made = graph()
    for day in ("2026-11-20", "2026-11-21"):
        how: dict[str, Any] = HOW | {"programs": ("lambda", "leiden"), "output.report": True, "date": day}
        mine(table(made), str(tmp_path / "{date}"), **how)
        made.add_edges_from([(600, 601), (601, 602), (600, 602)])
    page = (tmp_path / day / "report.html").read_text(encoding="utf-8")
    assert "Groups of leiden by fate" in page and "Dense groups by fate" in page


def test_groups_that_are_not_there(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    result = mine(table(graph()), out, **HOW | {"programs": ("lambda", "components")})
    for name, why in (("leiden", "run again with"), ("components", "components finds no groups")):
        with pytest.raises(UsageError, match=why):
            groups_of(result, 3, groups=name)
        ended = call("top", out, "--groups", name)
        assert ended.exit_code == 2 and why in ended.output
    for command, why in (
        (["members", "--track"], "has no table"),
        (["subgraph", "--dn-graph"], "DN-graphs are of lambda"),
    ):
        ended = call(*command, "1", out, "--groups", "leiden")
        assert ended.exit_code == 2 and why in ended.output
    assert call("top", out, "--level", "1").exit_code == 2


def edges_of(made: nx.Graph) -> Entries:
    source, target = np.array(made.edges(), np.int32).T
    return Entries(source, target, None)


def test_several_blocks_are_refused() -> None:
    made = nx.path_graph(8)
    blocks = cut_blocks(edges_of(made), 8, RangePartitioner(np.array([4])), False, "both")
    with pytest.raises(InternalError, match="one block"):
        run_blocks(Leiden(), blocks, RangePartitioner(np.array([4])), MemoryCarrier.open(2), threads=2)


def test_edges_in_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from edgemill.kernels.chunked import ChunkedRows
    from edgemill.tasks.programs.block import GraphBlock

    monkeypatch.setattr(GraphBlock, "placed", lambda self, space: replace(self, rows=ChunkedRows.__new__(ChunkedRows)))
    with pytest.raises(OutOfRoom, match="Leiden needs all edges"):
        run_in_one_block(Leiden(), edges_of(nx.path_graph(4)), 4, False)
