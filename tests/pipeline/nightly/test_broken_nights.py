"""Nights that are refused, nights after one that was mined again, and what a night that fails leaves behind."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import combinations, count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import Result as Ended
from prometheus_client.parser import text_string_to_metric_families

import runs
from edgemill.pipeline import InputError, Result, mine
from edgemill.pipeline.opening import checklist
from edgemill.pipeline.output.lock import FolderLock
from edgemill.tasks.storage.folders import Folder, folder_at
from edgemill.tasks.storage.pointer import pointer_target
from in_process import call

Rows = list[tuple[Any, ...]]
WAYS = [pytest.param("never", marks=pytest.mark.slow), "always"]
_numbers = count()


def cliques(number: int, first: int = 0) -> Rows:
    """Cliques of five vertices, so ten edges each."""
    starts = range(10 * first, 10 * (first + number), 10)
    return [(start + u, start + v) for start in starts for u, v in combinations(range(5), 2)]


@pytest.fixture
def series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def write(day: str, rows: Rows, id_type: pa.DataType | None = None) -> None:
    folder = Path("edges") / f"2026-11-{day}"
    folder.mkdir(parents=True, exist_ok=True)
    runs.write_rows(folder / "part.parquet", rows, *([] if id_type is None else [id_type]))
    (folder / "_SUCCESS").touch()


def night(day: str, *arguments: str, out: str = "results") -> Ended:
    paths = ["--input", "edges/{date}", "--output", f"{out}/{{date}}", "--date", f"2026-11-{day}", "--device", "cpu"]
    settings = ["--set", "output.report=false"]
    if not any(one.startswith("input.complete_marker") for one in arguments):
        settings += ["--set", "input.complete_marker=_SUCCESS"]
    if not any(one.startswith("output.overwrite") for one in arguments):
        settings += ["--overwrite"]
    return call("run", *paths, *settings, *arguments)


def mined(day: str, rows: Rows | None = None, *arguments: str) -> Result:
    if rows is not None:
        write(day, rows)
    ended = night(day, *arguments)
    assert ended.exit_code == 0, ended.stderr
    return Result(f"results/2026-11-{day}")


def status(out: str) -> tuple[int, dict[str, Any]]:
    ended = call("status", out, "--json")
    found: dict[str, Any] = json.loads(ended.stdout)
    return ended.exit_code, found


def latest() -> str:
    return Path("results/latest").readlink().name


# ---- nights that are refused


@pytest.mark.parametrize("way", WAYS)
def test_a_night_with_few_edges_is_refused(series: Path, way: str) -> None:
    how = "--set", f"nightly.incremental={way}"
    mined("18", cliques(4), "--set", "nightly.incremental=auto")
    write("19", cliques(2)[:-1])
    refused = night("19", *how)
    assert (refused.exit_code, refused.stdout) == (3, "")
    for fact in ("19 edges", "at least 20", "the 40 of 2026-11-18", "--set nightly.least_share=null", "stays at"):
        assert fact in refused.stderr, fact
    assert (latest(), Path("results/2026-11-19").exists()) == ("2026-11-18", False)
    events = [json.loads(line) for line in Path("results/2026-11-19.failed.log.jsonl").read_text().splitlines()]
    assert not {event.get("stage") for event in events} & {"triangulate", "bound", "delete", "insert", "publish"}

    after = mined("20", cliques(3), *how)  # follows the last good night
    assert after.manifest.tracks is not None and after.manifest.tracks.previous is not None
    assert after.manifest.tracks.previous.day == "2026-11-18"
    accepted = mined("19", None, *how, "--set", "nightly.least_share=null")
    assert (accepted.manifest.counts.edges, latest()) == (19, "2026-11-20")


def test_which_night_counts(series: Path) -> None:
    """The first night is compared with none, half is enough, and an old day is compared with the one before it."""
    mined("16", cliques(6))
    mined("18", cliques(3))
    mined("19", cliques(40))
    mined("17", cliques(3))
    write("20", cliques(39))
    assert "the 400 of 2026-11-19" in night("20", "--set", "nightly.least_share=0.98").stderr


@pytest.mark.parametrize("way", WAYS)
def test_ids_of_another_type_are_refused(series: Path, way: str) -> None:
    how = "--set", f"nightly.incremental={way}"
    mined("18", cliques(4))
    write("19", [(str(u), str(v)) for u, v in cliques(4)], pa.string())
    refused = night("19", *how)
    assert refused.exit_code == 3
    for fact in ("ids are string", "2026-11-18 are int64", "--set nightly.least_share=null"):
        assert fact in refused.stderr, fact
    assert latest() == "2026-11-18"
    if way != "always":
        assert night("19", *how, "--set", "nightly.least_share=null").exit_code == 0
        assert latest() == "2026-11-19"


def test_a_file_without_changes_is_no_way_around(series: Path) -> None:
    """All files of the result that --previous names would be taken over, but the night before has more edges."""
    write("01", cliques(1))
    small = mine("edges/2026-11-01", "small", device="cpu", incremental="auto", report=False)
    mined("18", cliques(4))
    write("19", cliques(1))
    refused = night("19", "--previous", str(small.place), "--set", "nightly.incremental=auto")
    assert (refused.exit_code, "10 edges" in refused.stderr) == (3, True)


def test_an_earlier_result_without_a_series(series: Path) -> None:
    write("18", cliques(4))
    write("19", cliques(1))
    mine("edges/2026-11-18", "monday", device="cpu", report=False)
    with pytest.raises(InputError, match=r"10.*40.*least_share=None"):
        mine("edges/2026-11-19", "tuesday", device="cpu", report=False, previous="monday")
    with pytest.raises(InputError, match="10 edges"):
        mine("edges/2026-11-19", "tuesday", device="cpu", report=False, previous="monday", incremental="always")
    mine("edges/2026-11-19", "tuesday", device="cpu", report=False, previous="monday", least_share=None)
    assert Result("tuesday").manifest.counts.edges == 10


def test_a_batch_that_deletes_most_of_a_night(series: Path) -> None:
    mined("18", cliques(4), "--set", "nightly.incremental=auto")
    write("01", cliques(3))
    command = ["update", "results/2026-11-18", "--delete", "edges/2026-11-01", "--output", "results/{date}"]
    refused = call(*command, "--date", "2026-11-19", "--device", "cpu")
    assert (refused.exit_code, "10 edges" in refused.stderr, latest()) == (3, True, "2026-11-18")


def test_edges_are_counted_once_in_both_directions(series: Path) -> None:
    """Rows of both directions and repeated rows are one edge, as in the manifest."""
    rows = cliques(4)
    more = "--directed", "--programs", "lambda,hits", "--set", "nightly.least_share=1"
    mined("18", rows, *more)
    assert mined("19", [*rows, *((v, u) for u, v in rows), *rows], *more).manifest.counts.edges == 40
    write("20", [*rows[1:], *((v, u) for u, v in rows[1:])])
    assert "39 edges" in night("20", *more).stderr


# ---- nights after one that was mined again


def lineage(result: Result) -> tuple[str, str]:
    tracks = result.manifest.tracks
    assert tracks is not None and tracks.previous is not None
    return tracks.previous.day, tracks.previous.run


@pytest.mark.parametrize("way", [pytest.param("never", marks=pytest.mark.slow), "auto"])
def test_the_night_after_one_that_was_mined_again(series: Path, way: str) -> None:
    how = "--set", f"nightly.incremental={way}"
    for day, rows in (("18", cliques(4)), ("19", cliques(5)), ("20", cliques(6))):
        mined(day, rows, *how)
    write("19", cliques(5, first=2))
    again = night("19", *how)
    assert again.exit_code == 0
    assert "2026-11-20" in again.stderr and "--date 2026-11-20" in again.stderr
    assert "latest      stays at 2026-11-20" in again.stdout

    before, third = Result("results/2026-11-19"), mined("20", None, *how)
    assert lineage(third) == ("2026-11-19", before.manifest.run)
    assert third.manifest.update is None or third.manifest.update.base_run == before.manifest.run
    replacing = [json.loads(line) for line in (third.path / "log.jsonl").read_text().splitlines()]
    assert [event["reason"] for event in replacing if event["event"] == "replacing"] != []
    assert "2026-11-20" not in night("19", *how).stderr  # all follow now
    assert mined("20", None, *how).manifest.run == third.manifest.run


def test_a_day_that_came_late(series: Path) -> None:
    mined("18", cliques(4))
    early = mined("20", cliques(4))
    assert lineage(early)[0] == "2026-11-18"
    mined("19", cliques(5))
    kept = night("20", "--set", "output.overwrite=false")
    assert (kept.exit_code, kept.stdout.startswith("nothing to do")) == (0, True)
    assert "2026-11-19" in kept.stderr and "--overwrite" in kept.stderr
    late = mined("20")
    assert lineage(late) == ("2026-11-19", Result("results/2026-11-19").manifest.run)


def test_a_night_that_was_removed_is_no_reason(series: Path) -> None:
    mined("19", cliques(4))
    third = mined("20", cliques(4), "--set", "nightly.keep=1")
    assert sorted(os.listdir("results")) == ["2026-11-20", "latest"]
    assert mined("20").manifest.run == third.manifest.run
    mined("01", cliques(4))  # before the one that it followed
    assert mined("20").manifest.run == third.manifest.run


@pytest.mark.slow
def test_a_night_without_change_takes_over_the_files_of_the_mended_one(series: Path) -> None:
    how = "--set", "nightly.incremental=auto"
    for day in ("18", "19", "20"):
        mined(day, cliques(4), *how)
    mined("19", cliques(5), *how)
    mined("19", cliques(4), *how)
    third, before = mined("20", None, *how), Result("results/2026-11-19")
    assert lineage(third) == ("2026-11-19", before.manifest.run)
    assert third.manifest.update is not None and third.manifest.update.files_kept == len(before.manifest.outputs)
    assert runs.flaws(third.path) == []


def test_a_replaced_result_outside_of_a_series(series: Path) -> None:
    how: dict[str, Any] = {"device": "cpu", "report": False, "overwrite": True}
    write("18", cliques(4))
    write("19", cliques(5))
    mine("edges/2026-11-18", "monday", **how)
    first = mine("edges/2026-11-19", "tuesday", previous="monday", **how)
    assert mine("edges/2026-11-19", "tuesday", previous="monday", **how).manifest.run == first.manifest.run
    write("18", cliques(4, first=1))
    monday = mine("edges/2026-11-18", "monday", **how)
    second = mine("edges/2026-11-19", "tuesday", previous="monday", **how)
    assert second.manifest.tracks is not None and second.manifest.tracks.previous is not None
    assert second.manifest.tracks.previous.run == monday.manifest.run
    assert mine("edges/2026-11-19", "tuesday", previous="monday", **how).manifest.run == second.manifest.run


# ---- what a night that fails leaves behind


def incomplete() -> None:
    Path("edges/2026-11-19/_SUCCESS").unlink()


def absent() -> None:
    Path("edges/2026-11-19/part.parquet").unlink()


def damaged() -> None:
    Path("edges/2026-11-19/part.parquet").write_bytes(b"PAR1 is not all that it takes")


def few() -> None:
    write("19", cliques(1))


def nothing() -> None:
    pass


FAILURES: dict[str, tuple[Callable[[], None], tuple[str, ...], int, str]] = {
    "incomplete": (incomplete, (), 8, "_SUCCESS is not there"),
    "absent": (absent, (), 3, "edges/2026-11-19"),
    "damaged": (damaged, (), 3, "part.parquet"),
    "few edges": (few, (), 3, "10 edges"),
    "column": (nothing, ("--source-column", "nobody", "--target-column", "dst"), 3, "nobody"),
    "workers": (nothing, ("--set", "cluster.least_workers=99"), 2, "least_workers"),
    "report": (nothing, ("--performance-report", "no/where.html"), 2, "no/where.html"),
}
"""What is spoilt, arguments, exit code, and a fact of the message."""


@pytest.mark.parametrize(
    "failure",
    [
        own if own in ("incomplete", "few edges", "report") else pytest.param(own, marks=pytest.mark.slow)
        for own in FAILURES
    ],
)
def test_the_trace_of_a_failure(series: Path, failure: str) -> None:
    spoil, arguments, code, fact = FAILURES[failure]
    textfile = "--set", f"monitoring.textfile={series}/edgemill.prom"
    mined("18", cliques(4), *textfile)
    write("19", cliques(4))
    spoil()
    ended = night("19", *arguments, *textfile)
    assert (ended.exit_code, fact in ended.stderr) == (code, True), ended.stderr

    found_code, found = status("results/2026-11-19")
    assert (found_code, found["state"], found["exit_code"]) == (1, "failed", code)
    assert fact in found["error"] and found["last_event_time"]
    assert found["log"] == f"{series}/results/2026-11-19.failed.log.jsonl"
    assert found["log"] in ended.stderr
    last = json.loads(Path(found["log"]).read_text().splitlines()[-1])
    assert (last["event"], last["error"]) == ("run_failed", found["error"])
    assert fact in call("status", "results/2026-11-19").stdout
    assert latest() == "2026-11-18"
    [later] = status("results/latest")[1]["later"]
    assert (later["day"], later["exit_code"]) == ("2026-11-19", code)
    assert "2026-11-19 failed" in call("status", "results/latest").stdout
    if code != 2:  # settings are wrong before the pointer is looked for
        assert all(fact in ended.stderr for fact in ("results/latest", "2026-11-18"))
    [labels] = failures_of(series / "edgemill.prom")
    assert (labels["exit_code"], labels["log"], fact in labels["error"]) == (str(code), found["log"], True)

    mined("19", cliques(4), *textfile)
    assert status("results/2026-11-19")[1]["state"] == "finished"
    assert "later" not in status("results/latest")[1]
    assert failures_of(series / "edgemill.prom") == []
    assert sorted(name for name in os.listdir("results")) == ["2026-11-18", "2026-11-19", "latest"]


def failures_of(prom: Path) -> list[dict[str, str]]:
    families = text_string_to_metric_families(prom.read_text())
    return [s.labels for family in families for s in family.samples if s.name == "edgemill_last_failure_info"]


def test_a_failure_after_a_success_does_not_hide_the_result(series: Path) -> None:
    run = mined("18", cliques(4)).manifest.run
    incomplete_day = Path("edges/2026-11-18/_SUCCESS")
    incomplete_day.unlink()
    assert night("18").exit_code == 8
    code, found = status("results/2026-11-18")
    assert (code, found["state"], found["exit_code"], found["result"]["run"]) == (1, "failed", 8, run)
    incomplete_day.touch()
    assert night("18").stdout.startswith("nothing to do")
    assert status("results/2026-11-18")[1]["state"] == "finished"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param((), marks=pytest.mark.slow, id="input"),
        pytest.param(("--set", "cluster.least_workers=99"), id="before the lock"),
    ],
)
def test_the_trace_in_a_store(series: Path, arguments: tuple[str, ...]) -> None:
    out = f"memory://broken-nights/{next(_numbers)}"
    code = 2 if arguments else 3
    assert night("19", *arguments, "--set", "input.complete_marker=null", out=out).exit_code == code
    found_code, found = status(f"{out}/2026-11-19")
    assert (found_code, found["state"], found["exit_code"]) == (1, "failed", code)
    assert found["log"] == f"{out}/2026-11-19/failed.log.jsonl"
    write("19", cliques(1))
    assert night("19", out=out).exit_code == 0
    assert status(f"{out}/2026-11-19")[1]["state"] == "finished"
    assert pointer_target(folder_at(f"{out}/latest")) == Folder(f"{out}/2026-11-19")


@pytest.mark.parametrize(
    "early", [pytest.param(False, marks=pytest.mark.slow, id="input"), pytest.param(True, id="before the lock")]
)
def test_a_planted_link_is_not_followed(series: Path, early: bool) -> None:
    """Neither a run that writes the trace nor `status`, which reads it, follows a link in its place."""
    forged = {"time": "2026-11-21T00:00:00+00:00", "run": "x", "event": "run_failed", "error": "x", "exit_code": 3}
    (series / "victim").write_text(json.dumps(forged) + "\n")
    (series / "results").mkdir()
    planted = series / "results/2026-11-19.failed.log.jsonl"
    planted.symlink_to("../victim")
    assert status("results/2026-11-19")[1]["state"] == "none"
    assert night("19", *(["--set", "cluster.least_workers=99"] if early else [])).exit_code == (2 if early else 8)
    assert not planted.is_symlink() and status("results/2026-11-19")[1]["state"] == "failed"
    assert json.loads((series / "victim").read_text()) == forged
    planted.unlink()
    os.mkfifo(planted)
    assert status("results/2026-11-19")[1]["state"] == "none"


def test_nothing_is_written_beside_what_is_not_ours(series: Path) -> None:
    (series / "results/2026-11-19/notes").mkdir(parents=True)
    assert night("19").exit_code == 2
    assert night("19", "--set", "cluster.least_workers=99").exit_code == 2
    assert os.listdir("results") == ["2026-11-19"]


def test_a_locked_output_keeps_the_trace_of_its_run(series: Path) -> None:
    (series / "results").mkdir()
    place = series / "results/2026-11-19"
    lock = FolderLock(place.with_name(".2026-11-19.edgemill.lock"), str(place), "another")
    lock.take()
    ended = night("19")
    assert (ended.exit_code, "stays at" in ended.stderr) == (6, False)
    assert status("results/2026-11-19")[1]["state"] == "running"
    lock.release()
    assert status("results/2026-11-19")[1]["state"] == "none"


@pytest.mark.usefixtures("series")
def test_a_trace_that_cannot_be_written_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checklist, "keep_failure", full)
    ended = night("19", "--set", "cluster.least_workers=99")
    assert ended.exit_code == 2
    assert len(ended.stderr.splitlines()) == 1 and "least_workers" in ended.stderr
