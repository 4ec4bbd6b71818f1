"""The file report.html: with a run, for a finished run, refused outputs, errors, object stores."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from threading import Event, current_thread
from typing import Any

import fsspec
import pytest
from distributed import Client

import runs
from edgemill.pipeline import InputError, Result, mine
from edgemill.pipeline.output.manifest import (
    Manifest,
)
from edgemill.pipeline.report.report import import_early, write_report
from edgemill.tasks.verify.result import verify
from in_process import call
from pages import Shown, read_page

WriteResult = Callable[..., Manifest]
Mine = Callable[..., Result]

WITH_REPORT: dict[str, Any] = {"output.report": True}


def shown(path: Path) -> Shown:
    return read_page(path.read_text("utf-8"))


def log(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (result.path / "log.jsonl").read_text().splitlines()]


def test_a_full_disk_keeps_the_earlier_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_result: WriteResult
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    out = tmp_path / "out"
    write_result(out)
    assert command(out)[0] == 0
    before = (out / "report.html").read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    for more in ([], ["--output", str(tmp_path / "page.html")]):
        code, _, told = command(out, *more)
        assert (code, "space left" in told) == (7, True)
    assert (out / "report.html").read_bytes() == before
    assert not [path for path in (*out.iterdir(), *tmp_path.iterdir()) if path.name.startswith((".", "page"))]


def test_runs_without_a_report(tmp_path: Path, mined: Mine) -> None:
    rows = runs.write_rows(tmp_path / "rows.parquet", [(1, 2)])
    result = mined(rows, **{"output.report": False})
    assert not (result.path / "report.html").exists()
    assert not [line for line in log(result) if line["event"].startswith("report")]
    again = mine(rows, result.path, **WITH_REPORT)
    assert log(again)[-1]["event"] == "nothing_to_do"  # a missing report does not make a result out of date
    assert not (result.path / "report.html").exists()


@pytest.mark.parametrize("error", [ValueError("no picture"), MemoryError(), OSError(28, "No space left", "f")])
def test_a_failed_report_keeps_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fails(*_: object) -> bytes:
        raise error

    monkeypatch.setattr("edgemill.pipeline.report.page.page", fails)
    rows = runs.write_rows(tmp_path / "rows.parquet", [(1, 2), (2, 3), (1, 3)])
    out = tmp_path / "out"
    done = call("run", "--input", str(rows), "--output", str(out), "--device", "cpu")
    assert done.exit_code == 0
    assert done.stderr.startswith("Warning: the result is complete, but its report could not be written: ")
    assert len(done.stderr.splitlines()) == 1
    assert not (out / "report.html").exists()
    assert verify(out, rows).ok
    *_, failed, last = log(Result(out))
    assert (failed["event"], last["event"]) == ("report_failed", "run_finished")
    assert failed["reason"] in done.stderr


def test_no_partial_report_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk becomes full during the write."""

    class Full(io.FileIO):
        def write(self, content: Any) -> int:
            super().write(content[: len(content) // 2])
            raise OSError(28, "No space left on device")

    def fills(handle: int, mode: str) -> Any:
        return (Full if os.readlink(f"/proc/self/fd/{handle}").endswith("report.html") else io.FileIO)(handle, mode)

    monkeypatch.setattr("edgemill.tasks.storage.atomic.open", fills, raising=False)
    rows = runs.write_rows(tmp_path / "rows.parquet", [(1, 2)])
    result = mine(rows, tmp_path / "out", device="cpu")
    assert not (result.path / "report.html").exists()
    assert [line["event"] for line in log(result)][-2:] == ["report_failed", "run_finished"]


def test_the_interpreter_waits_for_the_early_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may load native libraries, which a daemon thread would do while the interpreter ends."""
    begun, threads = Event(), []

    def importing(*_: object) -> None:
        threads.append(current_thread())
        begun.set()

    monkeypatch.setattr("edgemill.pipeline.report.report.import_module", importing)
    import_early()
    assert begun.wait(20)
    assert [thread.daemon for thread in threads] == [False]


def test_interrupt_during_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr("edgemill.pipeline.report.page.page", interrupted)
    rows = runs.write_rows(tmp_path / "rows.parquet", [(1, 2)])
    with pytest.raises(KeyboardInterrupt):
        mine(rows, tmp_path / "out", device="cpu")
    assert not (tmp_path / "out").exists()


def command(*arguments: str | Path) -> tuple[int, str, str]:
    done = call("report", *(str(argument) for argument in arguments))
    return done.exit_code, done.stdout.strip(), done.stderr.strip()


def test_the_report_of_a_finished_run(tmp_path: Path, write_result: WriteResult) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "page.html"
    write_result(out)
    files = sorted(path.name for path in out.iterdir())
    assert command(out, "--output", elsewhere) == (0, str(elsewhere), "")
    assert sorted(path.name for path in out.iterdir()) == files
    assert command(out) == (0, f"{out}/report.html", "")
    before = (out / "report.html").stat().st_ino
    with (out / "report.html").open("rb") as earlier:  # an open file keeps its content
        assert command(out) == (0, f"{out}/report.html", "")
        assert read_page(earlier.read().decode()).headings == shown(elsewhere).headings
    assert (out / "report.html").stat().st_ino != before
    assert sorted(path.name for path in out.iterdir()) == sorted([*files, "report.html"])
    assert Result(out).manifest.run in (out / "report.html").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "page.html"]


def test_a_result_named_by_a_dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_result: WriteResult) -> None:
    """The page names the folder."""
    write_result(tmp_path / "out")
    monkeypatch.chdir(tmp_path / "out")
    for name in (".", "../out/", "../out/edges/.."):
        assert command(name)[0] == 0
        found = shown(tmp_path / "out" / "report.html")
        assert found.headings[0] == ("h1", "out")
        assert str(tmp_path / "out") in found.text


def test_refused_outputs(tmp_path: Path, write_result: WriteResult) -> None:
    out = tmp_path / "out"
    assert command(out) == (2, "", f"Error: there is no result at {out}: no such folder")
    write_result(out)
    manifest = (out / "manifest.json").read_bytes()
    thesis = tmp_path / "thesis.html"
    thesis.write_text("mine")
    for place, more, why in (
        (tmp_path / "none" / "x", [], "cannot write {}: No such file or directory"),
        (tmp_path, [], "{} is a folder: name a file"),
        (thesis, [], "{} exists: choose another, or replace it with --overwrite"),
        (out / "manifest.json", ["--overwrite"], f"{{}} is inside the result {out}, which must not change"),
    ):
        code, said, told = command(out, "--output", place, *more)
        assert (code, said) == (2, "")
        assert why.format(place) in told
    assert (thesis.read_text(), (out / "manifest.json").read_bytes()) == ("mine", manifest)
    assert command(out, "--output", thesis, "--overwrite") == (0, str(thesis), "")
    assert shown(thesis).headings[0] == ("h1", "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "thesis.html"]
    (out / "report.html").mkdir()
    told = f"Error: cannot write the report {out}/report.html: it is a folder; --output names another file"
    assert command(out) == (2, "", told)
    (out / "manifest.json").unlink()
    code, _, told = command(out)
    assert (code, "edgemill result" in told) == (3, True)


def test_a_damaged_table_is_reported(tmp_path: Path, write_result: WriteResult) -> None:
    write_result(tmp_path / "out")
    table = tmp_path / "out" / "vertices" / "part-00000.parquet"
    table.write_bytes(b"\0" * table.stat().st_size)
    with pytest.raises(InputError, match="damaged"):
        write_report(tmp_path / "out")
    assert not (tmp_path / "out" / "report.html").exists()


def test_a_result_that_is_replaced_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_result: WriteResult
) -> None:
    out = tmp_path / "out"
    write_result(out)

    others = iter(("20261102T120000-fedcba", "20261103T120000-fedcba"))

    def overtaken(*_: object) -> bytes:
        (out / "manifest.json").unlink()
        write_result(out, run=next(others))
        return b"of the earlier run"

    monkeypatch.setattr("edgemill.pipeline.report.page.page", overtaken)
    for output in (None, tmp_path / "page.html"):
        with pytest.raises(InputError, match="changed during"):
            write_report(out, output)
    assert not (out / "report.html").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_in_an_object_store(tmp_path: Path, client: Client) -> None:
    rows, url = runs.write_rows(tmp_path / "rows.parquet", [(1, 2), (2, 3), (1, 3)]), "memory://reports/out"
    result = mine(rows, url, client=client, device="cpu")
    name = f"edgemill-{result.manifest.run}/report.html"
    first = result.place.read(name)
    assert first is not None
    assert read_page(first.decode()).headings[0] == ("h1", "out")
    assert url in read_page(first.decode()).text
    fsspec.filesystem("memory").rm(f"/reports/out/{name}")
    assert command(url) == (0, f"{url}/{name}", "")
    assert result.place.names() == [f"edgemill-{result.manifest.run}", "manifest.json"]
    assert verify(url, rows).ok
