"""Nights of a series: the previous result, `latest`, retention, and the report."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result as Ended

import runs
from edgemill.pipeline import InputIncomplete, OutputLocked, Result, UsageError, diff, mine
from edgemill.pipeline.events import Events
from edgemill.pipeline.monitor.display import RunSummary
from edgemill.pipeline.nightly.night import Night
from edgemill.pipeline.nightly.retention import keep_newest
from edgemill.pipeline.output.lock import LOCK_NAME, FolderLock, LockOwner, StoreLock
from edgemill.pipeline.output.manifest import is_result
from edgemill.pipeline.results.series import Series
from edgemill.pipeline.run import full
from edgemill.pipeline.settings.sources import make_settings
from edgemill.tasks.storage.folders import Folder, folder_at
from edgemill.tasks.storage.pointer import pointer_target, set_pointer
from in_process import call
from made import made
from pages import Shown, read_page

K5 = {(u, v): 3 for u in range(5) for v in range(u + 1, 5)}
K5_AND_MORE = K5 | {(5, 6): 1, (5, 7): 1, (6, 7): 1}
_numbers = count()


def write(place: Folder, converged: bool = True) -> None:
    """Write a result as a run does."""
    if place.is_local:
        made(Path(place.url), K5, converged=converged)
        return
    files = place.files
    content = json.dumps({"format": "edgemill-result", "converged": converged, "outputs": []})
    files.pipe_file(place.path("edgemill-run/edges/part.parquet"), b"rows")
    files.pipe_file(place.path("manifest.json"), content.encode())


@pytest.fixture(params=["disk", "store"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    return folder_at(tmp_path) if request.param == "disk" else Folder(f"memory://nights/{next(_numbers)}")


def series_of(root: Folder, name: str = "{date}") -> Series:
    day = "2026-11-20"
    found = Series.around(root.subfolder(name.replace("{date}", day)), f"{root.url}/{name}", day)
    assert found is not None
    return found


def days(first: int, last: int) -> list[str]:
    return [f"2026-11-{day:02d}" for day in range(first, last + 1)]


@pytest.mark.parametrize("name", ["{date}", "of-{date}", "{date}/lambda", "{date}/{date}.d"])
def test_results_of_a_series(root: Folder, name: str) -> None:
    series = series_of(root, name)
    assert (series.days(), series.results(), series.newest()) == ([], [], None)
    for day in (*days(18, 20), "2026-12-01"):
        write(series.at(day), converged=day != "2026-11-19")
    for other in ("2026-11-21x", "x2026-11-21", "other/2026-11-21", "2026-1-21"):
        write(root.subfolder(name.replace("{date}", other)))
    assert series.results() == ["2026-12-01", *reversed(days(18, 20))]
    assert series.newest() == "2026-12-01"
    assert series.newest(before="2026-12-01") == "2026-11-20"
    assert series.newest(before="2026-11-20") == "2026-11-18"  # the 19th did not converge
    assert series.newest(before="2026-11-18") is None


@pytest.mark.parametrize("path", ["out/{date}", "./out//{date}/", "out/../out/{date}", "{date}", "~/{date}/x"])
def test_relative_paths(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    night = Night.of(make_settings("e", path, date="2026-11-20"))
    assert night is not None
    end = path.rpartition("out/")[2].strip("~/").replace("{date}", "2026-11-20")
    assert Path(night.series.at("2026-11-20").url) == tmp_path / ("out" if "out" in path else "") / end


@pytest.mark.parametrize(
    "path", ["{date}/..", "link/../{date}", "memory://x/{date}//x", "memory://x//{date}", "memory://x/../{date}"]
)
def test_paths_by_which_no_other_night_is_found(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a link before `..`, the path leads to another folder than its text suggests."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere/sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("elsewhere/sub")
    with pytest.raises(UsageError, match=rf"^output.path {path}: results of other nights .*: write it without"):
        Night.of(make_settings("e", path, date="2026-11-20"))


def test_a_run_without_date_is_no_night() -> None:
    assert Night.of(make_settings("e", "out/2026-11-20")) is None
    assert Night.of(make_settings("e/{date}", "out", date="2026-11-20")) is None


def night_of(root: Folder, day: str, name: str = "{date}", **settings: Any) -> Night:
    night = Night.of(make_settings("e", f"{root.url}/{name}", date=day, nightly=settings))
    assert night is not None
    return night


@pytest.mark.parametrize("name", ["{date}", "{date}/lambda"])
def test_latest_goes_to_the_newest(root: Folder, name: str) -> None:
    series, latest = series_of(root, name), root.subfolder(name.replace("{date}", "latest"))
    for day, newest in (("2026-11-19", 19), ("2026-11-20", 20), ("2026-11-18", 20), ("2026-11-20", 20)):
        if not is_result(series.at(day)):
            write(series.at(day))
        events = Events()
        night_of(root, day, name).succeeded(events)
        assert pointer_target(latest) == series.at(f"2026-11-{newest}")
    write(series.at("2026-11-21"), converged=False)
    night_of(root, "2026-11-18", name).succeeded(Events())
    assert pointer_target(latest) == series.at("2026-11-20")


def test_latest_when_two_nights_end_at_once(root: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The older night reads the results, the newer one moves the pointer, and the older one moves it back: it must
    check again.
    """
    series = series_of(root)
    write(series.at("2026-11-19"))

    def late(pointer: Folder, result: Folder) -> None:
        monkeypatch.undo()
        write(series.at("2026-11-20"))
        night_of(root, "2026-11-20").succeeded(Events())
        set_pointer(pointer, result)

    monkeypatch.setattr("edgemill.pipeline.nightly.night.set_pointer", late)
    night_of(root, "2026-11-19").succeeded(Events())
    assert pointer_target(series.at("latest")) == series.at("2026-11-20")


