"""The files of configs/nightly for Airflow and Prefect, each run by the real one."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from trials import Trials

NIGHTLY = Path(__file__).resolve().parent.parent.parent / "configs" / "nightly"
AIRFLOW = """
import sys
from datetime import timedelta
sys.path.insert(0, sys.argv[1])
import airflow_dag
dag = airflow_dag.edgemill_nightly()
mine = dag.get_task("mine")
mine.retries, mine.retry_delay = 1, timedelta(0)
run = dag.test(run_conf={"date": "2026-11-20"})
(task,) = run.get_task_instances()
print("STATE", str(getattr(task.state, "value", task.state)))
"""
PREFECT = """
import json, sys
sys.path.insert(0, sys.argv[1])
import prefect_flow
mine = prefect_flow.mine.with_options(retries=1, retry_delay_seconds=0)
prefect_flow.mine = mine
state = prefect_flow.edgemill_nightly("2026-11-20", return_state=True)
print("STATE", "success" if state.is_completed() else "failed")
"""
ENDINGS = [(0, "success", 1), (3, "failed", 1), (4, "failed", 2)]
"""Exit code of the command, what becomes of the task, and starts of the command with one retry."""


@pytest.fixture
def schedulers(system: Callable[[str], Mapping[str, str]]) -> Mapping[str, str]:
    return system("schedulers")


def command(folder: Path, code: int) -> Path:
    """A command `edgemill` that notes its arguments and ends with that code; what it is to do is tested elsewhere."""
    program, calls = folder / "bin" / "edgemill", folder / "calls"
    program.parent.mkdir()
    note = f"import json, sys; print(json.dumps(sys.argv[1:]), file=open({str(calls)!r}, 'a')); sys.exit({code})"
    program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-c", note])} "$@"\n')
    program.chmod(0o755)
    return calls


def run(schedulers: Mapping[str, str], name: str, script: str, folder: Path) -> str:
    """What the script prints of the task's state."""
    (folder / "flows").mkdir()
    for path in NIGHTLY.glob("*.py"):
        (folder / "flows" / path.name).write_text(path.read_text())
    own = {key: value for key, value in schedulers.items() if key.endswith("_HOME")}
    variables = {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "flows"),
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "300",
        "PYTHONWARNINGS": "default",
    }
    done = subprocess.run(
        [schedulers[name], "-c", script, str(folder / "flows")],
        env=os.environ | own | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    printed = done.stdout + done.stderr
    assert "airflow_dag.py" not in printed or "DeprecatedImportWarning" not in printed, printed
    states = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("STATE ")]
    assert len(states) == 1, printed
    return states[0]


def calls_of(calls: Path) -> list[list[str]]:
    return [json.loads(line) for line in calls.read_text().splitlines()]


@pytest.mark.parametrize(("code", "state", "starts"), ENDINGS)
def test_airflow(
    schedulers: Mapping[str, str], tmp_path: Path, trials: Trials, code: int, state: str, starts: int
) -> None:
    calls = command(tmp_path, code)
    assert run(schedulers, "AIRFLOW", AIRFLOW, tmp_path) == state
    assert calls_of(calls) == [["run", "/etc/edgemill/nightly.yaml", "--date", "2026-11-20"]] * starts
    trials(f"Airflow: a command that ends with {code}", "same")


@pytest.mark.parametrize(("code", "state", "starts"), ENDINGS)
def test_prefect(
    schedulers: Mapping[str, str], tmp_path: Path, trials: Trials, code: int, state: str, starts: int
) -> None:
    calls = command(tmp_path, code)
    assert run(schedulers, "PREFECT", PREFECT, tmp_path) == state
    assert calls_of(calls) == [["run", "/etc/edgemill/nightly.yaml", "--date", "2026-11-20"]] * starts
    trials(f"Prefect: a command that ends with {code}", "same")
