"""Runs into Ceph's object store and out of it, through its RADOS gateway."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest

from edgemill.pipeline import OutputLocked, Result, mine
from edgemill.pipeline.output.lock import LOCK_NAME, StoreLock
from edgemill.tasks.errors import StoreLost
from edgemill.tasks.storage.folders import Folder
from edgemill.tasks.verify.result import verify
from trials import Trials

ROWS = Path(__file__).resolve().parent.parent / "graphs" / "facebook_combined.parquet"
HOW: dict[str, Any] = {"device": "cpu", "method": "band", "checkpoint": {"every_exchanges": 2}}
ARGUMENTS = ["--device=cpu", "--method=band", "--set=checkpoint.every_exchanges=2"]
RUN = """
import json, os, signal, subprocess, sys, time
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.events import Events
wanted, pid, restart = map(json.loads, sys.argv[1:4])
emit, struck = Events.emit, []
def strike(self, event, /, **fields):
    emit(self, event, **fields)
    if not struck and wanted.items() <= {"event": event, **fields}.items():
        struck.append(event)
        os.kill(pid, signal.SIGKILL)
        if restart:
            subprocess.run(restart, check=True)
Events.emit = strike
edgemill(sys.argv[4:])
"""
MOMENTS = [
    {"event": "stage_started", "stage": "read"},
    {"event": "stage_started", "stage": "triangulate"},
    {"event": "exchange", "exchange": 5},
    {"event": "stage_started", "stage": "publish"},
    {"event": "run_finished"},
]


class Gateway:
    """The gateway of a running cluster, and a bucket of its own."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values
        endpoint = {"endpoint_url": values["ENDPOINT"]}
        self.options: dict[str, Any] = {"key": values["KEY"], "secret": values["SECRET"], "client_kwargs": endpoint}
        fsspec.filesystem("s3", **self.options).makedirs("bucket", exist_ok=True)

    @property
    def pid(self) -> int:
        return int(Path(self.values["PID_FILE"]).read_text())

    @property
    def start(self) -> list[str]:
        """The command that starts the gateway again and ends when it answers."""
        radosgw = f"radosgw --conf {self.values['CONF']} --name client.rgw"
        answers = f"curl --silent --fail --output /dev/null --retry 60 --retry-connrefused {self.values['ENDPOINT']}"
        return ["bash", "-c", f"{radosgw} < /dev/null > /dev/null 2>&1 && {answers}"]

    def place(self, name: str) -> Folder:
        return Folder(f"s3://bucket/{name}", self.options)


@pytest.fixture(scope="session")
def rgw(system: Callable[[str], Mapping[str, str]]) -> Gateway:
    gateway = Gateway(system("rgw"))
    gateway.place("edges").write("part-0.parquet", ROWS.read_bytes())
    return gateway


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[pa.Table]:
    return tables(mine(ROWS, tmp_path_factory.mktemp("plain") / "out", **HOW))


def tables(result: Result) -> list[pa.Table]:
    return [result.edges.to_table(), result.vertices.to_table()]


def command(rgw: Gateway, out: Folder, folder: Path, at: Mapping[str, Any], restart: bool) -> tuple[int, str]:
    """Run the command in a process of its own which kills the gateway at that event, once; exit code and stderr."""
    (folder / "s3.json").write_text(json.dumps({"s3": rgw.options}))
    strike = [json.dumps(value) for value in (at, rgw.pid, rgw.start if restart else None)]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *strike, "run", "--input=s3://bucket/edges", f"--output={out.url}", *ARGUMENTS],
        env=os.environ | {"FSSPEC_CONFIG_DIR": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


def assert_one_result(out: Folder) -> Result:
    """Nothing is there but a manifest and the files of its run."""
    result = Result(out)
    assert out.names() == [f"edgemill-{result.manifest.run}", "manifest.json"]
    return result


def test_there_and_back(rgw: Gateway, plain: list[pa.Table], trials: Trials) -> None:
    options = {"input.storage_options": rgw.options, "output.storage_options": rgw.options}
    out = rgw.place("there and back")
    for count in range(2):
        result = mine("s3://bucket/edges", out.url, **(HOW | options), overwrite=bool(count), fresh=bool(count))
        assert tables(result) == plain
        trials("RGW: a run from it and into it", "same")
    assert verify(out, ROWS).ok
    assert_one_result(out)


def test_one_of_many_gets_the_lock(rgw: Gateway, trials: Trials) -> None:
    out, barrier = rgw.place("many"), threading.Barrier(8)

    def take(number: int) -> StoreLock | None:
        lock = StoreLock(out, f"run {number}")
        barrier.wait()
        try:
            lock.take()
        except OutputLocked:
            return None
        return lock

    with ThreadPoolExecutor(8) as threads:
        for _ in range(20):
            (winner,) = [lock for lock in threads.map(take, range(8)) if lock is not None]
            assert (winner.weakness, winner.is_held()) == (None, True)
            assert not out.create(LOCK_NAME, b"another")
            winner.release()
            assert out.names() == []
            trials("RGW: eight runs take one lock at once", "same")


@pytest.fixture
def again(rgw: Gateway) -> Iterator[None]:
    """Start the gateway after a test that left it dead."""
    yield
    try:
        os.kill(rgw.pid, 0)
    except (ProcessLookupError, FileNotFoundError, ValueError):
        subprocess.run(rgw.start, check=True)


@pytest.mark.usefixtures("again")
@pytest.mark.parametrize("at", MOMENTS, ids=lambda at: "-".join(map(str, at.values())))
def test_the_gateway_is_killed(
    rgw: Gateway, plain: list[pa.Table], tmp_path: Path, trials: Trials, at: dict[str, Any]
) -> None:
    out = rgw.place(f"killed at {'-'.join(map(str, at.values()))}")
    killed = rgw.pid
    code, told = command(rgw, out, tmp_path, at, restart=False)
    with pytest.raises(ProcessLookupError):
        os.kill(killed, 0)
    assert code == StoreLost.exit_code, told
    found = re.search(r"^log of the failed run: (/.*)$", told, re.MULTILINE)
    assert found, told
    last = json.loads(Path(found[1]).read_text().splitlines()[-1])
    assert (last["event"], last["exit_code"]) == ("run_failed", StoreLost.exit_code)
    subprocess.run(rgw.start, check=True)
    assert "manifest.json" not in out.names()
    trials("RGW: the gateway is killed in the middle of a run", "refused")
    code, told = command(rgw, out, tmp_path, {"event": "never"}, restart=False)
    assert code == 0, told
    assert tables(assert_one_result(out)) == plain
    trials("RGW: the same run after the gateway was killed", "same")


@pytest.mark.usefixtures("again")
@pytest.mark.parametrize("at", MOMENTS, ids=lambda at: "-".join(map(str, at.values())))
def test_the_gateway_starts_again_in_the_middle(
    rgw: Gateway, plain: list[pa.Table], tmp_path: Path, trials: Trials, at: dict[str, Any]
) -> None:
    out = rgw.place(f"again at {'-'.join(map(str, at.values()))}")
    killed = rgw.pid
    code, told = command(rgw, out, tmp_path, at, restart=True)
    assert rgw.pid != killed
    assert code == 0, told
    assert tables(assert_one_result(out)) == plain
    trials("RGW: the gateway is killed and started again in the middle of a run", "same")