def test_a_night_that_cannot_be_read_does_not_move_latest_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    series = series_of(folder_at(tmp_path))
    for day in days(19, 20):
        write(series.at(day))
    night_of(series.root, "2026-11-20").succeeded(Events())
    read = Folder.read

    def refuse(place: Folder, name: str) -> bytes | None:
        if place == series.at("2026-11-20"):
            raise PermissionError(13, "Permission denied", name)
        return read(place, name)

    monkeypatch.setattr(Folder, "read", refuse)
    with pytest.raises(UsageError, match=r"2026-11-20/manifest\.json.*Permission"):
        night_of(series.root, "2026-11-19").succeeded(Events())
    assert (tmp_path / "latest").readlink() == Path("2026-11-20")


def test_no_latest_before_the_first_exact_result(root: Folder) -> None:
    write(root.subfolder("2026-11-20"), converged=False)
    night_of(root, "2026-11-20").move_latest(Events())
    assert root.names() == ["2026-11-20"]


def test_what_is_at_latest_is_not_touched(root: Folder) -> None:
    write(root.subfolder("latest"))
    with pytest.raises(UsageError, match=r"/latest.*pointer"):
        night_of(root, "2026-11-20")
    write(root.subfolder("2026-11-20"))
    night_of(root, "2026-11-20", latest=False, keep=1).succeeded(Events())
    assert is_result(root.subfolder("latest"))


