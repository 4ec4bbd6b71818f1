"""Runs with programs: columns of vertices, by any number of workers, with any ids, and what is refused."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import replace
from datetime import datetime
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client

import runs
from edgemill.pipeline import Result, UsageError, estimate, load_settings, mine
from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.monitor.display import stage_text
from edgemill.pipeline.monitor.progress import Progress
from edgemill.pipeline.opening.existing_result import differences
from edgemill.pipeline.plan.plan import Plan
from edgemill.pipeline.programs import running
from edgemill.pipeline.programs.blocks import GraphBlocks, cut_graph, task_bytes
from edgemill.pipeline.python_api.update_settings import update_settings
from edgemill.pipeline.report import run_sections
from edgemill.pipeline.settings.declared_programs import every_shipped
from edgemill.pipeline.stages import limits
from edgemill.tasks.verify import tables as verify_tables
from edgemill.tasks.verify.reading import Flaw
from edgemill.tasks.verify.result import check_programs
from in_process import call
from vertex_programs import check_centralities

WITHOUT_SOURCE = [
    name for name, entry in every_shipped().items() if "source" not in entry.vertices and not entry.needs_lambda
]
ALL = ("lambda", *WITHOUT_SOURCE)
COLUMNS = [column.name for name in WITHOUT_SOURCE for column in every_shipped()[name].columns]
OF_SOURCES = ["betweenness", "betweenness_error", "closeness", "closeness_error", "eccentricity", "eccentricity_slack"]
QUIET: dict[str, Any] = {"device": "cpu", "output.report": False}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cliques, a sparse graph around them, and what is joined to neither: several components, labels and cores."""
    folder, random = tmp_path_factory.mktemp("rows"), Random(4)
    sparse = [(random.randrange(120), random.randrange(120)) for _ in range(110)]
    cliques = [pair for size in range(3, 9) for pair in combinations(range(50 + 10 * size, 50 + 11 * size), 2)]
    for part, edges in enumerate((sparse, cliques)):
        runs.write_rows(folder / f"{part}.parquet", edges)
    return folder


