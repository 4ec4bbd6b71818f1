"""Columns of edges: similarity and programs of the user, in results, views, checks and trials."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pytest

import edgemill as package
import runs
from edgemill.pipeline import InputError, ProgramError, Result, UsageError, diff, load_settings, mine, top
from edgemill.pipeline.notebook.page import page as notebook_page
from edgemill.pipeline.queries.program_columns import summaries
from edgemill.pipeline.stages import publishing
from edgemill.tasks.verify import tables as verify_tables
from edgemill.tasks.verify.reading import Flaw
from edgemill.tasks.verify.result import check_programs, verify
from in_process import call

GRAPH = nx.disjoint_union(nx.karate_club_graph(), nx.star_graph(9))
OWN = """
from dataclasses import dataclass

import edgemill


@dataclass(frozen=True)
class Within(edgemill.Program):
    state = {"label": "id"}
    edges = {"within": "bool", "less": "int32"}
    combine = "mode"
    view = "both"
    steps = 3

    def start(self, v):
        return {"label": v.number}, v.full(True, "bool")

    def emit(self, v):
        return v.label

    def apply(self, v, got, t):
        return {"label": got}, got != v.label

    def of_edges(self, low, high, support):
        return {"within": low.label == high.label, "less": support - low.degree.astype("int32")}


@dataclass(frozen=True)
class Share(edgemill.EdgeProgram):
    edges = {"share": "float64"}
    power: float = 1.0

    def of_edges(self, low, high, support):
        return {"share": support / low.degree**self.power + (high.number - high.number)}


class Wrong(Share):
    def of_edges(self, low, high, support):
        support += 1
        return {"share": support}
