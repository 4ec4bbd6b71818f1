"""The process that drives a run is killed: the same command goes on from what was kept, to the same answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from edgemill.pipeline import Result
from trials import Trials

KILLED = """
import os, signal, sys
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.telemetry import Events

exchange, at = Events.exchange, float(sys.argv.pop(1))

def kill(self, record):
    exchange(self, record)
    if record.exchange >= at:
        os.kill(os.getpid(), signal.SIGKILL)

Events.exchange = kill
edgemill(sys.argv[1:])
"""


def run(rows: Path, out: Path, killed_at: float = float("inf")) -> int:
    """The exit status of a run that is killed after so many exchanges."""
    settings = ["--partitions", "3", "--device", "cpu", "--set", "checkpoint.every_exchanges=3"]
    command = ["run", "--input", str(rows), "--output", str(out), *settings]
    return subprocess.run(
        [sys.executable, "-c", KILLED, str(killed_at), *command], check=False, stdout=subprocess.DEVNULL, timeout=120
    ).returncode


@pytest.mark.parametrize(
    "share", [0.5, pytest.param(0.25, marks=pytest.mark.slow), pytest.param(0.75, marks=pytest.mark.slow)]
)
def test_a_killed_driver(rows: Path, tmp_path: Path, trials: Trials, share: float) -> None:
    assert run(rows, tmp_path / "plain") == 0
    plain = Result(tmp_path / "plain")
    exchanges = plain.manifest.bounding.exchanges
    at = int(share * exchanges)
    assert at > 3
    assert run(rows, tmp_path / "out", at) == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    assert run(rows, tmp_path / "out") == 0
    result = Result(tmp_path / "out")
    assert result.edges.to_table() == plain.edges.to_table()
    log = map(json.loads, (tmp_path / "out" / "log.jsonl").read_text().splitlines())
    again = [line["exchange"] for line in log if line["event"] == "exchange"]
    assert again == list(range((at - 1) // 3 * 3 + 1, exchanges + 1))  # an interval is done again at most
    assert sorted(os.listdir(tmp_path)) == ["out", "plain"]
    trials("the process that drives the run is killed", "same")