@pytest.fixture(scope="module")
def alone(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """By one process."""
    return mine(rows, tmp_path_factory.mktemp("alone") / "out", programs=ALL, **QUIET)


def graph_of(result: Result) -> Any:
    table = result.edges.to_table()
    graph = nx.Graph(zip(table[0].to_pylist(), table[1].to_pylist(), strict=True))
    graph.add_nodes_from(result.vertices.to_table()["id"].to_pylist())
    return graph


def test_columns_hold_what_networkx_finds(alone: Result) -> None:
    graph, table = graph_of(alone), alone.vertices.to_table()
    ids = table["id"].to_pylist()
    assert table.schema.names == ["id", "degree", "triangles", "lambda", "component", *COLUMNS]
    ranks = nx.pagerank(graph, tol=1e-13, max_iter=1000)
    assert np.allclose(table["pagerank"], [ranks[v] for v in ids], atol=1e-8)
    least = {v: min(part) for part in nx.connected_components(graph) for v in part}
    assert table["weak_component"].to_pylist() == table["strong_component"].to_pylist() == [least[v] for v in ids]
    assert table["coreness"].to_pylist() == [nx.core_number(graph)[v] for v in ids]
    assert np.allclose(table["clustering"], [nx.clustering(graph, v) for v in ids], rtol=1e-14)
    assert set(table["label"].to_pylist()) < set(ids)
    check_centralities(table, graph)
    exact = [name for name in COLUMNS if name.endswith(("error", "slack"))]
    assert all(set(table[name].to_pylist()) == {0} for name in exact)
    assert all(len(set(table[name].to_pylist())) > 3 for name in COLUMNS if name not in exact)


def test_the_manifest_says_how_they_ran(alone: Result) -> None:
    records = {record.name: record for record in alone.manifest.programs}
    assert list(records) == WITHOUT_SOURCE
    assert [name for record in records.values() for name in record.columns] == COLUMNS
    assert all(record.converged and record.groups == 1 and not record.bytes for record in records.values())
    plain = {"damping": 0.85, "tolerance": 1e-9, "iterations": None, "weighted": False}
    assert records["pagerank"].parameters == plain | {"personal": []}
    assert records["labels"].supersteps <= 10 and records["clustering"].supersteps == 1
    assert "programs" in {stage.stage for stage in alone.manifest.stages}
    assert runs.flaws(alone.place.url) == []


def test_parameters_of_all_programs_are_part_of_a_result(alone: Result) -> None:
    others: dict[str, Any] = {
        "pagerank.damping": 0.5,
        "labels.iterations": 3,
        "hits.iterations": 9,
        "betweenness.sources": 9,
        "distances.sources": 9,
        "leiden.iterations": 3,
        "similar_pairs.k": 3,
    }
    assert {name.partition(".")[0] for name in others} == {
        name for name in WITHOUT_SOURCE if every_shipped()[name].parameters
    }
    given = {"input.path": "a", "output.path": "b", "programs.run": ALL}
    found = differences(alone.manifest, load_settings(None, given | others))
    taken = update_settings(alone, {"output.path": "b"})
    for name, value in others.items():
        assert any(line.startswith(f"{name} was ") and line.endswith(f"is {value} now") for line in found)
        assert name in taken


def test_settings_that_the_code_has_gained_do_not_differ_from_their_defaults(alone: Result) -> None:
    settings = alone.manifest.settings
    before = {name: section for name, section in settings.items() if name != "hits"}
    before["pagerank"] = {name: value for name, value in settings["pagerank"].items() if name != "personal"}
    manifest = alone.manifest.model_copy(update={"settings": before})
    same = {"input.path": "a", "output.path": "b", "programs.run": settings["programs"]["run"]}
    same |= {"cluster.device": settings["cluster"]["device"]}
    assert differences(manifest, load_settings(None, same)) == differences(alone.manifest, load_settings(None, same))
    found = differences(manifest, load_settings(None, same | {"hits.iterations": 9, "pagerank.personal": "3"}))
    assert "hits.iterations was not set, and is 9 now" in found and "pagerank.personal was none, and is 3 now" in found


@pytest.mark.parametrize("column", COLUMNS)
def test_a_wrong_value_is_found(column: str, alone: Result) -> None:
    manifest = verify_tables.read_manifest(alone.place)
    vertices = verify_tables.read_vertices(alone.place, manifest)
    edges = verify_tables.read_edges(alone.place, "src", "dst", vertices, manifest)
    detail, _ = check_programs(manifest, edges, vertices)
    assert detail == f"as the edges say: {', '.join(WITHOUT_SOURCE)}"
    values = vertices.added[column].to_pylist()
    other = next((value for value in values if value != values[5]), values[5] + 1)
    values[5] = values[5] + 1e-8 if column in ("pagerank", "hub", "authority") else other
    wrong = vertices.added | {column: pa.chunked_array([pa.array(values, vertices.added[column].type)])}  # type: ignore[operator]
    with pytest.raises(Flaw, match="ranks are off" if column == "pagerank" else column):
        check_programs(manifest, edges, replace(vertices, added=wrong))


def test_workers_find_the_same_estimates(rows: Path, two_workers: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LEAST_ENTRIES", 1)
    options: dict[str, Any] = {"device": "cpu", "estimate": {"samples": 300, "seed": 7}}
    one, several = estimate(rows, **options).as_dict(), estimate(rows, client=two_workers, **options).as_dict()
    assert {name for name in one if one[name] != several[name]} <= {"workers", "threads", "seconds"}
    assert several["workers"] == 2 and not one["exact"]


@pytest.mark.parametrize("carrier", ["shared-memory", pytest.param("dask", marks=pytest.mark.slow)])
def test_workers_find_the_same_bits(
    carrier: str, rows: Path, alone: Result, two_workers: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LEAST_ENTRIES", 1)
    options: dict[str, Any] = QUIET | {"bounding": {"carrier": carrier}}
    result = mine(rows, tmp_path / "out", programs=ALL, client=two_workers, **options)
    assert result.vertices.to_table().equals(alone.vertices.to_table())
    for own, other in zip(result.manifest.programs, alone.manifest.programs, strict=True):
        alone_there = own.name in ("leiden", "similar_pairs")  # one worker has all edges
        assert (own.groups, own.carrier) == ((1, "memory") if alone_there else (2, carrier))
        assert alone_there or own.bytes > 0
        assert (own.converged, own.moved) == (other.converged, other.moved)
        at_once = ("components", "sssp", "strong_components")  # of one block without supersteps
        assert own.supersteps == other.supersteps or own.name in at_once


@pytest.mark.slow
def test_blocks_in_files(
    rows: Path, alone: Result, two_workers: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a plan says that blocks do not fit the workers."""
    monkeypatch.setattr(limits, "LEAST_ENTRIES", 1)
    monkeypatch.setattr(Plan, "programs_in_files", property(lambda _: True))
    rooms: list[int | None] = []

    def cut_and_look(engine: Engine, *graph: Any) -> GraphBlocks:
        rooms.append(task_bytes(engine))
        return cut_graph(engine, *graph)

    monkeypatch.setattr(running, "cut_graph", cut_and_look)
    result = mine(rows, tmp_path / "out", programs=ALL, client=two_workers, **QUIET)
    assert rooms
    assert all(rooms)
    assert result.vertices.to_table().equals(alone.vertices.to_table())
    runs.assert_nothing_left(two_workers)


@pytest.mark.parametrize("kind", [pa.string(), pytest.param(pa.uint64(), marks=pytest.mark.slow), pa.uuid()])
def test_columns_of_ids_are_of_the_type_of_ids(kind: Any, tmp_path: Path) -> None:
    text = pa.types.is_string(kind)
    names: list[Any] = ["b", "a", "é", "c"] if text else [2**63 + 5, 3, 2**64 - 1, 7]
    if kind == pa.uuid():
        names = [uuid.UUID(int=value << 60).bytes for value in (9, 2, 14, 5)]
    ends = [(0, 1), (1, 0), (2, 3), (2, 2)]
    storage = pa.binary(16) if kind == pa.uuid() else kind
    columns = [pa.array([names[end[side]] for end in ends], storage) for side in (0, 1)]
    if kind == pa.uuid():
        columns = [pa.ExtensionArray.from_storage(kind, column) for column in columns]
    pq.write_table(pa.table(columns, names=["src", "dst"]), tmp_path / "rows.parquet")
    result = mine(tmp_path / "rows.parquet", tmp_path / "out", programs=("lambda", "components", "labels"), **QUIET)
    table = result.vertices.to_table()
    assert table["weak_component"].type == table["label"].type == table["id"].type
    ids = table["id"].to_pylist()
    pairs = {frozenset(names[:2]), frozenset(names[2:])}
    found = dict(zip(ids, table["weak_component"].to_pylist(), strict=True))
    assert {frozenset(v for v in ids if found[v] == found[w]) for w in ids} == pairs
    assert all(found[v] == next(w for w in ids if found[w] == found[v]) for v in ids)
    assert runs.flaws(str(tmp_path / "out")) == []


@pytest.mark.parametrize(
    "edges", [[(1, 2)], *(pytest.param(edges, marks=pytest.mark.slow) for edges in ([], [(7, 7)]))], ids=str
)
def test_graphs_with_next_to_nothing(edges: list[tuple[int, int]], tmp_path: Path) -> None:
    result = mine(runs.write_rows(tmp_path / "rows.parquet", edges), tmp_path / "out", programs=ALL, **QUIET)
    columns = ["pagerank", "weak_component", "label", "coreness", "clustering", *OF_SOURCES, "hub", "authority"]
    table = result.vertices.to_table().select([*columns, "strong_component"]).to_pylist()
    alone, pair = (0.0, 0.0, 0.0, 0.0, 0, 0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0, 1, 0, 0.5, 0.5)
    two = [(0.5, 1, 1, 1, 0.0, *pair, 1), (0.5, 1, 2, 1, 0.0, *pair, 1)]
    first = [[], [(1.0, 7, 7, 0, 0.0, *alone, 7)], two][len({v for e in edges for v in e})]
    assert [tuple(row.values()) for row in table] == first


def test_parameters_are_settings(rows: Path, tmp_path: Path) -> None:
    result = mine(
        rows,
        tmp_path / "out",
        programs=("lambda", "pagerank", "labels"),
        **QUIET | {"pagerank": {"damping": 0.5, "iterations": 3}, "labels": {"iterations": 1}},
    )
    assert [(r.name, r.supersteps, r.converged) for r in result.manifest.programs] == [
        ("pagerank", 3, True),
        ("labels", 1, True),
    ]
    damped = nx.pagerank(graph_of(result), alpha=0.5, tol=1e-13, max_iter=1000)
    table = result.vertices.to_table()
    assert np.allclose(table["pagerank"], [damped[v] for v in table["id"].to_pylist()], atol=0.5**3)
    assert runs.flaws(tmp_path / "out") == []


def test_another_parameter_is_another_result(rows: Path, tmp_path: Path) -> None:
    mine(rows, tmp_path / "out", programs=("lambda", "coreness"), **QUIET)
    mine(rows, tmp_path / "out", programs=("lambda", "coreness"), **QUIET)  # nothing to do
    with pytest.raises(UsageError) as refused:
        mine(rows, tmp_path / "out", programs=("lambda",), **QUIET)
    assert any("was lambda,coreness, and is lambda" in note for note in refused.value.__notes__)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("lambda,pagerang", "unknown program 'pagerang'; known programs: lambda, betweenness"),
        ((), "names no program; known programs: lambda, betweenness"),
        ("lambda,lambda", "names a program twice"),
    ],
)
def test_what_cannot_be_run_is_refused(given: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_settings(None, {"input.path": "a", "output.path": "b", "programs.run": given})


def test_a_tolerance_that_rounding_hides_is_refused() -> None:
    with pytest.raises(UsageError, match=r"pagerank\.tolerance"):
        load_settings(None, {"input.path": "a", "output.path": "b", "pagerank.tolerance": 1e-17})


def test_the_command_lists_them() -> None:
    told = call("programs")
    assert told.exit_code == 0
    for name, entry in every_shipped().items():
        assert name in told.output
        assert all(column.name in told.output for column in entry.columns)
    assert "pagerank.damping" in told.output


def test_by_the_command(rows: Path, alone: Result, tmp_path: Path) -> None:
    arguments = [
        "run",
        "--input",
        str(rows),
        "--output",
        str(tmp_path / "out"),
        "--device",
        "cpu",
        "--set",
        "output.report=false",
    ]
    ended = call(*arguments, "--programs", "lambda,pagerank", "--set", "pagerank.damping=0.85")
    assert ended.exit_code == 0, ended.output
    found = pq.read_table(tmp_path / "out" / "vertices")
    assert found["pagerank"].equals(alone.vertices.to_table()["pagerank"])


def test_show_tells_of_them(alone: Result) -> None:
    shown = call("show", alone.place.url)
    assert shown.exit_code == 0, shown.output
    told = " ".join(shown.output.split())
    assert "pagerank (pagerank; " in told and "clustering (clustering; supersteps: 1)" in told


def test_the_page_lists_their_columns() -> None:
    page = (Path(__file__).parents[3] / "docs" / "programs.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (\w+) \|", page, flags=re.MULTILINE)
    assert listed == [
        (name, column.name, column.kind)
        for name, entry in every_shipped().items()
        for column in (*entry.columns, *entry.edge_columns)
    ]
    assert {name for name, *_ in listed} == {*re.findall(r"^\*\*`(\w+)`\*\*", page, flags=re.MULTILINE)}


@pytest.fixture(scope="module")
def sampled(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """With estimates from 60 of the vertices."""
    some: dict[str, Any] = QUIET | {"betweenness": {"sources": 60, "batch": 12}, "distances": {"sources": 60}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgemill.pipeline.cluster.this_worker._PROGRESS_SECONDS", -1)
        out = tmp_path_factory.mktemp("sampled") / "out"
        return mine(rows, out, programs=("lambda", "betweenness", "distances"), **some)


def test_estimates_have_intervals_and_are_certified(sampled: Result, alone: Result) -> None:
    found, exact = sampled.vertices.to_table(), alone.vertices.to_table()
    off = np.abs(found["betweenness"].to_numpy() - exact["betweenness"].to_numpy())
    assert (off <= found["betweenness_error"].to_numpy()).mean() >= 0.95
    least, slack = found["eccentricity"].to_numpy(), found["eccentricity_slack"].to_numpy()
    far = exact["eccentricity"].to_numpy()
    assert (least <= far).all() and (far <= least + np.where(slack < 0, 10**6, slack)).all()
    facts = {record.name: record.facts for record in sampled.manifest.programs}
    exact_facts = next(record.facts for record in alone.manifest.programs if record.name == "distances")
    for name in ("diameter", "radius", "largest"):
        assert facts["distances"][name] == exact_facts[name]
    assert facts["betweenness"]["sources"] == 60 and facts["betweenness"]["predicted_seconds"] > 0
    assert runs.flaws(sampled.place.url) == []


def test_batches_are_told_with_the_seconds_predicted(sampled: Result) -> None:
    log = [json.loads(line) for line in Path(sampled.place.url, "log.jsonl").read_text().splitlines()]
    batches = [event for event in log if event["event"] == "batch" and event["program"] == "betweenness"]
    assert [(event["done"], event["batches"]) for event in batches] == [(done, 5) for done in range(1, 6)]
    assert [event["predicted_seconds"] is None for event in batches] == [True, True, False, False, False]
    heard = Progress()
    for event in log[: log.index(batches[2]) + 1]:
        heard.update(event)
    now = datetime.fromisoformat(batches[2]["time"])
    kind, seconds = heard.remaining_seconds("programs", now) or ("", -1)
    assert kind == "about" and abs(seconds - max(0, batches[2]["predicted_seconds"] - batches[2]["seconds"])) < 1e-6
    assert "betweenness batch 3/5" in stage_text(heard, "programs")
    shown = call("show", sampled.place.url).output
    assert "diameter" in shown and "sources 60" in shown


def test_predicted_seconds_are_beside_the_actual_ones(sampled: Result) -> None:
    facts = next(record.facts for record in sampled.manifest.programs if record.name == "betweenness")
    predicted, actual = facts["predicted_seconds"], facts["batch_seconds"]
    assert sampled.manifest.predicted_programs == [("betweenness", predicted, actual)]  # one batch of distances
    lines = call("show", sampled.place.url, "--detail").output.splitlines()
    at = next(at for at, line in enumerate(lines) if line.split() == ["betweenness", f"{actual:.2f}"])
    assert lines[at + 1].split() == ["as", "predicted", f"{predicted:.2f}"]
    distances = next(record for record in sampled.manifest.programs if record.name == "distances")
    assert sampled.manifest.plan is not None
    with_plan = sampled.manifest.plan.model_copy(update={"programs": {"distances": 3.5}})
    planned = sampled.manifest.model_copy(update={"plan": with_plan}).predicted_programs
    assert planned == [("betweenness", predicted, actual), ("distances", 3.5, distances.seconds)]
    rows = [row for table in run_sections.plan(sampled.manifest).tables for row in table.rows]
    assert [row[1:3] for row in rows if row[0] == "seconds of betweenness"] == [(f"{predicted:.2f}", f"{actual:.2f}")]


@pytest.mark.parametrize("column", ["betweenness", "closeness"])
def test_a_wrong_estimate_is_found(column: str, sampled: Result) -> None:
    manifest = verify_tables.read_manifest(sampled.place)
    vertices = verify_tables.read_vertices(sampled.place, manifest)
    edges = verify_tables.read_edges(sampled.place, "src", "dst", vertices, manifest)
    values = vertices.added[column].to_numpy() * (1 + 1e-6)
    wrong = vertices.added | {column: pa.chunked_array([pa.array(values)])}  # type: ignore[operator]
    with pytest.raises(Flaw, match=column):
        check_programs(manifest, edges, replace(vertices, added=wrong))
