"""The table of distances: what is published, checked and refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import edgemill as package
import runs
from edgemill.pipeline import Result, UsageError, mine
from edgemill.pipeline.programs import results
from edgemill.tasks.verify import tables as verify_tables
from edgemill.tasks.verify.program_checks import check_distance_table
from edgemill.tasks.verify.reading import Flaw
from edgemill.tasks.verify.result import verify

GRAPH = nx.gnp_random_graph(60, 0.04, seed=5, directed=True)
NAMES = {v: f"n{v:02}" * (1 + v % 3) for v in GRAPH}
HOW: dict[str, Any] = {"device": "cpu", "output.report": False, "distances.table": True, "directed": True}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    edges = [(NAMES[u], NAMES[v]) for u, v in GRAPH.edges]
    return runs.write_rows(tmp_path_factory.mktemp("rows") / "rows.parquet", edges, pa.string())


@pytest.fixture(scope="module")
def result(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return mine(rows, tmp_path_factory.mktemp("table") / "out", programs=("distances",), **HOW)


def expected(graph: Any) -> list[tuple[Any, Any, int]]:
    found = nx.all_pairs_shortest_path_length(graph)
    return sorted((NAMES[u], NAMES[v], d) for u, ends in found for v, d in ends.items() if d)


def table_of(result: Result) -> list[tuple[Any, ...]]:
    return list(zip(*result.distances.to_table().to_pydict().values(), strict=True))


def test_all_pairs(result: Result, rows: Path) -> None:
    assert result.distances.schema.names == ["source", "target", "distance"]
    assert table_of(result) == expected(GRAPH)
    (check,) = (check for check in verify(result.place.url, rows).checks if check.name == "distances")
    assert check.ok and "searches from 58 vertices" in check.detail
    (check,) = (check for check in verify(result.place.url).checks if check.name == "programs")
    assert "not checked" in check.detail


def test_beside_lambda_in_buckets_and_row_groups(result: Result, rows: Path, tmp_path: Path) -> None:
    how = HOW | {"partitions": 3, "ingest": {"rows_per_block": 50}, "output": {"row_group_rows": 100, "report": False}}
    del how["output.report"]
    other = mine(rows, tmp_path / "out", programs=("lambda", "distances"), **how)
    assert table_of(other) == table_of(result)
    assert {check.name: check.ok for check in verify(other.place.url, rows).checks}["distances"]


def test_some_sources(rows: Path, tmp_path: Path) -> None:
    found = mine(rows, tmp_path / "out", programs=("distances",), **HOW | {"distances.sources": 7})
    sources = {row[0] for row in table_of(found)}
    assert len(sources) <= 7 and table_of(found) == [row for row in expected(GRAPH) if row[0] in sources]
    assert all(check.ok for check in verify(found.place.url, rows).checks)


def test_wrong_rows_are_found(result: Result, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from edgemill.tasks.verify import program_checks
    from edgemill.tasks.verify.arcs import arcs_of_input

    manifest = verify_tables.read_manifest(result.place)
    vertices = verify_tables.read_vertices(result.place, manifest)
    arcs = arcs_of_input(str(rows), manifest, vertices)
    none: Any = None
    good = pq.read_table(Path(result.place.url) / "distances")
    at, kind = 5, good.schema

    def changed(**columns: Any) -> pa.Table:
        return pa.table({name: columns.get(name, good[name].to_pylist()) for name in kind.names}, kind)

    longer = good["distance"].to_pylist()
    longer[at] += 1
    for table, message in (
        (changed(distance=longer), "are not those of a search"),
        (good.take([0, 2, 1, *range(3, len(good))]), "do not ascend"),
        (good.slice(0, len(good) - 1), "are not those of a search"),
        (changed(target=["nobody", *good["target"].to_pylist()[1:]]), "ids that are no sources or no vertices"),
    ):
        monkeypatch.setattr(program_checks, "read_file", lambda *_, table=table: table)
        with pytest.raises(Flaw, match=message):
            check_distance_table(result.place, manifest, none, vertices, arcs)
    monkeypatch.undo()
    for fact in ("longest", "sources"):
        (record,) = manifest["programs"]
        facts = {name: value for name, value in record["facts"].items() if name != fact}
        damaged = manifest | {"programs": [record | {"facts": facts}]}
        with pytest.raises(Flaw, match=f"record of the table of distances is damaged: KeyError '{fact}'"):
            check_distance_table(result.place, damaged, none, vertices, arcs)


def test_what_is_refused(result: Result, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MOST_VERTICES", 57)
    with pytest.raises(UsageError, match=r"distances\.table.*58.*57"):
        mine(rows, tmp_path / "out", programs=("distances",), **HOW)
    assert not (tmp_path / "out").exists()
    small = mine(rows, tmp_path / "out", programs=("components",), **HOW)  # the program does not run
    with pytest.raises(UsageError, match=r'with programs=\["distances"\] and distances=\{"table": True\}'):
        _ = small.distances
    assert "closeness" in package.distances(GRAPH, device="cpu").schema.names
