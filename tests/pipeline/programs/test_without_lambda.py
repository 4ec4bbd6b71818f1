"""Runs of vertex programs without λ: what they publish and do not compute, and what results say of themselves."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from distributed import Client

import runs
from edgemill.pipeline import Result, UsageError, diff, groups_of, ktruss, load_settings, make_plan, mine, top
from edgemill.pipeline.notebook.page import page as notebook_page
from edgemill.pipeline.programs import running
from edgemill.pipeline.settings.declared_programs import every_shipped
from edgemill.pipeline.stages import limits
from edgemill.tasks.verify.result import verify
from in_process import call

QUIET: dict[str, Any] = {"device": "cpu", "output.report": False}
PROGRAMS = ("pagerank", "components", "coreness")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = Random(8)
    edges = [(random.randrange(90), random.randrange(90)) for _ in range(300)] + [(95, 95), (96, 97)]
    return runs.write_rows(tmp_path_factory.mktemp("rows") / "rows.parquet", edges)


@pytest.fixture(scope="module")
def alone(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Programs alone, with a report."""
    return mine(rows, tmp_path_factory.mktemp("alone") / "out", programs=PROGRAMS, device="cpu")


@pytest.fixture(scope="module")
def beside(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The same programs beside λ."""
    return mine(rows, tmp_path_factory.mktemp("beside") / "out", programs=("lambda", *PROGRAMS), **QUIET)


def test_columns_are_those_of_a_run_with_lambda(alone: Result, beside: Result) -> None:
    names = ["id", "degree", "pagerank", "weak_component", "coreness"]
    assert alone.vertices.schema.names == names
    assert alone.vertices.to_table().equals(beside.vertices.to_table(columns=names))
    with_lambda = beside.manifest.counts.model_dump() | {"triangles": None}
    assert alone.manifest.counts.model_dump() == with_lambda


def test_nothing_of_lambda_is_computed(alone: Result) -> None:
    manifest = alone.manifest
    stages = {stage.stage for stage in manifest.stages}
    assert stages == {"compile", "read", "number", "partition", "programs", "publish"}
    assert {output.path.partition("/")[0] for output in manifest.outputs} == {"vertices"}
    written = manifest.model_dump(by_alias=True)
    assert all(written[name] is None for name in ("lambda", "lambda_high", "bounding", "dense", "tracks"))
    assert (written["converged"], written["partitions"], written["exchanges"]) == (True, [], [])
    assert not manifest.exact and manifest.unfinished == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda result: result.edges,
        lambda result: result.dn_graphs,
        lambda result: result.manifest.lam,
        lambda result: result.manifest.bounding,
        lambda result: top(result, "lambda"),
        lambda result: groups_of(result, 1),
        lambda result: ktruss(result, 3),
        lambda result: result.vertices.to_networkx(),
    ],
)
def test_what_needs_lambda_names_the_programs(ask: Any, alone: Result) -> None:
    with pytest.raises(UsageError, match=r'programs=\["lambda"'):
        ask(alone)


def test_columns_are_compared_without_lambda(alone: Result, beside: Result) -> None:
    found = diff(alone, beside)
    assert found.edges is None and found.vertices is not None
    assert found.vertices.unchanged == found.vertices.old == found.vertices.new
    assert {column.name for column in found.vertices.columns} == {"degree", "pagerank", "weak_component", "coreness"}


def test_it_is_checked_by_its_input(rows: Path, alone: Result) -> None:
    told = {check.name: (check.ok, check.detail) for check in verify(alone.place.url, rows).checks}
    assert all(ok for ok, _ in told.values()), told
    ok, detail = told["programs"]
    assert ok and detail.endswith(": pagerank, components, coreness") and ";" not in detail
    assert set(told) == {"manifest", "files", "tables", "vertices", "programs", "input", "totals"}
    (_, without), *_ = [(name, detail) for name, _, detail in verify(alone.place.url).checks if name == "programs"]
    assert re.match(r"not checked, .*no edges: pagerank, components, coreness", without)


def test_another_input_is_a_flaw(alone: Result, tmp_path: Path) -> None:
    other = runs.write_rows(tmp_path / "other.parquet", [(1, 2), (2, 3), (95, 96)])
    flaws = {flaw.partition(":")[0] for flaw in runs.flaws(alone.place.url, str(other))}
    assert {"vertices", "programs", "input", "totals"} <= flaws


def test_clustering_is_checked_without_a_column_of_triangles(rows: Path, tmp_path: Path) -> None:
    result = mine(rows, tmp_path / "out", programs=("clustering", "labels"), **QUIET)
    assert runs.flaws(result.place.url, str(rows)) == []


def test_commands_tell_of_it(rows: Path, alone: Result, tmp_path: Path) -> None:
    command = ["run", "--input", str(rows), "--output", str(tmp_path / "out"), "--device", "cpu"]
    ran = call(*command, "--programs", "coreness", "--set", "output.report=false")
    assert ran.exit_code == 0, ran.output
    assert "lambda" not in ran.output and "triangles" not in ran.output
    shown = call("show", alone.place.url, "--detail")
    assert shown.exit_code == 0, shown.output
    assert "programs" in shown.output and "bounding" not in shown.output
    for arguments in (
        ["show", alone.place.url, "--json"],
        ["status", alone.place.url],
        ["status", "--json", alone.place.url],
    ):
        told = call(*arguments)
        assert told.exit_code == 0, told.output
    report = (alone.path / "report.html").read_text(encoding="utf-8")
    assert "Programs" in report or "pagerank" in report
    assert "λ" not in report.partition("Settings")[0]
    assert "λ" not in notebook_page(alone) and "pagerank" in repr(alone)


def test_the_plan_cuts_no_partitions(rows: Path, tmp_path: Path) -> None:
    plan = make_plan(
        load_settings(None, {"input.path": str(rows), "output.path": str(tmp_path / "out"), "programs.run": "pagerank"})
    )
    assert (plan.method, plan.partitions, plan.finds_lambda) == ("none", 1, False)


def test_lambda_is_another_result(rows: Path, tmp_path: Path) -> None:
    mine(rows, tmp_path / "out", programs=("coreness",), **QUIET)
    again = mine(rows, tmp_path / "out", programs=("coreness",), **QUIET)
    assert again.manifest.run == mine(rows, tmp_path / "out", programs=("coreness",), **QUIET).manifest.run
    with pytest.raises(UsageError) as refused:
        mine(rows, tmp_path / "out", **QUIET)
    assert any("was coreness, and is lambda" in note for note in refused.value.__notes__)


def test_several_workers(
    rows: Path, alone: Result, two_workers: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LEAST_ENTRIES", 1)
    result = mine(rows, tmp_path / "out", programs=PROGRAMS, client=two_workers, **QUIET)
    assert result.vertices.to_table().equals(alone.vertices.to_table())
    assert {record.groups for record in result.manifest.programs} == {2}


@pytest.mark.slow
def test_a_checkpoint_of_the_graph_is_used(rows: Path, alone: Result, tmp_path: Path) -> None:
    checkpoint = {"path": str(tmp_path / "kept"), "every_seconds": 0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "run_programs", _fails)
        with pytest.raises(RuntimeError, match="on purpose"):
            mine(rows, tmp_path / "out", programs=PROGRAMS, checkpoint=checkpoint, **QUIET)
    result = mine(rows, tmp_path / "out", programs=PROGRAMS, checkpoint=checkpoint, **QUIET)
    stages = [stage.stage for stage in result.manifest.stages]
    assert "restore" in stages and "read" not in stages
    assert result.vertices.to_table().equals(alone.vertices.to_table())
    assert not any((tmp_path / "kept").rglob("*.zip"))


def test_no_edges_at_all(tmp_path: Path) -> None:
    programs = [
        name for name, entry in every_shipped().items() if "source" not in entry.vertices and not entry.needs_lambda
    ]
    result = mine(runs.write_rows(tmp_path / "rows.parquet", []), tmp_path / "out", programs=programs, **QUIET)
    assert (result.vertices.count_rows(), result.manifest.input.notes) == (0, [])


def _fails(*_: Any) -> Any:
    raise RuntimeError("on purpose")