"""
HOW: dict[str, Any] = {"device": "cpu", "output.report": True, "share.power": 0.5}
PROGRAMS: dict[str, Any] = {
    "programs": ("lambda", "similarity", "labels"),
    "program": ("alike:Within", "alike:Share"),
}


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = tmp_path_factory.mktemp("own")
    (made / "alike.py").write_text(OWN, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(made)
        yield made


@pytest.fixture(scope="module")
def rows(folder: Path) -> Path:
    return runs.write_rows(folder / "rows.parquet", list(GRAPH.edges))


@pytest.fixture(scope="module")
def result(folder: Path, rows: Path) -> Result:
    return mine(rows, folder / "out", **HOW, **PROGRAMS)


def test_columns_of_edges(result: Result) -> None:
    edges = result.edges.to_table()
    of_programs = ["jaccard", "cosine", "within_within", "within_less", "share"]
    assert edges.column_names[2:] == [*runs.EDGE_COLUMNS, *of_programs]
    label = dict(zip(*result.vertices.to_table().select(["id", "within"]).to_pydict().values(), strict=True))
    expected = nx.jaccard_coefficient(GRAPH, GRAPH.edges)
    jaccard = {(min(u, v), max(u, v)): value for u, v, value in expected}
    assert len(set(label.values())) > 2
    for u, v, support, alike, cosine, within, less, share in zip(
        *edges.select(["src", "dst", "support", *of_programs]).to_pydict().values(), strict=True
    ):
        d, e = GRAPH.degree[u], GRAPH.degree[v]
        assert alike == pytest.approx(jaccard[u, v], rel=1e-14)
        assert cosine == pytest.approx((support + 2) / sqrt((d + 1) * (e + 1)), rel=1e-14)
        assert (within, less) == (label[u] == label[v], support - d)
        assert share == pytest.approx(support / sqrt(d), rel=1e-14)
    records = {record.name: record for record in result.manifest.programs}
    assert records["similarity"].edge_columns == ["jaccard", "cosine"] and records["similarity"].columns == []
    assert records["within"].columns == ["within"] and records["share"].source == "alike:Share"


@pytest.mark.slow
def test_buckets_workers_and_checkpoints_change_nothing(
    result: Result, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split: dict[str, Any] = {"partitions": 3, "ingest": {"rows_per_block": 20}}
    saved: dict[str, Any] = {"checkpoint": {"path": str(tmp_path / "kept"), "every_seconds": 0}}
    with monkeypatch.context() as patch:
        patch.setattr(publishing, "_write_edges", _fails)
        with pytest.raises(RuntimeError, match="on purpose"):
            mine(rows, tmp_path / "out", **HOW, **PROGRAMS, **split, **saved)
    monkeypatch.setattr("edgemill.pipeline.programs.running.add_edge_columns", _fails)
    again = mine(rows, tmp_path / "out", **HOW, **PROGRAMS, **split, **saved)
    assert again.edges.to_table().equals(result.edges.to_table())


def _fails(*_: Any) -> Any:
    raise RuntimeError("on purpose")


def test_verify_checks_them(result: Result, rows: Path) -> None:
    (checked,) = (check for check in verify(result.place.url, rows).checks if check.name == "programs")
    assert checked.ok and checked.detail.endswith(": similarity, labels; not checked: within, share")
    manifest = verify_tables.read_manifest(result.place)
    vertices = verify_tables.read_vertices(result.place, manifest)
    edges = verify_tables.read_edges(result.place, "src", "dst", vertices, manifest)
    for column in ("jaccard", "cosine"):
        values = edges.values[column].to_numpy().copy()
        values[7] += 1e-6
        with pytest.raises(Flaw, match=f"{column} says"):
            check_programs(manifest, replace(edges, values={**edges.values, column: pa.array(values)}), vertices)


def test_views(result: Result, tmp_path: Path) -> None:
    alike = next(one for one in summaries(result, 3) if one.name == "jaccard")
    table = result.edges.to_table()
    assert (alike.name, alike.rows, alike.others) == ("jaccard", "edges", 0)
    assert alike.top[0][1] == max(table["jaccard"].to_pylist()) and len(alike.top[0][0]) == 2
    assert sum(own.vertices for own in alike.ranges) == len(table)
    first = top(result, "jaccard", 2).to_pylist()
    assert [tuple(row.values()) for row in first] == [(*ids, value) for ids, value in alike.top[:2]]
    told = call("top", result.place.url, "--by", "cosine", "-n", "1", "--json")
    assert json.loads(told.stdout)["cosine"] == max(table["cosine"].to_pylist())
    shown = call("show", result.place.url, "--detail").output
    assert "edges of highest jaccard" in shown and "within_within" in shown and "similarity (jaccard, cosine;" in shown
    report = (Path(result.place.url) / "report.html").read_text(encoding="utf-8")
    assert "Edges of highest jaccard" in report and "edges of a group" in report
    assert "jaccard" in notebook_page(result)
    assert "not compared: jaccard, cosine" in " ".join(diff(result, result).notices)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"programs.run": "similarity"}, "a run without lambda has no table of edges: --programs lambda,similarity"),
        (
            {"programs.run": "lambda,similarity", "programs.own": ("cosine=alike:Share",)},
            "the program similarity has a column 'cosine'|the program cosine has a column 'cosine'",
        ),
    ],
)
def test_what_cannot_be_run_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_settings(None, {"input.path": "a", "output.path": "b", **settings})


def test_columns_of_ids_and_programs_that_fail(tmp_path: Path) -> None:
    edges = pa.table({"cosine": [1, 2], "dst": [2, 3]})
    ends: dict[str, Any] = {"source_column": "cosine", "target_column": "dst"}
    with pytest.raises(InputError, match=r"'cosine'.*adds"):
        mine(edges, tmp_path / "out", programs=("lambda", "similarity"), device="cpu", **ends)
    with pytest.raises(ProgramError, match=r"`of_edges`.*writes"):
        mine(GRAPH, tmp_path / "out", programs=("lambda",), program=("alike:Wrong",), device="cpu")


def test_trials_and_functions(result: Result) -> None:
    import alike  # type: ignore[import-not-found]

    table = result.edges.to_table().to_pydict()
    ends = list(zip(*list(table.values())[:2], strict=True))
    found = package.try_program(alike.Within(), GRAPH.edges)
    assert found["within"] == dict(zip(ends, table["within_within"], strict=True))
    assert package.try_program(alike.Share(0.5), GRAPH.edges)["share"] == dict(zip(ends, table["share"], strict=True))
    alone = package.similarity(GRAPH, device="cpu").to_arrow()
    assert alone["jaccard"].to_pylist() == table["jaccard"]


def test_graphml_has_them(result: Result) -> None:
    group = str(top(result, "lambda", 1)["id"][0].as_py())
    told = call("subgraph", result.place.url, "--dn-graph", group, "--format", "graphml")
    read = nx.read_graphml(io.BytesIO(told.stdout_bytes))
    table = result.edges.to_table().to_pylist()
    stored = {(str(row.pop("src")), str(row.pop("dst"))): row for row in table}
    for u, v, values in read.edges(data=True):
        assert values == stored.get((u, v), stored.get((v, u)))
