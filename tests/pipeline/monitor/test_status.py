"""The status of an output whose run is running, killed, failed or finished, or that has no run."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

import in_process
import runs
from edgemill.pipeline import ClusterLost, InputError, Result
from edgemill.pipeline.events import Events
from edgemill.pipeline.monitor.progress import read_log
from edgemill.pipeline.monitor.status import status_of
from edgemill.pipeline.output.checkpoint_files import seal
from edgemill.pipeline.output.lock import FolderLock, LockOwner
from edgemill.pipeline.output.manifest import Manifest
from edgemill.pipeline.run.mining import mine_settings
from edgemill.pipeline.settings.sources import make_settings
from edgemill.tasks.storage.folders import Folder, folder_at
from edgemill.tasks.storage.pointer import set_pointer

WriteResult = Callable[..., Manifest]
CLIQUES = [clique for first in range(0, 24, 3) for clique in combinations(range(first, first + 5 + first // 4), 2)]
HOW: dict[str, Any] = {"device": "cpu", "output.report": False}
BANDS: dict[str, Any] = {"method": "band"}
KEPT: dict[str, Any] = {"checkpoint.every_exchanges": 3}


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return runs.write_rows(tmp_path / "rows.parquet", CLIQUES)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


class Looks:
    """Reads the status during a run, at each event that `wanted` selects."""

    def __init__(self, out: Path | str, wanted: Callable[[Mapping[str, Any]], object]) -> None:
        self.out, self.wanted = out, wanted
        self.seen: list[dict[str, Any]] = []
        self.texts: list[str] = []

    def show(self, event: Mapping[str, Any]) -> None:
        if self.wanted(event):
            self.seen.append(status(self.out))
            self.texts.append(call(self.out, 0))

    def close(self) -> None:
        pass


def run(rows: Path, out: Path | str, client: Client, looks: Looks | None = None, **more: Any) -> Result:
    with Events(looks) as events:
        return mine_settings(make_settings(rows, out, **HOW | more), client=client, events=events)


def call(out: Path | str, exit_code: int, *arguments: str) -> str:
    done = in_process.call("status", str(out), *arguments)
    assert done.exit_code == exit_code, done.output
    assert done.stderr == ""
    return done.stdout


def status(out: Path | str, exit_code: int = 0) -> dict[str, Any]:
    (line,) = call(out, exit_code, "--json").splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def lines(text: str) -> dict[str, str]:
    return {name: value for name, value in ((line[:11].strip(), line[12:]) for line in text.splitlines())}


def test_never_run(out: Path) -> None:
    assert status(out, 2) == {"output": str(out), "state": "none"}
    told = lines(call(out, 2))
    assert told.keys() == {"state", "output"}
    assert "no run" in told["state"] and told["output"] == str(out)
    assert status(out / "nor" / "there", 2)["state"] == "none"


def test_while_it_runs(rows: Path, out: Path, client: Client) -> None:
    wanted = {("stage_started", "number"), ("exchange", 4), ("stage_finished", "publish")}

    def look(event: Mapping[str, Any]) -> bool:
        return (event["event"], event.get("stage", event.get("exchange"))) in wanted

    looks = Looks(out, look)
    result = run(rows, out, client, looks, **BANDS, **KEPT)
    number, bound, end = looks.seen
    run_id = result.manifest.run
    for found in looks.seen:
        assert found["state"] == "running"
        assert found["run"] == found["holder"]["run"] == run_id
        assert found["holder"]["pid"] == os.getpid()
        assert found["last_event_seconds_ago"] >= 0
        assert "result" not in found
    assert (number["stage"], number["tasks_done"], number["last_event"]) == ("number", 0, "stage_started")
    assert number["log"] == str(out.with_name(f".out.edgemill-{run_id}") / "log.jsonl")
    assert "checkpoint" not in number
    record = result.manifest.exchanges[3]
    assert (bound["stage"], bound["exchange"], bound["step"]) == ("bound", 4, record.step)
    assert bound["unsettled"] == record.unsettled
    assert bound["checkpoint"]["what"] == "search"
    assert bound["checkpoint"]["exchange"] == 3
    assert bound["stage_since"] <= bound["last_event_time"]
    assert (end["after_stage"], "stage" in end) == ("publish", False)
    text = lines(looks.texts[1])
    assert text["state"] == "running"
    assert text["run"].startswith(f"{run_id} of ")
    assert text["stage"].startswith("bound, for 0:00:")
    assert text["progress"] == f"level 0  step {record.step}  exchange 4  {record.unsettled:,} edges unsettled"
    assert re.match(r"edges and triangles, and the search .*exchange 3 \(", text["checkpoint"])


def test_finished_and_nothing_to_do(rows: Path, out: Path, client: Client) -> None:
    result = run(rows, out, client)
    found = status(out)
    counts = result.manifest.counts
    assert (found["state"], found["last_event"]) == ("finished", "run_finished")
    assert found["result"]["run"] == result.manifest.run
    assert (found["result"]["edges"], found["result"]["triangles"]) == (counts.edges, counts.triangles)
    assert found["result"]["converged"] is True
    run(rows, out, client)
    again = status(out)
    assert (again["state"], again["last_event"]) == ("finished", "nothing_to_do")
    assert again["result"] == found["result"]
    text = lines(call(out, 0))
    assert text["state"] == "finished"
    assert text["last event"].startswith("nothing_to_do, ")
    assert text["edges"] == f"{counts.edges:,}"


def test_a_result_with_intervals(out: Path, write_result: WriteResult) -> None:
    write_result(out, converged=False, unsettled=2)  # and without a log
    found = status(out)
    assert (found["state"], found["result"]["converged"], found["result"]["unsettled"]) == ("finished", False, 2)
    assert lines(call(out, 0))["state"].startswith("finished, not converged: 2 edges")


def test_a_run_that_has_published_and_holds_its_lock(out: Path, write_result: WriteResult) -> None:
    """A dead run may not have moved `latest`."""
    result = write_result(out)
    event = {"time": "2026-11-20T12:00:00+00:00", "run": result.run, "event": "run_finished"}
    (out / "log.jsonl").write_text(json.dumps(event) + "\n")
    lock, holder = out.with_name(".out.edgemill.lock"), LockOwner.here(result.run)
    lock.write_bytes(holder.as_json())
    assert (status(out)["state"], status(out)["result"]["run"]) == ("finished", result.run)
    lock.write_bytes(holder.model_copy(update={"process_start": 1}).as_json())
    assert (status(out, 1)["state"], status(out, 1)["last_event"]) == ("dead", "run_finished")
    text = lines(call(out, 1))
    assert re.match(r"complete; later steps .*missing: .*again$", text["result"])
    assert "checkpoint" not in text


def test_failed(rows: Path, out: Path, client: Client) -> None:
    def fail(event: Mapping[str, Any]) -> None:
        if event["event"] == "exchange" and event["exchange"] == 5:
            raise ClusterLost("all workers have gone home")

    with pytest.raises(ClusterLost):
        run(rows, out, client, Looks(out, fail), **BANDS, **KEPT)
    found = status(out, 1)
    assert (found["state"], found["error"], found["exit_code"]) == ("failed", "all workers have gone home", 4)
    assert (found["stage"], found["exchange"]) == ("bound", 5)
    assert found["log"] == f"{out}.failed.log.jsonl"
    assert found["checkpoint"]["exchange"] == 3
    text = lines(call(out, 1))
    assert (text["state"], text["exit code"], text["error"]) == ("failed", "4", "all workers have gone home")
    run(rows, out, client, **BANDS, **KEPT)
    assert status(out)["state"] == "finished"
    assert not out.with_name("out.failed.log.jsonl").exists()
    runs.write_rows(rows, [(1, 2), (2, None)])
    with pytest.raises(InputError):
        run(rows, out, client, overwrite=True)
    found = status(out, 1)
    assert (found["state"], found["exit_code"], found["result"]["converged"]) == ("failed", 3, True)
    assert lines(call(out, 1))["result"].startswith(f"of an earlier run, {found['result']['run']}")


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_peeling_that_failed(rows: Path, out: Path, client: Client, partitions: int) -> None:
    """The status of a checkpoint has the level, and for shards the exchange, too."""
    kept: list[Mapping[str, Any]] = []

    def fail(event: Mapping[str, Any]) -> None:
        if event["event"] == "kept":
            kept.append(event)
            if len(kept) == 3:
                raise ClusterLost("all workers have gone home")

    with pytest.raises(ClusterLost):
        run(rows, out, client, Looks(out, fail), partitions=partitions, **{"checkpoint.every_seconds": 0.0})
    for name in ("level", "exchange") if partitions > 1 else ("level",):
        numbers = [event[name] for event in kept]
        assert numbers == sorted(set(numbers)) and numbers[0] > 0
    assert ("exchange" in kept[-1]) is (partitions > 1)
    found, last = status(out, 1)["checkpoint"], kept[-1]
    told = {name: last[name] for name in ("level", "exchange", "unsettled") if name in last}
    assert {name: found[name] for name in ("level", "exchange", "unsettled") if name in found} == told
    assert kept[0]["unsettled"] > last["unsettled"] > 0
    meetings = f", exchange {last['exchange']:,}" if partitions > 1 else ""
    how_far = f"up to level {last['level']:,}{meetings} ({last['unsettled']:,} edges unsettled)"
    assert how_far in lines(call(out, 1))["checkpoint"]
    run(rows, out, client, partitions=partitions)
    assert status(out)["state"] == "finished"


def test_a_new_run_over_an_old_result(rows: Path, out: Path, client: Client) -> None:
    first = run(rows, out, client)
    looks = Looks(out, lambda event: event["event"] == "stage_started" and event["stage"] == "publish")
    second = run(rows, out, client, looks, overwrite=True, partitions=2)
    (found,) = looks.seen
    assert (found["state"], found["run"]) == ("running", second.manifest.run)
    assert found["result"]["run"] == first.manifest.run


KILLED = """
import os, signal, sys
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.events import Events

