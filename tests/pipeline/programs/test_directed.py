"""Edges that lead one way: what programs make of them, and that λ does not see it."""

from __future__ import annotations

from collections import Counter
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
from edgemill.pipeline import Result, UsageError, mine
from edgemill.pipeline.programs import running
from edgemill.pipeline.settings.declared_programs import every_shipped
from edgemill.pipeline.stages import limits
from edgemill.tasks.programs.shipped import shipped_class
from edgemill.tasks.verify import program_checks
from edgemill.tasks.verify import tables as verify_tables
from edgemill.tasks.verify.arcs import arcs_of_input
from edgemill.tasks.verify.program_checks import CheckByArcs, CheckByEdges, check_strong_components
from edgemill.tasks.verify.reading import Flaw
from edgemill.tasks.verify.result import check_programs, verify
from vertex_programs import check_centralities

WITHOUT_SOURCE = [
    name for name, entry in every_shipped().items() if "source" not in entry.vertices and not entry.needs_lambda
]
ALL = ("lambda", *WITHOUT_SOURCE)
QUIET: dict[str, Any] = {"device": "cpu", "output.report": False}


def _rows(seed: int, vertices: int = 60, count: int = 400) -> list[tuple[int, int]]:
    """Arcs with loops, repetitions and both directions, and some ids that nothing leads to or from."""
    random = Random(seed)
    rows = [(random.randrange(vertices), random.randrange(vertices) * 3 // 4) for _ in range(count)]
    return [*rows, *rows[:20], *((v, u) for u, v in rows[:40]), (vertices, vertices)]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.write_rows(tmp_path_factory.mktemp("rows") / "rows.parquet", _rows(5))


@pytest.fixture(scope="module")
def alone(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """By one process, in several blocks of rows."""
    out = tmp_path_factory.mktemp("alone") / "out"
    return mine(rows, out, programs=ALL, directed=True, **QUIET)


def test_programs_follow_the_directions(alone: Result) -> None:
    graph = nx.DiGraph(edge for edge in _rows(5) if edge[0] != edge[1])
    graph.add_node(60)
    table = alone.vertices.to_table()
    ids = table["id"].to_pylist()
    assert ids == sorted(graph)
    ranks = nx.pagerank(graph, tol=1e-13)
    assert np.allclose(table["pagerank"], [ranks[v] for v in ids], atol=1e-8)
    least = {v: min(part) for part in nx.weakly_connected_components(graph) for v in part}
    assert table["weak_component"].to_pylist() == [least[v] for v in ids]
    least = {v: min(part) for part in nx.strongly_connected_components(graph) for v in part}
    assert table["strong_component"].to_pylist() == [least[v] for v in ids]
    both = graph.to_undirected()
    assert table["coreness"].to_pylist() == [nx.core_number(both)[v] for v in ids]
    for v, value in zip(ids, table["clustering"].to_pylist(), strict=True):
        near = set(both[v])
        links = sum(u in near and w in near for u, w in graph.edges)
        assert value == (links / (len(near) * (len(near) - 1)) if len(near) > 1 else 0)
    check_centralities(table, graph)
    label = {v: v for v in ids}
    for _ in range(10):
        counts = {v: Counter(label[u] for u in [*graph.predecessors(v), *graph.successors(v)]) for v in ids}
        label = {v: min(own, key=lambda k: (-own[k], k)) if own else v for v, own in counts.items()}
    assert table["label"].to_pylist() == [label[v] for v in ids]


def test_edges_and_lambda_are_those_of_both_directions(rows: Path, alone: Result, tmp_path: Path) -> None:
    undirected = mine(rows, tmp_path / "out", **QUIET)
    assert alone.edges.to_table().equals(undirected.edges.to_table())
    assert alone.manifest.counts == undirected.manifest.counts
    assert alone.manifest.input.directed and not undirected.manifest.input.directed
    assert runs.flaws(alone.place.url, str(rows)) == []
    told = {check.name: check.detail for check in verify(alone.place.url, str(rows)).checks}
    assert told["programs"].endswith(f": {', '.join(WITHOUT_SOURCE)}") and ";" not in told["programs"]
    told = {check.name: check.detail for check in verify(alone.place.url).checks}
    checked, unchecked = told["programs"].split("; ")
    by_edges, by_arcs = (
        [name for name in WITHOUT_SOURCE if isinstance(getattr(shipped_class(name), "check", None), kind)]
        for kind in (CheckByEdges, CheckByArcs)
    )
    assert "components" in by_edges and checked.endswith(f": {', '.join(by_edges)}")
    assert "hits" in by_arcs and unchecked.startswith("not checked without the input")
    assert unchecked.endswith(f": {', '.join(by_arcs)}")


@pytest.mark.parametrize("column", ["betweenness", "closeness", "eccentricity", "hub", "authority", "strong_component"])
@pytest.mark.parametrize("limit", [10**7, 0])
def test_a_wrong_value_of_searches_is_found(
    column: str, limit: int, rows: Path, alone: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all searches repeated, or some: betweenness is checked by all only."""
    monkeypatch.setattr(program_checks, "SEARCHED_ARCS", limit)
    manifest = verify_tables.read_manifest(alone.place)
    vertices = verify_tables.read_vertices(alone.place, manifest)
    edges = verify_tables.read_edges(alone.place, "src", "dst", vertices, manifest)
    arcs = arcs_of_input(str(rows), manifest, vertices)
    check_programs(manifest, edges, vertices, arcs)
    values = vertices.added[column].to_numpy().copy()
    values[0] += 1
    wrong = vertices.added | {column: pa.chunked_array([pa.array(values)])}  # type: ignore[operator]
    if limit or column != "betweenness":
        with pytest.raises(Flaw, match=column):
            check_programs(manifest, edges, replace(vertices, added=wrong), arcs)


def test_strong_components_that_are_parts_or_joined_are_found(rows: Path, alone: Result) -> None:
    manifest = verify_tables.read_manifest(alone.place)
    vertices = verify_tables.read_vertices(alone.place, manifest)
    arcs = arcs_of_input(str(rows), manifest, vertices)
    label = vertices.added["strong_component"].to_numpy()
    ids = vertices.ids.to_numpy()
    part, single = np.flatnonzero(label == np.bincount(label).argmax()), np.flatnonzero(np.bincount(label)[label] == 1)
    apart, joined = label.copy(), label.copy()
    apart[part[-1]] = ids[part[-1]]
    joined[single[single > part[0]][0]] = label[part[0]]
    for wrong, message in ((apart, "are on a circle"), (joined, "has no path (from|to) its strong_component")):
        added = {**vertices.added, "strong_component": pa.chunked_array([pa.array(wrong)])}
        with pytest.raises(Flaw, match=message):
            check_strong_components(arcs, replace(vertices, added=added), {})


@pytest.mark.slow
def test_blocks_of_rows_and_workers_change_nothing(
    alone: Result, two_workers: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LEAST_ENTRIES", 1)
    folder = tmp_path / "rows"
    folder.mkdir()
    given = _rows(5)
    parts: dict[str, Any] = {"partitions": 3, "ingest": {"rows_per_block": 100}}
    for part in range(4):
        runs.write_rows(folder / f"{part}.parquet", given[part::4])
    result = mine(folder, tmp_path / "out", programs=ALL, directed=True, client=two_workers, **parts, **QUIET)
    assert result.vertices.to_table().equals(alone.vertices.to_table())
    assert {record.groups for record in result.manifest.programs} == {2}


def test_text_ids_have_directions_too(alone: Result, tmp_path: Path) -> None:
    """Of ids that sort as the numbers do the same comes out, but for their names."""
    columns = [pa.array([f"{edge[side]:03}" for edge in _rows(5)]) for side in (0, 1)]
    pq.write_table(pa.table(columns, names=["src", "dst"]), tmp_path / "rows.parquet")
    result = mine(tmp_path / "rows.parquet", tmp_path / "out", programs=ALL, directed=True, **QUIET)
    for name in ("pagerank", "coreness", "clustering"):
        assert result.vertices.to_table()[name].equals(alone.vertices.to_table()[name])
    assert (
        list(map(int, result.vertices.to_table()["label"].to_pylist()))
        == alone.vertices.to_table()["label"].to_pylist()
    )


def test_a_result_of_the_other_kind_is_another(rows: Path, tmp_path: Path) -> None:
    mine(rows, tmp_path / "out", programs=("lambda", "pagerank"), **QUIET)
    with pytest.raises(UsageError) as refused:
        mine(rows, tmp_path / "out", programs=("lambda", "pagerank"), directed=True, **QUIET)
    assert any("directed was false, and is true" in note for note in refused.value.__notes__)


@pytest.mark.parametrize(
    "programs", [("lambda", "strong_components"), pytest.param(ALL, marks=pytest.mark.slow)], ids=["one", "all"]
)
def test_what_is_kept_keeps_directions(rows: Path, alone: Result, tmp_path: Path, programs: tuple[str, ...]) -> None:
    """A run that goes on from a checkpoint of its edges."""
    checkpoint = {"path": str(tmp_path / "kept"), "every_seconds": 0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "run_programs", _fails)
        with pytest.raises(RuntimeError, match="on purpose"):
            mine(rows, tmp_path / "out", programs=programs, directed=True, checkpoint=checkpoint, **QUIET)
    assert any((tmp_path / "kept").rglob("*"))
    result = mine(rows, tmp_path / "out", programs=programs, directed=True, checkpoint=checkpoint, **QUIET)
    assert "restore" in {stage.stage for stage in result.manifest.stages}
    columns = [column.name for name in programs[1:] for column in every_shipped()[name].columns]
    expected = alone.vertices.to_table().select(["id", "degree", "triangles", "lambda", "component", *columns])
    assert result.vertices.to_table().equals(expected)


def _fails(*_: Any) -> Any:
    raise RuntimeError("on purpose")
