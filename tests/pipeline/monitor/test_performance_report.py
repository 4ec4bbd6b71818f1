"""Dask's performance report of a run: its file, its messages, and that a failed report does not fail the run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import distributed
import pytest
from distributed import Client

import runs
from edgemill.pipeline import ClusterLost, EdgemillError, InputError, Result, UsageError
from edgemill.pipeline.cluster import dashboard
from edgemill.pipeline.events import Events
from edgemill.pipeline.run.mining import mine_settings
from edgemill.pipeline.settings.sources import make_settings
from edgemill.tasks.errors import StoreLost

TWO_TRIANGLES = [(1, 2), (2, 3), (1, 3), (3, 4), (2, 4)]


class Heard:
    """Records events and runs an action at one of them."""

    def __init__(self, name: str = "", act: Callable[[], object] | None = None) -> None:
        self.events: list[Mapping[str, Any]] = []
        self.name, self.act = name, act

    def show(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)
        if self.act is not None and event["event"] == self.name:
            self.act()

    def close(self) -> None:
        pass

    def failed(self) -> list[str]:
        return [event["reason"] for event in self.events if event["event"] == "performance_report_failed"]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return runs.write_rows(tmp_path / "rows.parquet", TWO_TRIANGLES)


def run(rows: Path, file: Path, client: Client | None, heard: Heard | None = None, **more: Any) -> Result:
    how: dict[str, Any] = {"device": "cpu", "output.report": False, "performance_report": file} | more
    with Events(heard) as events:
        return mine_settings(make_settings(rows, rows.parent / "out", **how), client=client, events=events)


@pytest.mark.parametrize("own", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["a client's", "its own"])
def test_a_page_of_the_whole_run(rows: Path, tmp_path: Path, client: Client, own: bool) -> None:
    file, heard, secret = tmp_path / "report.html", Heard(), {"output.storage_options": {"key": "very secret"}}
    file.write_text("<!DOCTYPE html>of the night before")
    run(rows, file, None if own else client, heard, **secret)
    page = file.read_text()
    assert page.lstrip().startswith("<!DOCTYPE html>")
    assert "Dask Performance Report" in page
    for task in ("read-block", "write-edges"):
        assert task.partition("-")[0] in page
    assert "partitioning:" in page  # the settings replace the calling code
    assert "very secret" not in page
    assert not re.search(r"<script[^>]+src=|<link\b", page)
    assert not heard.failed()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "report.html", "rows.parquet"]
    runs.assert_nothing_left(client)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nowhere/report.html", "nowhere/report.html: No such file or directory"),
        ("folder", "folder is a folder: name a file"),
        ("rows.parquet/report.html", "rows.parquet/report.html: Not a directory"),
        ("out/report.html", "out/report.html is inside the result .*out"),
        ("s3://me:secret@bucket/report.html", "must be a file on a disk of this machine, not a URL"),
        ("rows.parquet", "rows.parquet exists and is not an HTML page: name another file"),
    ],
)
def test_told_before_the_run_begins(rows: Path, tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "folder").mkdir()
    place = Path(name) if "://" in name else tmp_path / name
    heard = Heard()
    with pytest.raises(UsageError, match=rf"monitoring\.performance_report.*{why}"):
        run(rows, place, None, heard, **({"performance_report": name} if "://" in name else {}))
    assert not heard.events
    left = {path.name for path in tmp_path.iterdir()} - {"out.failed.log.jsonl"}  # the trace of the failure
    assert left == {"folder", "rows.parquet"}


def test_what_a_killed_run_leaves_is_cleared(
    rows: Path, tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is written to a folder that the next run cleans, and nothing of it stays in the result."""
    seen: list[set[str]] = []
    written: Any = distributed.performance_report.__aexit__

    async def look(report: Any, *arguments: Any, **more: Any) -> None:
        await written(report, *arguments, **more)
        seen.append({path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*report*.html")})

    monkeypatch.setattr(distributed.performance_report, "__aexit__", look)
    for file, there in ((tmp_path / "report.html", True), (tmp_path / "nowhere" / "report.html", False)):
        if not there:
            file.parent.mkdir()
        heard = Heard() if there else Heard("planned", file.parent.rmdir)
        result = run(rows, file, client, heard, **{"output.overwrite": True, "fresh": True})
        assert file.exists() == there == (not heard.failed())
        assert not list(result.path.rglob("*report*"))
    staged = [{name for name in names if name.startswith(".out.edgemill-")} for names in seen]
    assert [len(names) for names in staged] == [1, 1]
    assert [names - own for names, own in zip(seen, staged, strict=True)] == [set(), {"report.html"}]


def test_no_result_is_lost(rows: Path, tmp_path: Path, client: Client) -> None:
    """The folder of the report is removed during the run."""
    folder = tmp_path / "reports"
    folder.mkdir()
    heard = Heard("planned", lambda: folder.rename(tmp_path / "moved"))
    result = run(rows, folder / "report.html", client, heard)
    assert runs.column(result, "lambda") == dict.fromkeys(sorted(map(tuple, map(sorted, TWO_TRIANGLES))), 1)
    (told,) = heard.failed()
    assert re.fullmatch(rf"monitoring\.performance_report: .*{folder}/report\.html: No such file or directory", told)
    assert not list((tmp_path / "moved").iterdir())


def test_a_scheduler_that_cannot(rows: Path, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no Bokeh there")

    monkeypatch.setattr(distributed.performance_report, "__aenter__", fail)
    heard, file = Heard(), rows.parent / "report.html"
    assert run(rows, file, client, heard).converged
    assert heard.failed() == ["unexpected RuntimeError: no Bokeh there"]
    assert not file.exists()


def test_of_a_run_that_fails(rows: Path, tmp_path: Path, client: Client) -> None:
    """A failed run has a report, unless its cluster is lost."""
    file = tmp_path / "report.html"
    for error in (ClusterLost("gone"), InputError("bad"), StoreLost("its store")):

        def fail(event: EdgemillError = error) -> None:
            raise event

        with pytest.raises(type(error)):
            run(rows, file, client, Heard("stage_finished", fail))
        assert file.exists() == (type(error) is not ClusterLost)
        file.unlink(missing_ok=True)


def test_nobody_waits_for_ever(rows: Path, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(*_: object, **__: object) -> None:
        await distributed.Event("that nobody sets", client=client).wait()

    monkeypatch.setattr(dashboard, "_REPORT_SECONDS", 0.2)
    monkeypatch.setattr(distributed.performance_report, "__aexit__", hang)
    heard = Heard()
    assert run(rows, rows.parent / "report.html", client, heard).converged
    (told,) = heard.failed()
    assert "scheduler" in told and "not answer within 0.2 s" in told
