"""`edgemill run --log-format json`: each line on stderr is a JSON event in every case, and stdout is empty."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import subprocess
import sys
import urllib.request
from contextlib import closing
from datetime import datetime
from itertools import combinations
from pathlib import Path
from socket import create_server
from typing import Any

import pytest
from distributed import LocalCluster

import in_process
import runs
from edgemill.pipeline.events import Events, logs_as_events
from edgemill.pipeline.monitor.display import JsonDisplay
from edgemill.pipeline.settings.setting_names import with_flags

QUICK = ["--device", "cpu", "--set", "output.report=false"]
CLIQUE_AND_TRIANGLE = [*combinations(range(5), 2), (4, 5), (3, 5)]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return runs.write_rows(tmp_path / "rows.parquet", CLIQUE_AND_TRIANGLE)


def events(text: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in text.splitlines()]
    assert len({line["run"] for line in lines}) == 1
    assert all(datetime.fromisoformat(line["time"]).tzinfo and isinstance(line["event"], str) for line in lines)
    return lines


def call(exit_code: int, *arguments: str) -> list[dict[str, Any]]:
    done = in_process.call("run", "--log-format", "json", *QUICK, *arguments)
    assert (done.exit_code, done.stdout) == (exit_code, "")
    return events(done.stderr)


def test_what_is_logged_while_an_event_is_told(tmp_path: Path) -> None:
    """An exception in a finaliser is an event, too, without passwords."""

    class Chatty:
        def item(self) -> int:
            logging.getLogger("asyncio").error("cannot read ftp://me:sEcReT@host/x of %s", "it")
            return 1

    stream = io.StringIO()
    with Events(JsonDisplay(stream)) as told, logs_as_events(told):
        logging.getLogger("asyncio").error("%d is no number", "one")  # as Python has it, on stderr, and no more
        told.emit("planned", partitions=Chatty())
    logged, planned = events(stream.getvalue())
    assert logged["event"] == "log" and "ftp://***@host/x" in logged["message"]
    assert (planned["event"], planned["partitions"]) == ("planned", 1)


def test_a_run_and_the_same_again(rows: Path, tmp_path: Path) -> None:
    how = ["--input", str(rows), "--output", str(tmp_path / "out")]
    told = call(0, *how)
    assert [line["event"] for line in told[:: len(told) - 1]] == ["run_started", "run_finished"]
    log = tmp_path / "out" / "log.jsonl"
    assert told == events(log.read_text())
    assert [line["event"] for line in call(0, *how)] == ["run_started", "nothing_to_do"]


def test_what_fails(rows: Path, tmp_path: Path) -> None:
    how = ["--input", str(rows), "--output", str(tmp_path / "out")]
    (only,) = call(2, *how, "--set", "bounding.nothing=1")
    assert (only["event"], only["exit_code"]) == ("error", 2)
    assert only["error"].startswith("unknown setting bounding.nothing")
    last = call(5, *how, "--partitions", "1", "--max-seconds", "1e-9")[-1]
    assert (last["event"], last["exit_code"]) == ("error", 5)
    runs.write_rows(rows, [(1, 2), (2, None)])
    *_, failed, last = call(3, *how, "--overwrite", "--debug")
    assert (failed["event"], failed["exit_code"]) == ("run_failed", 3)
    assert (last["event"], last["exit_code"], last["error"]) == ("error", 3, with_flags(failed["error"]))
    [note] = last["notes"]
    assert note.endswith(f": {tmp_path}/out.failed.log.jsonl")
    assert last["traceback"].startswith("Traceback")


def test_addresses(rows: Path, tmp_path: Path) -> None:
    """As people see them; and in the log."""
    with closing(create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    command = ["run", "--input", str(rows), "--output", str(tmp_path / "out"), *QUICK, "--metrics-port", "0"]
    command += ["--set", f"cluster.dashboard_address=127.0.0.1:{port}"]
    done = in_process.call(*command)
    assert done.exit_code == 0
    metrics, dashboard = done.stderr.splitlines()
    assert re.fullmatch(r"metrics: http://127\.0\.0\.1:\d+/metrics", metrics)
    assert dashboard == f"dashboard: http://127.0.0.1:{port}/status"
    log = events((tmp_path / "out" / "log.jsonl").read_text())
    told = {line["what"]: line["address"] for line in log if line["event"] == "serving"}
    assert [f"{what}: {address}" for what, address in told.items()] == [metrics, dashboard]


@pytest.mark.parametrize("bound", ["127.0.0.1", pytest.param("0.0.0.0", marks=pytest.mark.slow), None])
def test_a_scheduler_tells_its_own(rows: Path, tmp_path: Path, bound: str | None) -> None:
    """What is printed answers: the dashboard may listen elsewhere than its scheduler, and there may be none."""
    places: dict[str, Any] = {"host": "127.0.0.2", "port": 0}
    places |= {"dashboard_address": f"{bound or '127.0.0.1'}:0", "dashboard": bound is not None}
    with LocalCluster(
        n_workers=1,
        processes=False,
        protocol="tcp",
        threads_per_worker=1,
        dashboard_address=None,
        scheduler_kwargs=places,
        silence_logs=50,
    ) as cluster:
        command = ["run", "--input", str(rows), "--output", str(tmp_path / "out"), *QUICK]
        done = in_process.call(*command, "--scheduler", cluster.scheduler_address)
        assert done.exit_code == 0
        if bound is None:
            assert done.stderr == ""
            return
        host = bound if bound == "127.0.0.1" else "127.0.0.2"
        told = re.fullmatch(rf"dashboard: (http://{re.escape(host)}:\d+/status)\n", done.stderr)
        assert told is not None
        with urllib.request.urlopen(told[1], timeout=30) as page:
            assert page.status == 200


@pytest.mark.slow
def test_a_dashboard_that_moves(rows: Path, tmp_path: Path) -> None:
    """Dask takes another port where one is taken, and says so by a warning, which is in JSON, too."""
    with closing(create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        command = ["run", "--input", str(rows), "--output", str(tmp_path / "out"), "--log-format", "json"]
        command += [*QUICK, "--set", f"cluster.dashboard_address=127.0.0.1:{port}"]
        done = subprocess.run(
            [sys.executable, "-m", "edgemill.pipeline", *command],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONSAFEPATH": "1"},
        )
    told = events(done.stderr)
    (dashboard,) = (line["address"] for line in told if line["event"] == "serving")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/status", dashboard)
    assert f":{port}/" not in dashboard
    assert any(str(port) in line["message"] for line in told if line["event"] == "log")