emit = Events.emit

def kill(self, event, /, **fields):
    emit(self, event, **fields)
    if event == "exchange" and fields["exchange"] == 5:
        os.kill(os.getpid(), signal.SIGKILL)

Events.emit = kill
edgemill(sys.argv[1:])
"""


def test_killed(rows: Path, out: Path, client: Client) -> None:
    settings = {**HOW, **BANDS, **KEPT}
    given = make_settings(rows, out, **settings)
    command = ["run", "--input", given.input.path, "--output", str(out), "--device", "cpu", "--method", "band"]
    command += ["--set", "checkpoint.every_exchanges=3"]
    command += ["--set", "output.report=false"]
    done = subprocess.run([sys.executable, "-c", KILLED, *command], capture_output=True, timeout=120)
    assert done.returncode == -signal.SIGKILL
    log = next(out.parent.glob(".out.edgemill-*/log.jsonl"))
    with log.open("a") as file:
        file.write('{"time": "2026-11-21T20:00:00.000+00:00", "run": "x", "eve')  # it was running
    before = sorted(path.name for path in out.parent.rglob("*"))
    found = status(out, 1)
    assert (found["state"], found["stage"], found["exchange"]) == ("dead", "bound", 5)
    assert found["last_event"] == "exchange"
    assert found["checkpoint"]["what"] == "search"
    assert found["checkpoint"]["exchange"] == 3
    assert datetime.fromisoformat(found["checkpoint"]["time"]) <= datetime.now(UTC)
    text = lines(call(out, 1))
    assert re.match(r"dead: its process .*gone; .*its lock$", text["state"])
    assert "same command resumes" in text["checkpoint"]
    assert sorted(path.name for path in out.parent.rglob("*")) == before  # reading the status changes nothing
    run(rows, out, client, **BANDS, **KEPT)
    assert (status(out)["state"], "checkpoint" in status(out)) == ("finished", False)


@pytest.mark.parametrize(
    ("holder", "state"),
    [
        (LockOwner.here("R"), "running"),
        (LockOwner.here("R").model_copy(update={"process_start": 1}), "dead"),
        (LockOwner.here("R").model_copy(update={"processes": "pid:[1]"}), "dead"),  # a container, gone with its lock
        (LockOwner.here("R").model_copy(update={"boot": "x", "machine": "y", "host": "other.example"}), "unknown"),
    ],
    ids=["here", "gone", "container", "elsewhere"],
)
def test_whose_lock_it_is(out: Path, holder: LockOwner, state: str) -> None:
    out.with_name(".out.edgemill.lock").write_bytes(holder.as_json())
    scratch = out.with_name(".out.edgemill-R")
    scratch.mkdir()
    event = {"time": "2026-11-21T20:00:00.000+00:00", "run": "R", "event": "stage_started", "stage": "read", "tasks": 9}
    (scratch / "log.jsonl").write_text(json.dumps(event) + "\n")
    found = status(out, 1 if state == "dead" else 0)
    assert (found["state"], found["stage"], found["tasks"]) == (state, "read", 9)  # known facts are reported everywhere
    assert found["holder"]["host"] == holder.host
    if state == "unknown":
        assert "cannot be checked" in lines(call(out, 0))["state"]


def test_a_container_that_lives(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of the container are not visible, but the kernel's lock is."""
    lock = FolderLock(out.with_name(".out.edgemill.lock"), str(out), "R")
    lock.take()
    monkeypatch.setattr("edgemill.pipeline.output.lock._pid_namespace", lambda: "pid:[2]")
    assert status(out)["state"] == "running"
    assert lock.is_held()
    lock.release()


