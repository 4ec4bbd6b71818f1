"""The driver of a run is killed: the same command resumes from the checkpoint, with the same result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edgemill.pipeline import Result
from in_process import call
from trials import Trials

KILLED = """
import os, signal, sys
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.events import Events

emit, kind, left = Events.emit, sys.argv.pop(1), int(sys.argv.pop(1))

def kill(self, event, /, **fields):
    global left
    emit(self, event, **fields)
    left -= event == kind
    if left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)

Events.emit = kill
edgemill(sys.argv[1:])
"""


def run(rows: Path, out: Path, settings: list[str], event: str | None = None, killed_at: int = 0) -> int:
    """The exit status of a run that is killed after some events. Without an event it runs in this process."""
    command = ["run", "--input", str(rows), "--output", str(out), "--device", "cpu", *settings]
    command += ["--set", "output.report=false"]
    if event is None:
        return call(*command).exit_code
    return subprocess.run(
        [sys.executable, "-c", KILLED, event, str(killed_at), *command],
        check=False,
        stdout=subprocess.DEVNULL,
        timeout=120,
    ).returncode


def events(result: Result, name: str) -> list[dict[str, Any]]:
    lines = map(json.loads, (result.path / "log.jsonl").read_text().splitlines())
    return [line for line in lines if line["event"] == name]


BANDS = ["--method", "band", "--set", "checkpoint.every_exchanges=2"]
PEELING = ["--partitions", "1", "--set", "checkpoint.every_seconds=0"]


@pytest.mark.parametrize("share", [0.5, pytest.param(0.75, marks=pytest.mark.slow)])
def test_a_killed_driver(rows: Path, tmp_path: Path, trials: Trials, share: float) -> None:
    assert run(rows, tmp_path / "plain", BANDS) == 0
    plain = Result(tmp_path / "plain")
    exchanges = plain.manifest.bounding.exchanges
    at = int(share * exchanges)
    assert at > 2
    assert run(rows, tmp_path / "out", BANDS, "exchange", at) == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    assert run(rows, tmp_path / "out", BANDS) == 0
    result = Result(tmp_path / "out")
    assert result.edges.to_table() == plain.edges.to_table()
    again = [line["exchange"] for line in events(result, "exchange")]
    assert again == list(range((at - 1) // 2 * 2 + 1, exchanges + 1))  # an interval is done again at most
    assert sorted(os.listdir(tmp_path)) == ["out", "plain"]
    trials("the process that drives the run is killed", "same")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("started", "first"), [(5, "partition"), pytest.param(7, "triangulate", marks=pytest.mark.slow)]
)
def test_killed_before_there_is_a_graph(rows: Path, tmp_path: Path, trials: Trials, started: int, first: str) -> None:
    """It is killed when this stage starts. The stages before it do not run again."""
    kept = ["--method", "band", "--set", "checkpoint.every_seconds=0"]
    assert run(rows, tmp_path / "plain", kept) == 0
    plain = Result(tmp_path / "plain")
    assert run(rows, tmp_path / "out", kept, "stage_started", started) == -signal.SIGKILL
    assert run(rows, tmp_path / "out", kept) == 0
    result = Result(tmp_path / "out")
    assert [stage.stage for stage in result.manifest.stages][:3] == ["compile", "restore", first]
    assert result.edges.to_table() == plain.edges.to_table()
    assert result.vertices.to_table() == plain.vertices.to_table()
    assert sorted(os.listdir(tmp_path)) == ["out", "plain"]
    trials("the process that drives the run is killed", "same")


@pytest.mark.slow
@pytest.mark.parametrize("at", [2, 5, 9])
def test_killed_while_it_peels(rows: Path, tmp_path: Path, at: int) -> None:
    """The driver and the task are one process, which is killed."""
    assert run(rows, tmp_path / "plain", PEELING) == 0
    plain = Result(tmp_path / "plain")
    kept = len(events(plain, "kept"))
    assert kept == plain.manifest.bounding.steps - 1 > 9  # after each level but the last
    assert run(rows, tmp_path / "out", PEELING, "kept", at) == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    assert run(rows, tmp_path / "out", PEELING) == 0
    result = Result(tmp_path / "out")
    assert result.edges.to_table() == plain.edges.to_table()
    assert result.manifest.bounding == plain.manifest.bounding
    assert len(events(result, "kept")) == kept - at
    assert sorted(os.listdir(tmp_path)) == ["out", "plain"]
