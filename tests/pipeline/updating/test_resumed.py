"""An update that is interrupted once it has λ: the same update goes on from its checkpoint, to the same result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import runs
from edgemill.pipeline import Result, UsageError, mine, update
from edgemill.pipeline.monitor.status import status_of
from edgemill.pipeline.updating import updating
from edgemill.tasks.storage.folders import folder_at

TABLES = ("edges", "vertices", "hierarchy", "dn_graphs", "dn_graph_members")
AT_ONCE: dict[str, Any] = {"checkpoint": {"every_seconds": 0.0}, "device": "cpu"}
KILLED = """
import os, signal, sys
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.monitor.status import status_of
from edgemill.pipeline.updating import updating

def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

updating.find_groups = kill
edgemill(sys.argv[1:])
"""


def edges(first: int, count: int) -> pa.Table:
    """A clique of `count` vertices from `first` on, and a path before it."""
    pairs = [(u, v) for v in range(first, first + count) for u in range(first, v)]
    pairs += [(u, u + 1) for u in range(first)]
    return pa.table([[u for u, _ in pairs], [v for _, v in pairs]], names=["src", "dst"])


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("base")
    pq.write_table(pa.concat_tables([edges(0, 9), edges(30, 7)]), folder / "monday.parquet")
    return mine(folder / "monday.parquet", folder / "monday", incremental="auto", device="cpu")


@pytest.fixture
def tuesday(base: Result, tmp_path: Path) -> Callable[..., Result]:
    """A night that starts from `base`."""
    pq.write_table(pa.concat_tables([edges(1, 9), edges(30, 6), edges(50, 4)]), tmp_path / "tuesday.parquet")

    def run(**changes: Any) -> Result:
        night = {"previous": str(base.path), "incremental": "always"} | AT_ONCE | changes
        return mine(tmp_path / "tuesday.parquet", tmp_path / "out", **night)

    return run


@pytest.fixture
def interrupted(tuesday: Callable[..., Result], tmp_path: Path) -> Callable[..., None]:
    """Runs a night that fails once it has λ."""

    def fail(*_: Any) -> None:
        raise RuntimeError("the groups were not found")

    def run(**changes: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(updating, "find_groups", fail)
            with pytest.raises(RuntimeError, match="the groups were not found") as failed:
                tuesday(**changes)
        notes = "\n".join(failed.value.__notes__)
        assert f"the checkpoint is in {tmp_path}/.out.edgemill.checkpoint: the same command resumes from it" in notes

    return run


def place(tmp_path: Path) -> Path:
    return tmp_path / ".out.edgemill.checkpoint"


def logged(result: Result) -> list[str]:
    """Stages and events of the log, in order."""
    events = map(json.loads, (result.path / "log.jsonl").read_text().splitlines())
    return [event.get("stage", event["event"]) for event in events if event["event"] != "stage_finished"]


def assert_equal(result: Result, other: Result) -> None:
    for name in TABLES:
        found, wanted = (getattr(own, name).to_table() for own in (result, other))
        assert found.drop_columns(["track"] if "track" in found.column_names else []).equals(
            wanted.drop_columns(["track"] if "track" in wanted.column_names else [])
        )
    assert runs.flaws(result.path) == []


def without_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(*_: Any) -> None:
        raise AssertionError("λ was searched for")

    monkeypatch.setattr(updating, "find_lambda", search)


def test_an_interrupted_night_goes_on(
    tuesday: Callable[..., Result],
    interrupted: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    interrupted()
    assert sorted(entry.name.partition("-")[0] for entry in place(tmp_path).iterdir()) == ["update", "update.json"]
    found = status_of(folder_at(tmp_path / "out"))
    assert found.state == "failed" and found.checkpoint is not None and found.checkpoint.what == "lambda"
    with monkeypatch.context() as patch:
        without_search(patch)
        resumed = tuesday()
    assert not place(tmp_path).exists()
    assert resumed.manifest.update is not None and resumed.manifest.update.way == "changes"
    assert "restore" in logged(resumed) and "update" not in logged(resumed)
    full = mine(tmp_path / "tuesday.parquet", tmp_path / "full", device="cpu")
    assert_equal(resumed, full)
    # The state of the resumed night is complete: the next one starts from it.
    pq.write_table(edges(3, 5), tmp_path / "wednesday.parquet")
    last = mine(
        tmp_path / "wednesday.parquet",
        tmp_path / "last",
        previous=str(resumed.path),
        incremental="always",
        least_share=None,
        device="cpu",
    )
    assert last.manifest.update is not None and last.manifest.update.way == "changes"
    assert_equal(last, mine(tmp_path / "wednesday.parquet", tmp_path / "whole", device="cpu"))


def test_a_killed_update_goes_on(base: Result, tmp_path: Path) -> None:
    """A batch, by the command."""
    pq.write_table(edges(60, 8), tmp_path / "more.parquet")
    command = ["update", str(base.path), "--insert", str(tmp_path / "more.parquet"), "--output", str(tmp_path / "out")]
    command += ["--set", "checkpoint.every_seconds=0", "--device", "cpu"]
    killed = subprocess.run([sys.executable, "-c", KILLED, *command], check=False, timeout=120, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert not (tmp_path / "out").exists() and (place(tmp_path) / "update.json").exists()
    shown = subprocess.run(
        [sys.executable, "-m", "edgemill.pipeline", "status", str(tmp_path / "out")],
        check=False,
        timeout=120,
        capture_output=True,
        text=True,
    )
    assert "every edge" in shown.stdout and "command resumes" in shown.stdout
    subprocess.run([sys.executable, "-m", "edgemill.pipeline", *command], check=True, timeout=120, env={**os.environ})
    resumed = Result(tmp_path / "out")
    assert "restore" in logged(resumed) and not {"update", "bound"} & set(logged(resumed))
    assert_equal(resumed, update(base, tmp_path / "whole", insert=edges(60, 8), device="cpu"))
    assert not place(tmp_path).exists()


def test_a_night_from_nothing_goes_on(
    tuesday: Callable[..., Result],
    interrupted: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """λ that was found anew, as so much has changed."""
    interrupted(incremental="auto")
    without_search(monkeypatch)
    resumed = tuesday(incremental="auto")
    assert resumed.manifest.update is not None and resumed.manifest.update.way == "whole"
    assert_equal(resumed, mine(tmp_path / "tuesday.parquet", tmp_path / "full", device="cpu"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"incremental": "auto"}, "another nightly.incremental"),
        ({"nightly.full_every": 7}, "another nightly.full_every"),
        ({"nulls": "drop"}, "another input.nulls"),
    ],
)
def test_a_checkpoint_of_other_settings_is_not_used(
    changes: dict[str, Any],
    reason: str,
    tuesday: Callable[..., Result],
    interrupted: Callable[..., None],
    tmp_path: Path,
) -> None:
    interrupted()
    again = tuesday(**changes)
    told = (again.path / "log.jsonl").read_text()
    assert "restore" not in logged(again) and reason in told
    assert_equal(again, mine(tmp_path / "tuesday.parquet", tmp_path / "full", device="cpu"))
    assert not place(tmp_path).exists()


def test_a_checkpoint_of_another_input_is_not_used(
    tuesday: Callable[..., Result], interrupted: Callable[..., None], tmp_path: Path
) -> None:
    interrupted()
    pq.write_table(edges(0, 12), tmp_path / "tuesday.parquet")
    again = tuesday()
    assert "restore" not in logged(again)
    assert "another input" in (again.path / "log.jsonl").read_text()
    assert_equal(again, mine(tmp_path / "tuesday.parquet", tmp_path / "full", device="cpu"))


@pytest.mark.parametrize("damage", ["file", "index"])
def test_a_damaged_checkpoint_is_not_used(
    damage: str, tuesday: Callable[..., Result], interrupted: Callable[..., None], tmp_path: Path
) -> None:
    interrupted()
    (file,) = place(tmp_path).glob("update-*/*") if damage == "file" else [place(tmp_path) / "update.json"]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    again = tuesday()
    assert "checkpoint_refused" in logged(again) and "update" in logged(again)
    assert_equal(again, mine(tmp_path / "tuesday.parquet", tmp_path / "full", device="cpu"))


def test_nothing_is_saved_before_it_is_due(
    tuesday: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("the groups were not found")

    monkeypatch.setattr(updating, "find_groups", fail)
    for every in (300.0, None):
        with pytest.raises(RuntimeError) as failed:
            tuesday(checkpoint={"every_seconds": every})
        assert not any("checkpoint" in note for note in getattr(failed.value, "__notes__", []))
        assert not place(tmp_path).exists()


def test_a_fresh_night_ignores_a_checkpoint(
    tuesday: Callable[..., Result], interrupted: Callable[..., None], tmp_path: Path
) -> None:
    interrupted()
    again = tuesday(checkpoint={"every_seconds": 0.0, "fresh": True})
    assert "restore" not in logged(again) and "update" in logged(again)
    assert not place(tmp_path).exists()


def test_a_full_run_clears_the_checkpoint_of_an_update(
    tuesday: Callable[..., Result], interrupted: Callable[..., None], tmp_path: Path
) -> None:
    interrupted()
    made = tuesday(previous=None, incremental="never")
    assert made.manifest.update is None
    assert not place(tmp_path).exists()


def test_a_checkpoint_that_cannot_be_written_leaves_nothing(
    tuesday: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise UsageError("no room")

    monkeypatch.setattr("edgemill.pipeline.updating.finding_lambda.array_files.store", full)
    with pytest.raises(UsageError, match="no room"):
        tuesday()
    assert not place(tmp_path).exists() and not (tmp_path / "out").exists()


def test_dask_is_not_loaded_without_a_checkpoint(base: Result, tmp_path: Path) -> None:
    pq.write_table(edges(60, 3), tmp_path / "more.parquet")
    script = """
import sys
from edgemill.pipeline.cli import edgemill
edgemill(["update", *sys.argv[1:], "--device", "cpu"], standalone_mode=False)
assert "edgemill.pipeline.updating.finding_lambda" in sys.modules and "distributed" not in sys.modules
"""
    files = [str(base.path), "--insert", str(tmp_path / "more.parquet"), "--output", str(tmp_path / "out")]
    subprocess.run([sys.executable, "-c", script, *files], check=True, timeout=120)