def test_what_is_damaged_or_no_output(out: Path, write_result: WriteResult) -> None:
    out.with_name(".out.edgemill.lock").write_text("{")
    assert status(out) == {"output": str(out), "state": "unknown"}
    out.with_name(".out.edgemill.lock").unlink()
    out.mkdir()
    assert status(out, 2)["state"] == "none"
    (out / "letter.txt").write_text("Dear")
    done = in_process.call("status", str(out))
    assert (done.exit_code, done.stdout) == (3, "")
    assert re.fullmatch(rf"Error: {out} .*not an edgemill result: .*manifest\.json .*\n", done.stderr)
    write_result(out)
    manifest = out / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b"triangles", b"trianglez", 1))
    with pytest.raises(InputError, match="damaged"):
        status_of(out)


def test_a_damaged_checkpoint(out: Path) -> None:
    kept = out.with_name(".out.edgemill.checkpoint")
    kept.mkdir()
    (kept / "graph.json").write_bytes(b"0\n{}")
    assert status(out, 2)["checkpoint"]["what"] == "damaged"
    assert re.fullmatch(rf"{kept}, damaged: .* starts over", lines(call(out, 2))["checkpoint"])
    (kept / "progress.before.json").write_bytes(seal({"exchanges": []}))
    (kept / "progress.json").write_bytes(b"0\n{}")
    assert status(out, 2)["checkpoint"]["what"] == "search"  # one generation before


