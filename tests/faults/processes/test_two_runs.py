"""Two runs start at once with one output: one publishes, the other ends at once with code 6 and leaves no files.

pytest -m "slow or not slow" tests/faults/processes/test_two_runs.py        # all 50
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgemill.pipeline import Result, mine
from edgemill.tasks.errors import OutputLocked
from trials import Trials

GATED = """
import sys
from edgemill.pipeline.opening import input as run_input
from edgemill.pipeline.cli import edgemill

open_input = run_input.open_input

def gate(settings):
    sys.stdin.readline()
    return open_input(settings)

run_input.open_input = gate
print("ready", flush=True)
sys.stdin.readline()
edgemill(sys.argv[1:])
"""
STARTS = [0, *(pytest.param(start, marks=pytest.mark.slow) for start in range(1, 50))]


def start(rows: Path, out: Path) -> subprocess.Popen[str]:
    command = ["run", "--input", str(rows), "--output", str(out), "--device", "cpu", "--set", "output.report=false"]
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", GATED, *command], stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def go(*runs: subprocess.Popen[str]) -> None:
    for run in runs:
        assert run.stdin is not None
        run.stdin.write("go\n")
        run.stdin.flush()


@pytest.fixture(scope="module")
def plain(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return mine(rows, tmp_path_factory.mktemp("plain") / "out", device="cpu")


@pytest.mark.parametrize("number", STARTS)
def test_two_runs(rows: Path, plain: Result, tmp_path: Path, trials: Trials, number: int) -> None:
    """The lock owner waits until the other run has ended, which shows that the other did not wait."""
    out = tmp_path / "out"
    with start(rows, out) as first, start(rows, out) as second:
        for run in (first, second):
            assert run.stdout is not None
            assert run.stdout.readline() == "ready\n"
        go(first, second)
        while first.poll() is None and second.poll() is None:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        loser, winner = (first, second) if first.poll() is not None else (second, first)
        _, told = loser.communicate()
        assert loser.returncode == OutputLocked.exit_code, told
        assert f"process {winner.pid} on " in told
        assert winner.poll() is None
        assert not out.exists()
        go(winner)
        _, told = winner.communicate()
    assert winner.returncode == 0, told
    result = Result(out)
    assert result.edges.to_table() == plain.edges.to_table()
    assert {json.loads(line)["run"] for line in (out / "log.jsonl").read_text().splitlines()} == {result.manifest.run}
    assert os.listdir(tmp_path) == ["out"]
    trials("two runs start at once", "refused")


@pytest.mark.slow
def test_the_log_tells_of_a_dead_run_that_is_followed(rows: Path, plain: Result, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with start(rows, out) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "ready\n"
        go(killed)
        while not (tmp_path / ".out.edgemill.lock").exists():
            assert killed.poll() is None
        killed.kill()
    result = mine(rows, out, device="cpu")
    assert result.edges.to_table() == plain.edges.to_table()
    log = map(json.loads, (out / "log.jsonl").read_text().splitlines())
    told = [line["left_by"] for line in log if line["event"] == "lock_taken_over"]
    assert len(told) == 1
    assert f"process {killed.pid} on " in told[0]
    assert os.listdir(tmp_path) == ["out"]
