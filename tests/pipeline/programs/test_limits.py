"""Limits of programs, their checkpoints, and the count of what groups send."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import runs
from edgemill.pipeline import Result, mine
from edgemill.pipeline.events import Events
from edgemill.pipeline.programs import running, saving
from edgemill.tasks.errors import InternalError
from edgemill.tasks.programs import mirrors
from edgemill.tasks.verify.result import verify
from in_process import call

QUIET: dict[str, Any] = {"device": "cpu", "output.report": False}
NAMES = ("labels", "coreness")
LONG = 15
"""Supersteps of coreness on a path of about twice the length."""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    edges = [*nx.path_graph(2 * LONG).edges, *nx.complete_graph(range(100, 106)).edges]
    return runs.write_rows(tmp_path_factory.mktemp("rows") / "rows.parquet", edges)


@pytest.fixture(scope="module")
def whole(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return mine(rows, tmp_path_factory.mktemp("whole") / "out", programs=NAMES, **QUIET)


@pytest.mark.parametrize("limit", [{"max_supersteps": 3}, pytest.param({"max_seconds": 1e-9}, marks=pytest.mark.slow)])
def test_a_limit_publishes_what_there_is(limit: dict[str, Any], rows: Path, tmp_path: Path) -> None:
    how: dict[str, Any] = {"programs": {"run": ("coreness", "labels"), **limit}}
    result = mine(rows, tmp_path / "out", **how, **QUIET)
    most = limit.get("max_supersteps", 0)
    records = result.manifest.programs
    assert [(record.supersteps, record.converged) for record in records] == [(most, False)] * 2
    assert not result.converged and len(result.manifest.unfinished) == 2
    found = result.vertices.to_table().to_pylist()
    bound = {row["id"]: row["coreness"] for row in found}
    assert (bound[0], bound[most], bound[most + 1], bound[103]) == (1, 1, 2, 5)
    again = mine(rows, tmp_path / "out", overwrite=True, programs=("coreness", "labels"), **QUIET)
    assert again.converged  # a result that a limit ended is not up to date


def test_labels_that_stop_at_their_limit_are_told(rows: Path, tmp_path: Path) -> None:
    """By default after 10 supersteps, or earlier where no label changes any more, as in a clique."""
    clique = runs.write_rows(tmp_path / "clique.parquet", nx.complete_graph(6).edges)
    for path, told in ((rows, ["(stopped after 10 iterations)"]), (clique, [])):
        how = ["--output", str(tmp_path / path.stem), "--device", "cpu", "--set", "output.report=false"]
        ended = call("run", "--input", str(path), "--programs", "labels", *how)
        assert ended.exit_code == 0
        (line,) = (line for line in ended.stdout.splitlines() if line.startswith("programs"))
        assert line.split(maxsplit=2)[1:] == ["labels", *told]


def test_a_limit_ends_with_5(rows: Path, tmp_path: Path) -> None:
    command = ["run", "--input", str(rows), "--output", str(tmp_path / "out"), "--device", "cpu"]
    limit = ["--set", "programs.max_supersteps=2", "--set", "output.report=false"]
    ended = call(*command, "--programs", "lambda,coreness", *limit)
    assert ended.exit_code == 5
    assert "2 supersteps" in ended.stderr
    result = Result(tmp_path / "out")
    assert result.manifest.exact and not result.converged
    assert "lambda" in result.edges.schema.names and result.dn_graphs.count_rows() == 1
    told = {check.name: check.detail for check in verify(result.place.url).checks}
    assert told["programs"].endswith(": none; not checked: coreness")


def _told(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    emit = Events.emit

    def noted(self: Events, event: str, **more: Any) -> None:
        told.append({"event": event, **more})
        emit(self, event, **more)

    monkeypatch.setattr(Events, "emit", noted)
    return told


def test_an_interrupted_program_goes_on(
    rows: Path, whole: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A save is due after every superstep; the run is interrupted in the second program, after some of them."""
    told = _told(monkeypatch)
    how = QUIET | {"checkpoint": {"path": str(tmp_path / "kept"), "every_seconds": 0}}
    pause = saving.KeptPrograms.pause

    def interrupted(self: saving.KeptPrograms, name: str, *more: Any) -> Any:
        found = pause(self, name, *more)
        if name == "coreness" and sum(own.get("program") == "coreness" for own in told) == 5:
            raise KeyboardInterrupt
        return found

    with monkeypatch.context() as patch:
        patch.setattr(saving.KeptPrograms, "pause", interrupted)
        with pytest.raises(KeyboardInterrupt):
            mine(rows, tmp_path / "out", programs=NAMES, **how)
    assert {own["program"] for own in told if own["event"] == "kept"} == {"labels", "coreness"}
    told.clear()
    result = mine(rows, tmp_path / "out", programs=NAMES, **how)
    assert result.vertices.to_table().equals(whole.vertices.to_table())
    kept = [own["program"] for own in told if own["event"] == "kept"]
    assert "labels" not in kept  # it had finished
    assert kept.count("coreness") == result.manifest.programs[1].supersteps - 5
    for own, other in zip(result.manifest.programs, whole.manifest.programs, strict=True):
        assert (own.supersteps, own.converged, own.moved) == (other.supersteps, other.converged, other.moved)
    assert not any((tmp_path / "kept").rglob("*.zip"))


@pytest.mark.slow
def test_another_parameter_is_another_state(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    how = QUIET | {
        "checkpoint": {"path": str(tmp_path / "kept"), "every_seconds": 0},
        "programs": ("labels", "coreness"),
    }
    with monkeypatch.context() as patch:
        patch.setattr(running, "_vertex_columns", None)
        with pytest.raises(TypeError):
            mine(rows, tmp_path / "out", **how)
    told = _told(monkeypatch)
    result = mine(rows, tmp_path / "out", **how | {"labels": {"iterations": 1}})
    refused = [own["reason"] for own in told if own["event"] == "checkpoint_refused"]
    assert refused and all("parameters of labels" in reason for reason in refused)
    assert result.manifest.programs[0].supersteps == 1


def test_lost_words_are_noticed(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = mirrors.Mirrors.exchange

    def losing(self: mirrors.Mirrors, common: Any, own: Any) -> Any:
        found = count(self, common, own)
        self.words_received -= 1
        return found

    monkeypatch.setattr(mirrors.Mirrors, "exchange", losing)
    with pytest.raises(InternalError, match=r"bytes were sent .*coreness, and -?[\d,]+ arrived"):
        mine(rows, tmp_path / "out", programs=("coreness",), **QUIET)