def test_a_checkpoint_out_of_reach(out: Path) -> None:
    for path in ("relative/folder", "nosuch://bucket/kept"):
        failed = {"time": "2026-11-21T20:00:00+00:00", "run": "R", "event": "run_failed", "error": "", "exit_code": 1}
        begun = failed | {"event": "run_started", "settings": {"checkpoint": {"path": path}}}
        out.with_name("out.failed.log.jsonl").write_text(json.dumps(begun) + "\n" + json.dumps(failed) + "\n")
        found = status(out, 1)["checkpoint"]
        assert (found["what"], found["place"].startswith(path)) == ("unknown", True)
        assert lines(call(out, 1))["checkpoint"].endswith("cannot be read from here")


def test_the_log_of_a_long_run_is_read_at_its_ends(tmp_path: Path) -> None:
    begin = {"event": "run_started", "settings": {"checkpoint": {"path": "/kept"}}}
    told: list[dict[str, Any]] = [
        begin,
        {"event": "serving", "what": "metrics", "address": "http://127.0.0.1:1/metrics"},
    ]
    told.append({"event": "stage_started", "stage": "bound", "tasks": 0})
    told += [{"event": "exchange", "exchange": i, "step": 2, "unsettled": 100_000 - i} for i in range(50_000)]
    log = tmp_path / "log.jsonl"
    when = {"time": "2026-11-21T20:00:00.000+00:00", "run": "R"}
    log.write_text("".join(json.dumps(when | event) + "\n" for event in told) + '{"time": "2026-11')
    reads: list[int] = []

    class Counted(Folder):
        def read_ends(self, name: str, most: int) -> tuple[bytes, bytes] | None:
            found = super().read_ends(name, most)
            reads.extend(map(len, found or ()))
            return found

    found = read_log(Counted(str(tmp_path)), "log.jsonl")
    assert found is not None
    assert sum(reads) <= 2 * 256 * 1024 < log.stat().st_size / 8
    assert (found.innermost, found.stages["bound"].started) == ("bound", None)  # it began before what was read
    assert found.figures == {"exchange": 49_999, "step": 2, "unsettled": 50_001}
    assert found.settings == {"checkpoint": {"path": "/kept"}}
    assert found.serving == {"metrics": "http://127.0.0.1:1/metrics"}


