"""The scheduler of a run is killed: the run ends with exit code 4, and the same command resumes on a new scheduler."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

import runs
from edgemill.pipeline import Result, mine
from in_process import call
from trials import Trials

WITHOUT_REPORT: Mapping[str, Any] = {"output.report": False}
STRIKING = """
import os, sys
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.events import Events

exchange, at, process, number = Events.exchange, *map(int, (sys.argv.pop(1) for _ in range(3)))

def strike(self, record):
    exchange(self, record)
    if record.exchange == at:
        os.kill(process, number)

Events.exchange = strike
edgemill(sys.argv[1:])
"""


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[Path, int]]:
    """A scheduler and a worker, as a user starts them: the scheduler's file and its process."""
    folder.mkdir()
    file = folder / "scheduler.json"
    commands = [
        ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"],
        ["worker", "--nthreads", "2", "--no-nanny", "--no-dashboard", "--local-directory", str(folder)],
    ]
    with (folder / "log").open("w") as log:
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "dask", *command, "--scheduler-file", str(file)], stdout=log, stderr=log
            )
            for command in commands
        ]
        try:
            yield file, processes[0].pid
        finally:
            for process in processes:
                process.kill()
                process.wait()


def command(rows: Path, out: Path) -> list[str]:
    settings = ["--method", "band", "--device", "cpu", "--set", "checkpoint.every_exchanges=2"]
    settings += ["--set", "output.report=false", "--set", "cluster.waiting_seconds=5"]
    return ["run", "--input", str(rows), "--output", str(out), *settings]


def struck(rows: Path, out: Path, scheduler: Path, *strike: int) -> subprocess.CompletedProcess[str]:
    """The command, which sends a signal to a process at an exchange: exchange, process, signal."""
    with Client(scheduler_file=str(scheduler), set_as_default=False) as client:
        client.wait_for_workers(1, timeout=60)
    words = [*command(rows, out), "--scheduler-file", str(scheduler)]
    return subprocess.run(
        [sys.executable, "-c", STRIKING, *map(str, strike), *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=200,
    )


@pytest.mark.parametrize(
    ("share", "number", "text"),
    [
        (0.5, signal.SIGKILL, "Error: lost the Dask scheduler at tcp://"),
        pytest.param(0.75, signal.SIGKILL, "Error: lost the Dask scheduler at tcp://", marks=pytest.mark.slow),
        pytest.param(0.5, signal.SIGSTOP, "Error: the Dask scheduler has not answered for 5 s", marks=pytest.mark.slow),
    ],
)
def test_a_lost_scheduler(rows: Path, tmp_path: Path, trials: Trials, share: float, number: int, text: str) -> None:
    with cluster(tmp_path / "first") as (first, process):
        plain = mine(rows, tmp_path / "plain", method="band", device="cpu", **WITHOUT_REPORT)
        exchanges = plain.manifest.bounding.exchanges
        at = int(share * exchanges)
        assert at > 2
        ended = struck(rows, tmp_path / "out", first, at, process, number)
        assert ended.returncode == 4, ended.stderr
        assert any(line.startswith(text) for line in ended.stderr.splitlines()), ended.stderr
        assert "Traceback" not in ended.stderr
        assert not (tmp_path / "out").exists()
    with runs.cluster(n_workers=1, processes=False, protocol="tcp", threads_per_worker=2) as second:
        words = [*command(rows, tmp_path / "out"), "--scheduler", second.scheduler_info()["address"]]
        assert call(*words).exit_code == 0
    result = Result(tmp_path / "out")
    assert result.edges.to_table() == plain.edges.to_table()
    log = map(json.loads, (tmp_path / "out" / "log.jsonl").read_text().splitlines())
    done = [line["exchange"] for line in log if line["event"] == "exchange"]
    assert done == list(range((at - 1) // 2 * 2 + 1, exchanges + 1))  # an interval is done again at most
    assert sorted(os.listdir(tmp_path)) == ["first", "out", "plain"]
    trials("the scheduler is killed, or freezes", "same")
