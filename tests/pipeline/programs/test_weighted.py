"""Weighted edges and programs that start at a vertex, in whole runs: from rows to columns, and what is refused."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
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
from edgemill.pipeline import InputError, Result, UsageError, load_settings, mine
from edgemill.pipeline.programs import running
from edgemill.pipeline.settings.declared_programs import every_shipped
from edgemill.pipeline.stages import limits
from edgemill.tasks.verify import tables as verify_tables
from edgemill.tasks.verify.arcs import Arcs, arcs_of_input
from edgemill.tasks.verify.reading import Flaw
from edgemill.tasks.verify.result import check_programs

Row = tuple[str, str, float]
PROGRAMS = ("lambda", "pagerank", "components", "bfs", "sssp")
QUIET: dict[str, Any] = {"device": "cpu", "output.report": False}
HOW: dict[str, Any] = QUIET | {
    "programs": PROGRAMS,
    "directed": True,
    "weight_column": "weight",
    "input.repeats": "sum",
    "input.isolated": True,
    "bfs.source": "v00",
    "sssp.source": "v00",
    "pagerank": {"weighted": True, "personal": "v00,v03", "tolerance": 1e-12},
}
LISTED = ["far", "alone", "v00", "v01"]


def _rows() -> list[Row]:
    """Arcs with loops, repeated rows, both directions, equal and zero weights, and ids that nothing leads to."""
    random = Random(7)
    weights = [0.0, 0.25, 0.25, 1.0, 2.0, 0.1, 7.5]
    rows = [(f"v{random.randrange(40):02}", f"v{random.randrange(30):02}", random.choice(weights)) for _ in range(220)]
    return [*rows, *rows[:20], ("x", "y", 3.0)]


def _write(folder: Path, rows: list[Row], files: int = 1) -> Path:
    folder.mkdir()
    for part in range(files):
        own = rows[part::files]
        columns = {name: pa.array([row[at] for row in own]) for at, name in enumerate(("src", "dst"))}
        weight = pa.array([row[2] for row in own])
        pq.write_table(pa.table({**columns, "weight": weight}), folder / f"{part}.parquet")
    return folder


def _graph() -> Any:
    weights: dict[tuple[str, str], list[float]] = defaultdict(list)
    for u, v, weight in _rows():
        if u != v:
            weights[u, v].append(weight)
    graph = nx.DiGraph()
    graph.add_nodes_from([*LISTED, *(end for u, v, _ in _rows() for end in (u, v))])
    graph.add_weighted_edges_from((u, v, sum(own)) for (u, v), own in weights.items())
    return graph


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("listed") / "vertices.parquet"
    pq.write_table(pa.table({"id": LISTED}), path)
    return path


@pytest.fixture(scope="module")
def edges(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write(tmp_path_factory.mktemp("edges") / "rows", _rows())


@pytest.fixture(scope="module")
def alone(edges: Path, listed: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return mine(edges, tmp_path_factory.mktemp("alone") / "out", vertices=listed, **HOW)


def test_columns_hold_what_networkx_finds(alone: Result) -> None:
    graph, table = _graph(), alone.vertices.to_table()
    ids = table["id"].to_pylist()
    assert ids == sorted(graph)
    levels = nx.single_source_shortest_path_length(graph, "v00")
    distances = nx.single_source_dijkstra_path_length(graph, "v00")
    assert table["level"].to_pylist() == [levels.get(v) for v in ids]
    found = dict(zip(ids, table["distance"].to_pylist(), strict=True))
    assert {v for v in ids if found[v] is None} == set(ids) - set(distances)
    assert all(abs(found[v] - distance) <= 1e-12 * (1 + distance) for v, distance in distances.items())
    for name in ("parent", "predecessor"):
        assert table[name].type == table["id"].type
        for v, before in zip(ids, table[name].to_pylist(), strict=True):
            if v not in levels or v == "v00":
                assert before == (v if v in levels else None)
            elif name == "parent":
                assert before == min(u for u in graph.predecessors(v) if levels.get(u, -1) == levels[v] - 1)
            else:
                assert found[before] + graph[before][v]["weight"] == found[v]
    ranks = nx.pagerank(graph, tol=1e-14, max_iter=1000, personalization={"v00": 1, "v03": 1})
    assert np.allclose(table["pagerank"], [ranks[v] for v in ids], atol=1e-10)


def test_the_manifest_records_them(alone: Result) -> None:
    read = alone.manifest.input
    assert read.weights is not None
    assert (read.weights.column, read.weights.repeats, read.directed, read.isolated) == ("weight", "sum", True, True)
    records = {record.name: record.parameters for record in alone.manifest.programs}
    assert records["bfs"] == {"source": "v00"}
    assert records["pagerank"]["personal"] == ["v00", "v03"]


def test_certificates_hold_and_wrong_values_break_them(alone: Result, edges: Path) -> None:
    assert runs.flaws(alone.place.url, str(edges)) == []
    manifest = verify_tables.read_manifest(alone.place)
    vertices = verify_tables.read_vertices(alone.place, manifest)
    result = verify_tables.read_edges(alone.place, "src", "dst", vertices, manifest)
    arcs = arcs_of_input(str(edges), manifest, vertices)
    detail, _ = check_programs(manifest, result, vertices, arcs)
    assert detail.endswith(": pagerank, components, bfs, sssp")
    detail, _ = check_programs(manifest, result, vertices)
    assert re.search(r"not checked without the input.*: pagerank, bfs, sssp$", detail)
    level, distance = (vertices.added[name].to_pylist() for name in ("level", "distance"))
    ids = vertices.ids.to_pylist()
    far = max((value, at) for at, value in enumerate(distance) if value is not None)[1]
    deep = max((value, at) for at, value in enumerate(level) if value is not None)[1]
    off = ids.index("far")
    for name, at, value, message in (
        ("level", deep, level[deep] + 1, "which is too large"),
        ("level", deep, level[deep] - 1, "has the parent|is a start"),
        ("level", deep, None, "which is too large"),
        ("parent", deep, ids[deep], "has the parent"),
        ("distance", far, np.nextafter(distance[far], np.inf), "which is too large"),
        ("distance", far, np.nextafter(distance[far], 0), "no edge from it gives"),
        ("distance", off, 9.0, "a distance or a predecessor, not both"),
        ("predecessor", far, None, "a distance or a predecessor, not both"),
        ("predecessor", far, "alone", "no edge from it gives"),
        ("pagerank", far, 0.5, "ranks are off"),
    ):
        values = vertices.added[name].to_pylist()
        values[at] = value
        column = pa.chunked_array([pa.array(values, vertices.added[name].type)])
        with pytest.raises(Flaw, match=message):
            check_programs(manifest, result, replace(vertices, added={**vertices.added, name: column}), arcs)


def test_a_cycle_of_predecessors_is_found() -> None:
    """All distances are right, and two vertices with an edge of weight 0 name each other."""
    manifest = {"input": {}, "programs": [{"name": "sssp", "parameters": {"source": "0"}, "converged": True}]}
    arcs = Arcs(np.array([0, 1, 2]), np.array([1, 2, 1]), np.array([1.0, 0.0, 0.0]))
    added = {"distance": pa.chunked_array([[0.0, 1.0, 1.0]]), "predecessor": pa.chunked_array([[0, 0, 1]])}
    none, zero = np.zeros(0, np.int32), np.zeros(3, np.int64)
    vertices = verify_tables.VertexTable(pa.array([0, 1, 2]), pa.int64(), zero, zero, none, none, None, added)
    result = verify_tables.EdgeTable(zero[:0], zero[:0], none, none, none)
    check_programs(manifest, result, vertices, arcs)
    wrong = replace(vertices, added={**added, "predecessor": pa.chunked_array([[0, 2, 1]])})
    with pytest.raises(Flaw, match=r"predecessors.*1"):
        check_programs(manifest, result, wrong, arcs)


def test_isolated_vertices_are_vertices(alone: Result) -> None:
    table = alone.vertices.to_table().to_pylist()
    found = {row["id"]: row for row in table}
    for name in ("far", "alone"):
        assert (found[name]["degree"], found[name]["weak_component"], found[name]["pagerank"]) == (0, name, 0)
    assert alone.manifest.counts.vertices == len(_graph())


def test_files_blocks_and_workers_change_nothing(
    alone: Result, listed: Path, two_workers: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LEAST_ENTRIES", 1)
    rows = _rows()
    Random(1).shuffle(rows)
    parts: dict[str, Any] = {"partitions": 3, "ingest": {"rows_per_block": 50}, "sssp.delta": 0.3}
    files = _write(tmp_path / "rows", rows, files=5)
    result = mine(files, tmp_path / "out", vertices=listed, client=two_workers, **parts, **HOW)
    assert result.vertices.to_table().equals(alone.vertices.to_table())
    assert {record.groups for record in result.manifest.programs} == {2}


def test_frames_have_weights_too(alone: Result, listed: Path, tmp_path: Path) -> None:
    import pandas

    frame = pandas.DataFrame(_rows(), columns=["src", "dst", "weight"]).assign(other=1)
    result = mine(frame, tmp_path / "out", vertices=listed, **HOW)
    assert result.vertices.to_table().equals(alone.vertices.to_table())
    bad = frame.assign(weight=frame["weight"].where(frame.index != 9))
    with pytest.raises(InputError, match=r"pandas\.DataFrame.*9.*0"):
        mine(bad, vertices=listed, **HOW)


def test_another_weight_is_another_input(tmp_path: Path) -> None:
    how: dict[str, Any] = QUIET | {"programs": ("lambda", "sssp"), "sssp.source": 1, "weight_column": "w"}
    edges = pa.table({"src": [1, 2, 1], "dst": [2, 3, 3], "w": [1.0, 1.0, 1.5]})
    first = mine(edges, tmp_path / "out", **how)
    assert mine(edges, tmp_path / "out", **how).manifest.run == first.manifest.run
    with pytest.raises(UsageError) as refused:
        mine(edges.set_column(2, "w", [[1.0, 0.25, 1.5]]), tmp_path / "out", **how)
    assert any("pyarrow.Table" in note for note in refused.value.__notes__)
    with pytest.raises(UsageError) as refused:
        mine(edges, tmp_path / "out", **how | {"sssp.source": 2})
    assert any("sssp.source" in note for note in refused.value.__notes__)


@pytest.mark.parametrize(
    "programs", [("lambda", "sssp"), pytest.param(PROGRAMS, marks=pytest.mark.slow)], ids=["one", "all"]
)
def test_a_checkpoint_keeps_weights(alone: Result, listed: Path, tmp_path: Path, programs: tuple[str, ...]) -> None:
    how = HOW | {"programs": programs}
    checkpoint = {"path": str(tmp_path / "kept"), "every_seconds": 0}
    rows = _write(tmp_path / "rows", _rows())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "run_programs", _fails)
        with pytest.raises(RuntimeError, match="on purpose"):
            mine(rows, tmp_path / "out", vertices=listed, checkpoint=checkpoint, **how)
    result = mine(rows, tmp_path / "out", vertices=listed, checkpoint=checkpoint, **how)
    assert "restore" in {stage.stage for stage in result.manifest.stages}
    columns = [column.name for name in programs[1:] for column in every_shipped()[name].columns]
    expected = alone.vertices.to_table().select(["id", "degree", "triangles", "lambda", "component", *columns])
    assert result.vertices.to_table().equals(expected)


def _fails(*_: Any) -> Any:
    raise RuntimeError("on purpose")


@pytest.mark.parametrize(
    ("changed", "kind", "message"),
    [
        ({"sssp.source": "v99"}, InputError, r"sssp\.source: no vertex has the id 'v99'; ids of this input are string"),
        ({"pagerank": {"personal": ["q", "v00"]}}, InputError, r"pagerank\.personal: no vertex has the id 'q'"),
        ({"sssp.source": None}, UsageError, r"the program sssp needs the id of a vertex: sssp=\{\"source\": …\}"),
        (
            {"weight_column": None, "input.repeats": "error"},
            UsageError,
            r"needs weights \(pagerank\.weighted is true\), and the edges have none: name their column",
        ),
        ({"input.repeats": "error"}, InputError, "the edge with a direction between 'v.*' and 'v.*' has 2 rows"),
    ],
)
def test_what_cannot_be_run_is_refused(
    changed: dict[str, Any], kind: Any, message: str, listed: Path, tmp_path: Path
) -> None:
    rows = _write(tmp_path / "rows", _rows())
    with pytest.raises(kind, match=message):
        mine(rows, tmp_path / "out", vertices=listed, **HOW | changed)
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_negative_weights_are_refused_where_a_program_forbids_them(tmp_path: Path) -> None:
    edges = pa.table({"src": [1, 2], "dst": [2, 3], "w": [1, -3]})
    how: dict[str, Any] = QUIET | {"weight_column": "w"}
    with pytest.raises(InputError, match=r"1.*counted.*0.*-3.*'w'.*2.*3"):
        mine(edges, programs=("lambda", "sssp"), **how | {"sssp.source": 1})
    with pytest.raises(UsageError, match=r"bfs\.source: 'x' is not a whole number.* int64"):
        mine(edges, programs=("lambda", "bfs"), **how | {"bfs.source": "x"})
    assert mine(edges, programs=("lambda", "bfs"), **how | {"bfs.source": 3}).vertices.to_table()[
        "level"
    ].to_pylist() == [
        2,
        1,
        0,
    ]


def test_ids_in_settings(tmp_path: Path) -> None:
    def personal(given: Any) -> Any:
        settings = load_settings(None, {"input.path": "a", "output.path": "b", "pagerank.personal": given})
        return settings.parameters_of("pagerank")["personal"]

    (tmp_path / "ids.txt").write_text("7\n\n03\n7\n")
    pq.write_table(pa.table({"id": [5, 4], "other": ["a", "b"]}), tmp_path / "ids.parquet")
    assert personal("b, a,b") == ["a", "b"]
    assert personal([5, "x"]) == personal(np.array(["x", "5"])) == ["5", "x"]
    assert personal(f"@{tmp_path}/ids.txt") == ["03", "7"]
    assert personal(f"@{tmp_path}/ids.parquet") == ["4", "5"]
    assert personal(f"@{tmp_path}/ids.parquet:other") == ["a", "b"]
    pq.write_table(pa.table([[5], [4], [3]], ["id", "x", "x"]), tmp_path / "twice.parquet")
    assert personal(f"@{tmp_path}/twice.parquet") == ["5"]
    for given, message in (
        ("@none", "cannot read the file of ids 'none'"),
        ([True], "must be an id"),
        (f"@{tmp_path}/twice.parquet:x", r"twice\.parquet' has 2 columns named 'x': rename all but one"),
    ):
        with pytest.raises(UsageError, match=message):
            personal(given)
    given_paths = {"input.path": "a", "output.path": "b", "programs.run": "bfs"}
    text = load_settings(None, given_paths, ["bfs.source=0x1F"])
    assert text.parameters_of("bfs") == {"source": "0x1F"}