def test_strange_lines_are_passed_over(tmp_path: Path) -> None:
    good: dict[str, Any] = {
        "time": "2026-11-21T20:00:00+00:00",
        "run": "R",
        "event": "stage_started",
        "stage": "read",
        "tasks": 2,
    }
    strange = [b"\xff\xfe", b"[1]", b"null", b"{}", b'{"time": 3, "run": 1, "event": []}', b'{"time": "x"']
    strange.append(json.dumps(good | {"event": "task_done"}).encode())  # no "done"
    (tmp_path / "log.jsonl").write_bytes(b"\n".join([json.dumps(good).encode(), *strange, b""]))
    found = read_log(Folder(str(tmp_path)), "log.jsonl")
    assert found is not None
    assert (found.innermost, found.stages["read"].tasks) == ("read", 2)
    assert read_log(Folder(str(tmp_path)), "none.jsonl") is None
    (tmp_path / "log.jsonl").write_bytes(b"")
    empty = read_log(Folder(str(tmp_path)), "log.jsonl")
    assert empty is not None
    assert (empty.run, empty.innermost, empty.last_event) == (None, None, None)


def test_a_checkpoint_elsewhere(rows: Path, out: Path, tmp_path: Path, client: Client) -> None:
    def fail(event: Mapping[str, Any]) -> None:
        if event["event"] == "kept":
            raise ClusterLost("gone")

    elsewhere = tmp_path / "elsewhere"
    with pytest.raises(ClusterLost):
        run(rows, out, client, Looks(out, fail), **BANDS, **KEPT, **{"checkpoint.path": str(elsewhere)})
    found = status(out, 1)["checkpoint"]
    assert (found["what"], found["place"].startswith(f"{elsewhere}/.out.edgemill.checkpoint-")) == ("search", True)


def test_in_an_object_store(rows: Path, client: Client) -> None:
    """The log is on the disk of the host of the run until the run ends."""
    out = f"memory://status/{time.time_ns()}"
    assert status(out, 2)["state"] == "none"

    def look(event: Mapping[str, Any]) -> bool:
        if event["event"] == "stage_started" and event["stage"] == "extract" and fails:
            raise ClusterLost("gone")
        return bool(event["event"] == "exchange" and event["exchange"] == 2)

    fails, looks = True, Looks(out, look)
    with pytest.raises(ClusterLost):
        run(rows, out, client, looks, **BANDS)
    (found,) = looks.seen
    assert (found["state"], found["stage"], found["exchange"]) == ("running", "bound", 2)
    failed = status(out, 1)
    assert (failed["state"], failed["exit_code"], failed["log"]) == ("failed", 4, f"{out}/failed.log.jsonl")
    fails = False
    run(rows, out, client, **BANDS)
    assert (status(out)["state"], status(out)["last_event"]) == ("finished", "run_finished")
    latest = folder_at(out.rpartition("/")[0] + "/latest")
    set_pointer(latest, Folder(out))
    assert status(latest.url)["run"] == status(out)["run"]
    latest.files.rm(latest.path())
    elsewhere = LockOwner.here("R", "/etc/passwd").model_copy(update={"boot": "x", "machine": "y"})
    place = Folder(out)
    place.write(".edgemill.lock", elsewhere.as_json())
    assert (status(out)["state"], "log" in status(out)) == ("unknown", False)
    place.write(".edgemill.lock", LockOwner.here("R", "/etc/passwd").as_json())
    assert (status(out)["state"], "log" in status(out)) == ("running", False)  # no file but a log is opened


def test_a_store_that_cannot_be_reached() -> None:
    done = in_process.call("status", "nosuch://bucket/out")
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: nosuch://bucket/out")
