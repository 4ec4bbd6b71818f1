"""The files of configs/nightly for Airflow and Prefect, each run by the real one."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
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
LATE = """
import asyncio, sys
from datetime import datetime, timezone
from prefect import get_client
from prefect.flow_engine import run_flow
from prefect.states import Scheduled
sys.path.insert(0, sys.argv[1])
import prefect_flow

async def scheduled(day):
    due = datetime(2026, 11, day, 2, 15, tzinfo=timezone.utc)
    async with get_client() as client:
        return await client.create_flow_run(prefect_flow.edgemill_nightly, state=Scheduled(scheduled_time=due))

states = [
    run_flow(prefect_flow.edgemill_nightly, flow_run=asyncio.run(scheduled(day)), return_type="state")
    for day in (18, 19, 20)
]
print("STATE", "success" if all(state.is_completed() for state in states) else "failed")
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


def environment(schedulers: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The variables of a scheduler whose folder of flows has the examples."""
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
    return {name: value for name, value in (os.environ | own | variables).items() if name != "PYTHONSAFEPATH"}


def run(schedulers: Mapping[str, str], name: str, script: str, folder: Path) -> str:
    """What the script prints of the task's state."""
    done = subprocess.run(
        [schedulers[name], "-c", script, str(folder / "flows")],
        env=environment(schedulers, folder),
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


def test_a_backfill_of_airflow(schedulers: Mapping[str, str], tmp_path: Path, trials: Trials) -> None:
    """Airflow's own scheduler runs three old days, and one of them again after it is cleared."""
    calls, variables = command(tmp_path, 0), environment(schedulers, tmp_path)
    port = free_port()
    variables |= {
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
    }
    airflow = str(Path(schedulers["AIRFLOW"]).with_name("airflow"))

    def tell(*arguments: str) -> str:
        done = subprocess.run([airflow, *arguments], env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def mined(most: int) -> list[str]:
        until = time.monotonic() + 300
        while time.monotonic() < until and (not calls.exists() or len(calls_of(calls)) < most):
            time.sleep(1)
        return sorted(call[-1] for call in calls_of(calls))

    tell("db", "migrate")
    tell("dags", "reserialize")
    services = [
        subprocess.Popen([airflow, *arguments], env=variables, stdout=log, stderr=log)
        for arguments in (("api-server", "--host", "127.0.0.1", "--port", str(port)), ("scheduler",))
        for log in [(tmp_path / f"{arguments[0]}.log").open("wb")]
    ]
    try:
        await_answer(f"http://127.0.0.1:{port}/api/v2/version")  # a task that cannot report is retried after 15 minutes
        window = "--from-date", "2026-11-17", "--to-date", "2026-11-20", "--max-active-runs", "1"
        tell("backfill", "create", "--dag-id", "edgemill_nightly", *window)
        tell("dags", "unpause", "edgemill_nightly", "--yes")
        old = [f"2026-11-{day}" for day in (17, 18, 19)]
        found = mined(4)  # with the last night before now, which a DAG without catchup runs once
        assert found[:3] == old
        tell("tasks", "clear", "edgemill_nightly", "-s", "2026-11-18", "-e", "2026-11-19", "-y")
        assert sorted(mined(5)) == sorted([*found, "2026-11-18"])
    finally:
        for service in services:
            service.terminate()
        for service in services:
            service.wait(60)
    trials("Airflow: a backfill of three days, and a cleared day", "same")


def await_answer(address: str) -> None:
    until = time.monotonic() + 300
    while True:
        try:
            with urllib.request.urlopen(address, timeout=10):
                return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def test_late_runs_of_prefect(schedulers: Mapping[str, str], tmp_path: Path, trials: Trials) -> None:
    calls = command(tmp_path, 0)
    assert run(schedulers, "PREFECT", LATE, tmp_path) == "success"
    assert [call[-1] for call in calls_of(calls)] == [f"2026-11-{day}" for day in (17, 18, 19)]
    trials("Prefect: three late runs", "same")


@pytest.mark.parametrize(("code", "state", "starts"), ENDINGS)
def test_prefect(
    schedulers: Mapping[str, str], tmp_path: Path, trials: Trials, code: int, state: str, starts: int
) -> None:
    calls = command(tmp_path, code)
    assert run(schedulers, "PREFECT", PREFECT, tmp_path) == state
    assert calls_of(calls) == [["run", "/etc/edgemill/nightly.yaml", "--date", "2026-11-20"]] * starts
    trials(f"Prefect: a command that ends with {code}", "same")