def test_the_oldest_go_first(root: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    series = series_of(root)
    for day in days(11, 20):
        write(series.at(day), converged=day != "2026-11-12")
    for keep in (10, 11):
        events = Events(summary := RunSummary())
        keep_newest(series, keep, "2026-11-20", events)
        assert (summary.removed, len(series.results())) == ([], 10)
    events = Events(summary := RunSummary())
    keep_newest(series, 7, "2026-11-20", events)
    assert summary.removed == [str(series.at(day)) for day in days(11, 13)]
    assert series.results() == days(14, 20)[::-1]
    assert [name for name in root.names() if not name.startswith("2026-11-")] == []


def test_what_stays(root: Folder) -> None:
    """The target of `latest`, the new result, locked results, and files of others stay."""
    series, other = series_of(root), series_of(root, "of-{date}")
    for day in days(11, 20):
        write(series.at(day))
        write(other.at(day))
    foreign = root.subfolder("2026-11-10")
    root.files.makedirs(root.path("2026-11-10"), exist_ok=True)
    root.files.pipe_file(foreign.path("notes"), b"mine")
    set_pointer(series.at("latest"), series.at("2026-11-12"))
    locked = series.at("2026-11-13")
    if root.is_local:
        lock: Any = FolderLock(Path(root.url, ".2026-11-13.edgemill.lock"), locked.url, "another")
    else:
        lock = StoreLock(locked, "another")
    lock.take()
    events = Events(summary := RunSummary())
    keep_newest(series, 2, "2026-11-11", events)
    stay = {"2026-11-11", "2026-11-12", "2026-11-13", "2026-11-19", "2026-11-20"}
    assert {*series.results()} == stay
    assert [*summary.not_removed] == [str(locked)]
    assert "another run" in summary.not_removed[str(locked)]
    assert other.results() == days(11, 20)[::-1]
    assert foreign.read("notes") == b"mine"
    lock.release()
    keep_newest(series, 2, "2026-11-11", Events())
    assert {*series.results()} == stay - {"2026-11-13"}


def test_what_failed_runs_have_left(root: Folder) -> None:
    """Failed runs of days before the kept ones are removed; newer ones may be retried."""
    series = series_of(root)
    for day in days(16, 20):
        write(series.at(day))
    left = []
    for day in ("2026-11-14", "2026-11-16", "2026-11-19", "2026-11-21"):
        if root.is_local:
            left += [f".{day}.edgemill-run/x", f".{day}.edgemill-run.old/x", f".{day}.edgemill.checkpoint/x"]
            left += [f"{day}.failed.log.jsonl"]
        else:
            left += [f"{day}/edgemill-dead/x", f"{day}/.edgemill.checkpoint/x", f"{day}/failed.log.jsonl"]
    for name in left:
        root.files.makedirs(root.path(os.path.dirname(name)), exist_ok=True)
        root.files.pipe_file(root.path(name), b"")
    keep_newest(series, 2, "2026-11-20", Events())
    found = {path.removeprefix(root.path()).strip("/") for path in root.files.find(root.path())}
    stay = ("2026-11-19", "2026-11-20", "2026-11-21")
    assert {name for name in left if name in found} == {name for name in left if name.lstrip(".").startswith(stay)}
    assert not {name for name in found if not name.lstrip(".").startswith(stay)}


def test_a_folder_of_a_store_that_others_use() -> None:
    """A foreign manifest beside files with names of runs."""
    root = Folder(f"memory://nights/{next(_numbers)}")
    series = series_of(root)
    for day in days(19, 20):
        write(series.at(day))
    other = series.at("2026-11-18")
    for name in ("manifest.json", "edgemill-notes/x"):
        root.files.pipe_file(other.path(name), b"{}")
    events = Events(summary := RunSummary())
    keep_newest(series, 1, "2026-11-20", events)
    ((place, why),) = summary.not_removed.items()
    assert place == str(other) and re.match(rf"{other} .*not an edgemill result: .*not removed$", why)
    assert (summary.removed, other.names()) == ([str(series.at("2026-11-19"))], ["edgemill-notes", "manifest.json"])


def test_the_lock_is_held_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    series, held = series_of(folder_at(tmp_path)), []
    for day in days(19, 20):
        write(series.at(day))
    release = FolderLock.release

    def look(lock: FolderLock) -> None:
        held.append(lock.is_held())
        release(lock)

    monkeypatch.setattr(FolderLock, "release", look)
    keep_newest(series, 1, "2026-11-20", Events())
    assert (held, sorted(os.listdir(tmp_path))) == ([True], ["2026-11-20"])


def test_a_pointer_that_cannot_be_read(root: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable pointer may point to any result, so none is removed."""
    series = series_of(root)
    for day in days(19, 20):
        write(series.at(day))

    def refuse(place: Folder) -> None:
        raise PermissionError(13, "Permission denied", str(place))

    monkeypatch.setattr("edgemill.pipeline.nightly.retention.pointer_target", refuse)
    events = Events(summary := RunSummary())
    keep_newest(series, 1, "2026-11-20", events)
    assert series.results() == days(19, 20)[::-1]
    assert [*summary.not_removed] == [str(root)]


def test_a_folder_of_a_day_that_others_use(tmp_path: Path) -> None:
    """Input and output of a day share a folder: no lock or other file appears beside the input of old days."""
    root = folder_at(tmp_path)
    series = series_of(root, "{date}/lambda")
    for day in days(11, 20):
        (tmp_path / day / "edges").mkdir(parents=True)
        write(series.at(day))
    (tmp_path / "2026-11-12/edges").rmdir()
    shutil.rmtree(tmp_path / "2026-11-11/lambda")
    (tmp_path / "2026-11-11").chmod(0o555)
    before = os.stat(tmp_path / "2026-11-11").st_mtime_ns
    events = Events(summary := RunSummary())
    keep_newest(series, 5, "2026-11-20", events)
    assert (len(summary.removed), summary.not_removed) == (4, {})
    assert os.stat(tmp_path / "2026-11-11").st_mtime_ns == before
    assert os.listdir(tmp_path / "2026-11-13") == ["edges"]
    assert not (tmp_path / "2026-11-12").exists()
    assert (tmp_path / "2026-11-16/lambda/manifest.json").exists()


def test_a_link_in_place_of_a_result_stays(tmp_path: Path) -> None:
    series = series_of(folder_at(tmp_path))
    for day in days(18, 20):
        write(series.at(day))
    write(folder_at(tmp_path / "kept/for/good"))
    (tmp_path / "2026-11-01").symlink_to("kept/for/good")
    for _ in range(2):
        events = Events(summary := RunSummary())
        keep_newest(series, 1, "2026-11-20", events)
        assert str(series.at("2026-11-01")) not in summary.removed
    assert series.results() == ["2026-11-20", "2026-11-01"]
    assert is_result(tmp_path / "kept/for/good")


def test_a_result_behind_a_link_stays(tmp_path: Path) -> None:
    """The link may be a parent folder, and may lead to another night."""
    root = folder_at(tmp_path / "results")
    series = series_of(root, "{date}/lambda")
    for day in days(18, 20):
        write(series.at(day))
    write(folder_at(tmp_path / "kept/lambda"))
    links = {"2026-11-01": "../kept", "2026-11-02": "2026-11-19", "2026-11-30": "../kept"}
    for day, target in links.items():
        (tmp_path / "results" / day).symlink_to(target)
    events = Events(summary := RunSummary())
    keep_newest(series, 2, "2026-11-20", events)
    assert (summary.removed, summary.not_removed) == ([str(series.at("2026-11-18"))], {})
    assert {*series.results()} == {"2026-11-20", "2026-11-19", *links}


def test_what_latest_stands_for_stays_by_whatever_path(tmp_path: Path) -> None:
    """A user may have made the link, and the root of the series may be one."""
    (tmp_path / "real").mkdir()
    (tmp_path / "results").symlink_to("real")
    series = series_of(folder_at(tmp_path / "results"))
    for day in days(18, 20):
        write(series.at(day))
    (tmp_path / "real/latest").symlink_to(tmp_path / "real/2026-11-18")
    keep_newest(series, 1, "2026-11-20", Events())
    assert series.results() == ["2026-11-20", "2026-11-18"]


def test_a_result_that_cannot_be_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    series = series_of(folder_at(tmp_path))
    for day in days(17, 20):
        write(series.at(day))
    rename = os.rename

    def refuse(old: str | Path, new: str | Path) -> None:
        if "2026-11-17" in str(old):
            raise PermissionError(13, "Permission denied", str(old))
        rename(old, new)

    monkeypatch.setattr(os, "rename", refuse)
    events = Events(summary := RunSummary())
    keep_newest(series, 2, "2026-11-20", events)
    assert series.results() == ["2026-11-20", "2026-11-19", "2026-11-17"]
    assert summary.removed == [str(tmp_path / "2026-11-18")]
    assert [*summary.not_removed] == [str(tmp_path / "2026-11-17")]
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_a_removal_that_was_cut_short(root: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A removal interrupted after the manifest is gone: the next night, or a repeat of this one, completes it."""
    series = series_of(root)
    for day in days(18, 20):
        write(series.at(day))

    def cut(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    remove = Folder.remove
    dead = LockOwner.here("dead").model_copy(update={"process_start": 1}).as_json()
    root.write(".2026-11-17.edgemill.lock" if root.is_local else f"2026-11-17/{LOCK_NAME}", dead)
    monkeypatch.setattr(shutil, "rmtree", cut)
    monkeypatch.setattr(Folder, "remove", lambda place, name: (cut if "edgemill-run" in name else remove)(place, name))
    with pytest.raises(KeyboardInterrupt):
        keep_newest(series, 2, "2026-11-20", Events())
    monkeypatch.undo()
    assert (series.results(), series.days()) == (days(19, 20)[::-1], days(18, 20)[::-1])
    assert root.names() == [*root.names()[:-2], *days(19, 20)]
    events = Events(summary := RunSummary())
    keep_newest(series, 2, "2026-11-20", events)
    assert (summary.removed, series.days(), root.names()) == ([], days(19, 20)[::-1], days(19, 20))


# ---- with runs


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    """Edges of two days, each in a folder with a marker."""
    for day, lam in (("2026-11-19", K5), ("2026-11-20", K5_AND_MORE)):
        folder = tmp_path / "edges" / day
        folder.mkdir(parents=True)
        runs.write_rows(folder / "part.parquet", lam)
        (folder / "_SUCCESS").touch()
    return tmp_path / "edges"


def run(edges: Path, out: Path | str, day: str, *arguments: str) -> Ended:
    command = ["run", "--input", f"{edges}/{{date}}", "--output", f"{out}/{{date}}", "--date", day, "--device", "cpu"]
    return call(*command, *arguments)


def log(result: Result) -> Iterator[dict[str, Any]]:
    name = "log.jsonl" if result.place.is_local else f"edgemill-{result.manifest.run}/log.jsonl"
    return map(json.loads, (result.place.read(name) or b"").decode().splitlines())


def report(result: Result) -> Shown:
    name = "report.html" if result.place.is_local else f"edgemill-{result.manifest.run}/report.html"
    return read_page((result.place.read(name) or b"").decode())


@pytest.mark.parametrize("store", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["disk", "store"])
def test_two_nights(edges: Path, tmp_path: Path, store: bool) -> None:
    """The report agrees with `diff`, also when it is written again; every command accepts `latest`."""
    out = f"memory://two-nights/{next(_numbers)}" if store else str(tmp_path / "out")
    assert run(edges, out, "2026-11-19").exit_code == 0
    first = report(Result(f"{out}/latest"))
    assert "Since" not in first.text
    done = run(edges, out, "2026-11-20", "--set", "nightly.keep=1")
    assert (done.exit_code, done.stderr) == (0, "")
    result = Result(f"{out}/latest")
    assert str(result.place) == f"{out}/2026-11-20"
    found = report(result)
    assert ("h2", "Since 2026-11-19") in found.headings
    assert [row[1:] for row in found.tables["What changed"]] == [
        ["dense groups", "edges"],
        *(["1", "10"], ["2", "13"], ["1", "10"], ["1", "3"]),
        *(["0", "0"], ["0", "0"], ["0", "0"], ["0", ""]),
    ]
    assert found.tables["Edges whose λ changed most, for each kind of change"][1:] == [
        [str(u), str(v), "appeared", "", "1"] for u, v in ((5, 6), (5, 7), (6, 7))
    ]
    assert [row[1] for row in found.tables["Dense groups by fate"][1:]] == list("1001000")
    (new,) = [row["id"] for row in result.dn_graphs.to_table().to_pylist() if row["vertices"] == 3]
    assert found.tables["Dense groups that changed, the highest λ first"][1:] == [
        ["2", "appeared", "born", "", "1", "", "3", "0", "", str(new)]
    ]
    lines = done.stdout.splitlines()
    at = lines.index("since       2026-11-19")
    assert lines[at : lines.index("", at)] == [
        "since       2026-11-19",
        "groups      1 born, 0 died, 0 merged, 0 split, 0 grown, 0 shrunk",
        "changes     3 edges added, 0 removed, 0 now of higher lambda, 0 now of lower lambda",
        "latest      -> 2026-11-20",
        f"removed     {out}/2026-11-19",
    ]
    [compared] = [line for line in log(result) if line["event"] == "compared"]
    assert (compared["before"], compared["edges"]["appeared"]) == (f"{out}/2026-11-19", 3)
    assert Folder(out).names() == ["2026-11-20", "latest"]
    for command in (["show"], ["top"], ["verify"], ["of", "--count", "1"], ["report"], ["diff", f"{out}/2026-11-20"]):
        name, *others = command
        done = call(name, *others, f"{out}/latest", *(["5"] if name == "of" else []))
        assert done.exit_code == 0, (command, done.output)


@pytest.mark.slow
def test_the_report_anew_compares_again(edges: Path, tmp_path: Path) -> None:
    for day in ("2026-11-19", "2026-11-20"):
        assert run(edges, tmp_path / "out", day).exit_code == 0
    before = report(Result(tmp_path / "out/latest")).tables
    (tmp_path / "out").rename(tmp_path / "moved")
    assert call("report", str(tmp_path / "moved/latest")).exit_code == 0
    after = report(Result(tmp_path / "moved/latest")).tables
    assert len(before["What changed"]) == 9
    assert all(after[name] == before[name] for name in before if "hanged" in name)
    shutil.copytree(tmp_path / "moved/2026-11-20", tmp_path / "alone")
    assert call("report", str(tmp_path / "alone")).exit_code == 0
    assert "What changed" not in report(Result(tmp_path / "alone")).tables


def other_ids(edges: Path, out: Path) -> None:
    folder = edges / "2026-11-20"
    import pyarrow as pa

    runs.write_rows(folder / "part.parquet", [("a", "b"), ("b", "c"), ("a", "c")], pa.string())


def damaged(edges: Path, out: Path) -> None:
    table = out / "2026-11-19/edges/part-00000.parquet"
    table.write_bytes(b"\0" * table.stat().st_size)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (other_ids, "and this one cannot be compared: the type of ids"),
        pytest.param(damaged, "the result is damaged", marks=pytest.mark.slow),
    ],
)
def test_a_comparison_that_fails_loses_no_result(
    edges: Path, tmp_path: Path, spoil: Callable[[Path, Path], None], reason: str
) -> None:
    out = tmp_path / "out"
    assert run(edges, out, "2026-11-19", "--set", "output.report=false").exit_code == 0
    spoil(edges, out)
    done = run(edges, out, "2026-11-20", "--set", "nightly.least_share=null")
    assert done.exit_code == 0
    assert reason in done.stderr
    result = Result(out / "latest")
    assert result.path == out / "2026-11-20"
    assert f"{out}/2026-11-19" in report(result).text
    [failed] = [line for line in log(result) if line["event"] == "comparison_failed"]
    assert reason in failed["reason"]
    assert reason in report(result).text


def test_a_night_before_that_cannot_be_looked_for(edges: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise UsageError("cannot list the results")

    monkeypatch.setattr(Night, "before", refuse)
    done = run(edges, tmp_path, "2026-11-20")
    warning = "Warning: the comparison with the previous night failed: cannot list the results\n"
    assert (done.exit_code, done.stderr) == (0, warning)
    result = Result(tmp_path / "latest")
    text = "There is no comparison with the night before: cannot list the results."
    assert text in report(result).text
    [failed] = [line for line in log(result) if line["event"] == "comparison_failed"]
    assert (failed["before"], failed["reason"]) == (None, "cannot list the results")


@pytest.mark.slow
def test_no_comparison_is_asked_for(edges: Path, tmp_path: Path) -> None:
    for day in ("2026-11-19", "2026-11-20"):
        assert run(edges, tmp_path / "out", day, "--set", "nightly.compare=false").exit_code == 0
    result = Result(tmp_path / "out/latest")
    assert "Since" not in report(result).text
    assert not [line for line in log(result) if line["event"] == "compared"]


PLAIN = ("--set", "output.report=false")


def test_a_night_that_did_not_converge(edges: Path, tmp_path: Path) -> None:
    """After a failure `latest` stays and nothing is removed; the next night compares with the previous result."""
    out = tmp_path / "out"
    assert run(edges, out, "2026-11-19", *PLAIN).exit_code == 0
    shutil.copytree(out / "2026-11-19", out / "2026-11-18")
    bounded = ("--method", "band", "--max-exchanges", "1", "--set", "nightly.keep=1")
    assert run(edges, out, "2026-11-20", *bounded).exit_code == 5
    assert Series.around(folder_at(out / "2026-11-20"), f"{out}/{{date}}", "2026-11-20")
    assert (out / "latest").readlink() == Path("2026-11-19")
    assert sorted(os.listdir(out)) == ["2026-11-18", "2026-11-19", "2026-11-20", "latest"]
    assert "Since" not in report(Result(out / "2026-11-20")).text
    shutil.copytree(edges / "2026-11-20", edges / "2026-11-21")
    assert run(edges, out, "2026-11-21").exit_code == 0
    assert ("h2", "Since 2026-11-19") in report(Result(out / "latest")).headings
    assert run(edges, out, "2026-11-21", "--overwrite", *bounded).exit_code == 5
    assert (out / "latest").readlink() == Path("2026-11-19")  # the newest that is exact now


def test_what_a_killed_night_did_not_do_its_repeat_does(
    edges: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the result and the later steps; the repeat needs no cluster."""
    out = tmp_path / "out"
    assert run(edges, out, "2026-11-19", *PLAIN).exit_code == 0
    monkeypatch.setattr(Night, "succeeded", lambda *_: None)
    assert run(edges, out, "2026-11-20", *PLAIN).exit_code == 0
    assert (out / "latest").readlink() == Path("2026-11-19")
    monkeypatch.undo()
    monkeypatch.setattr(full, "connect", None)
    done = run(edges, out, "2026-11-20", "--set", "nightly.keep=1", *PLAIN)
    assert (done.exit_code, done.stdout.startswith("nothing to do: ")) == (0, True)
    assert sorted(os.listdir(out)) == ["2026-11-20", "latest"]
    assert (out / "latest").readlink() == Path("2026-11-20")


def status(out: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call("status", out, "--json").stdout)
    return found


@pytest.mark.parametrize("store", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["disk", "store"])
def test_a_night_that_fails_after_its_result(
    edges: Path, tmp_path: Path, store: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers use `latest`, so the run has failed, and the status says so until a repeat completes the steps."""
    out = f"memory://fails-after/{next(_numbers)}" if store else str(tmp_path / "out")

    def refuse(pointer: Folder, _: Folder) -> None:
        raise UsageError(f"cannot write {pointer}: no")

    monkeypatch.setattr("edgemill.pipeline.nightly.night.set_pointer", refuse)
    night = f"{out}/2026-11-20"
    for _ in range(2):
        done = run(edges, out, "2026-11-20", *PLAIN)
        assert done.exit_code == 2
        assert done.stderr.splitlines()[:2] == [
            f"Error: cannot write {out}/latest: no",
            f"the result is at {night}; run the same command again for the remaining steps",
        ]
        text = call("status", night).stdout.splitlines()
        assert any("later steps" in line for line in text)
        assert not [line for line in text if line.startswith("checkpoint")]
        assert Result(night).converged
        found = status(night)
        assert (found["state"], found["exit_code"]) == ("failed", 2)
        assert found["error"] == f"cannot write {out}/latest: no"
    assert call("status", night).exit_code == 1
    monkeypatch.undo()
    assert run(edges, out, "2026-11-20", *PLAIN).stdout.startswith("nothing to do")
    assert (status(night)["state"], status(night)["last_event"]) == ("finished", "latest_moved")
    names = [line["event"] for line in log(Result(f"{out}/latest"))]
    assert names[names.index("run_finished") :] == ["run_finished", "run_failed", *REPEATED, "latest_moved"]
    assert not [name for name in (*Folder(out).names(), *Folder(night).names()) if "failed" in name]


REPEATED = ["run_started", "nothing_to_do"]


def test_what_is_told_first_of_a_night_that_fails_after_its_result(
    edges: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    monkeypatch.setattr("edgemill.pipeline.nightly.night.set_pointer", None)
    done = run(edges, out, "2026-11-20", *PLAIN, "--debug")
    assert done.exit_code == 1
    assert f"{out}/2026-11-20" in done.stderr


@pytest.mark.parametrize("store", [False, True], ids=["disk", "store"])
def test_a_repeat_that_cannot_say_so_in_the_log(
    edges: Path, tmp_path: Path, store: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a read-only result there is still nothing to do, and `latest` moves."""
    out = f"memory://no-log/{next(_numbers)}" if store else str(tmp_path / "out")
    assert run(edges, out, "2026-11-20", *PLAIN, "--set", "nightly.latest=false").exit_code == 0
    if store:
        write = Folder.write

        def refuse(place: Folder, name: str, content: bytes) -> None:
            if name.endswith("log.jsonl"):
                raise UsageError(f"cannot write {place}/{name}: no")
            write(place, name, content)

        monkeypatch.setattr(Folder, "write", refuse)
    else:
        (tmp_path / "out/2026-11-20/log.jsonl").unlink()
        (tmp_path / "out/2026-11-20/log.jsonl").mkdir()
    done = run(edges, out, "2026-11-20", *PLAIN)
    assert (done.exit_code, done.stderr, done.stdout[:14]) == (0, "", "nothing to do:")
    assert pointer_target(Folder(f"{out}/latest")) == Folder(f"{out}/2026-11-20")


@pytest.mark.parametrize("store", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["disk", "store"])
def test_a_log_tells_what_follows_the_result(edges: Path, tmp_path: Path, store: bool) -> None:
    out = f"memory://follows/{next(_numbers)}" if store else str(tmp_path / "out")
    for day in ("2026-11-19", "2026-11-20"):
        assert run(edges, out, day, *PLAIN, "--set", "nightly.keep=1").exit_code == 0
    *_, finished, moved, removed = log(Result(f"{out}/latest"))
    assert [line["event"] for line in (finished, moved, removed)] == ["run_finished", "latest_moved", "removed"]
    assert (moved["result"], removed["place"]) == (f"{out}/2026-11-20", f"{out}/2026-11-19")


def test_what_cannot_be_cleared_up_fails_no_night(edges: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure to remove the checkpoint or old results does not fail the run."""
    out, kept = tmp_path / "out", str(tmp_path / "kept")

    def refuse(what: str) -> Callable[..., None]:
        def raising(*_: object) -> None:
            raise UsageError(f"cannot list {what}: Permission denied")

        return raising

    monkeypatch.setattr(Series, "results", refuse("results"))
    monkeypatch.setattr("edgemill.pipeline.checkpoint.checkpoint.Checkpoint.clear", refuse("checkpoint"))
    more = ("--set", "nightly.keep=1", "--set", f"checkpoint.path={kept}")
    done = run(edges, out, "2026-11-20", *PLAIN, *more)
    assert done.exit_code == 0
    about_checkpoint, about_results = done.stderr.splitlines()
    assert about_checkpoint.startswith(f"Warning: not removed: {kept}/.2026-11-20.edgemill.checkpoint-")
    assert about_checkpoint.endswith(": cannot list checkpoint: Permission denied")
    assert re.fullmatch(rf"Warning: not removed: {out}: .*list results: Permission denied", about_results)
    assert (out / "latest").readlink() == Path("2026-11-20")
    assert status(f"{out}/2026-11-20")["state"] == "finished"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "input.complete_marker=_DONE"], "/2026-11-20/_DONE is not there; run again when it is"),
        (["--set", "input.least_rows=14"], "it has 13 rows, and 14 are asked for (--set input.least_rows)"),
        (["--date", "2026-11-21", "--set", "input.least_rows=14"], "/2026-11-21' does not exist: run again when"),
    ],
)
@pytest.mark.parametrize("command", ["run", "plan"])
def test_only_complete_inputs_are_taken(
    edges: Path, tmp_path: Path, command: str, arguments: list[str], message: str
) -> None:
    paths = ["--input", f"{edges}/{{date}}", "--output", f"{tmp_path}/out/{{date}}", "--date", "2026-11-20"]
    done = call(command, *paths, "--device", "cpu", *arguments)
    day = arguments[1] if arguments[0] == "--date" else "2026-11-20"
    left = [f"{day}.failed.log.jsonl"] if command == "run" else []
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (8, "", 1 + len(left))
    assert message in done.stderr
    assert (os.listdir(tmp_path / "out") if (tmp_path / "out").exists() else []) == left


def test_complete_by_marker_and_rows(edges: Path, tmp_path: Path) -> None:
    plain: dict[str, Any] = {"output.report": False}
    settings = plain | {"input.complete_marker": "_SUCCESS", "input.least_rows": 13}
    result = mine(edges / "2026-11-20", tmp_path / "out", device="cpu", **settings)
    assert result.manifest.counts.edges == 13
    again = mine(edges / "2026-11-20", tmp_path / "out", device="cpu", **plain)
    assert again.manifest.run == result.manifest.run  # what made sure is no reason to find λ anew
    with pytest.raises(InputIncomplete, match=r"14.*asked"):
        mine(edges / "2026-11-20", tmp_path / "x", device="cpu", **settings | {"input.least_rows": 14})


def test_a_night_keeps_its_own_result_from_another_run(edges: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    lock = FolderLock(out / ".2026-11-20.edgemill.lock", str(out / "2026-11-20"), "another")
    lock.take()
    assert run(edges, out, "2026-11-20").exit_code == OutputLocked.exit_code
    lock.release()
    assert os.listdir(out) == []


def test_the_manifest_has_the_settings_as_they_were_filled_in(edges: Path, tmp_path: Path) -> None:
    assert run(edges, tmp_path / "out", "2026-11-20", *PLAIN).exit_code == 0
    settings = Result(tmp_path / "out/2026-11-20").manifest.settings
    assert settings["input"]["path"] == f"{edges}/2026-11-20"
    assert settings["output"]["path"] == f"{tmp_path}/out/2026-11-20"
    assert (settings["nightly"]["date"], settings["nightly"]["series"]) == ("2026-11-20", f"{tmp_path}/out/{{date}}")


def test_rows_that_changed_most(tmp_path: Path) -> None:
    """The report keeps the largest changes of each kind over any number of tables."""
    from edgemill.pipeline.compare.diff import LargestChanges, compare

    old = {(u, v): u for u in range(1, 30) for v in range(u + 1, 31)}
    new = {edge: max(0, lam + (edge[1] % 3 - 1) * (edge[0] % 7)) for edge, lam in old.items() if sum(edge) % 7}
    new |= {(u, u + 100): u for u in range(30)}
    before = made(tmp_path / "old", old, rows_per_group=16, dense=False)
    after = made(tmp_path / "new", new, rows_per_group=16, dense=False)
    largest = LargestChanges(4, 3)
    assert compare(before, after, largest).edges == diff(before, after).edges
    assert largest.edges is not None
    rows = largest.edges.to_pylist()
    far: dict[str, list[tuple[int, tuple[int, int]]]] = {"appeared": [], "vanished": [], "rose": [], "fell": []}
    for edge in old.keys() | new.keys():
        change = new.get(edge, 0) - old.get(edge, 0)
        kind = "appeared" if edge not in old else "vanished" if edge not in new else "rose" if change > 0 else "fell"
        if change or edge not in old or edge not in new:
            far[kind].append((-abs(change), edge))
    expected = [(kind, edge) for kind, found in far.items() for _, edge in sorted(found)[:4]]
    assert [(row["change"], (row["src"], row["dst"])) for row in rows] == expected
    assert len(expected) == 16
