"""Several clients use one cluster: a dead one holds nothing, a large run leaves room for small ones, a wait is told."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

import runs
from edgemill.pipeline import ClusterLost, mine
from edgemill.pipeline.cli.show import describe
from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.cluster.watchdog import workers_of
from edgemill.pipeline.cluster.worker_lock import WorkerLock
from edgemill.pipeline.cluster.workers import ready
from edgemill.pipeline.events import Events
from edgemill.pipeline.monitor.status import status_of
from edgemill.tasks.bound import peel as peel_alone
from edgemill.tasks.generate import generate

SECONDS = 20
"""Less than the lease of Dask's own lock, and more than anything here takes."""
HOLDING = """
import sys
from distributed import Client
from edgemill.pipeline.cluster.worker_lock import WorkerLock

client = Client(sys.argv[1], set_as_default=False)
lock = WorkerLock(client, "peeling", "killed-run")
assert client.sync(lock.acquire) == ""
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("rmat", str(folder), files=1, seed=4, scale=8, edge_factor=8)
    return folder


def address(client: Client) -> str:
    return str(client.scheduler_info(n_workers=0)["address"])


def test_a_killed_client_leaves_the_lock(two_workers: Client) -> None:
    """Whoever waits says for whom."""
    words = [sys.executable, "-c", HOLDING, address(two_workers)]
    told: list[str] = []
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

        def tell(reason: str) -> None:
            told.append(reason)
            if reason:
                holder.send_signal(signal.SIGKILL)

        engine = Engine.connect(two_workers, "waiting-run")
        engine.session.tell = tell

        def hold() -> None:
            with engine.exclusive("peeling"):
                pass

        waiting = ThreadPoolExecutor().submit(hold)
        waiting.result(SECONDS)
    (first, *others) = told
    assert "run killed-run of " in first
    assert f"process {holder.pid} on " in first
    assert others == [""]


def test_a_lock_goes_to_the_next_in_order(two_workers: Client) -> None:
    with Client(address(two_workers), set_as_default=False) as other:
        first, second, third = (WorkerLock(other, "peeling", f"run-{number}") for number in range(3))
        assert other.sync(first.acquire) == ""
        assert "run run-0 of " in other.sync(second.acquire)
        assert "run run-0 of " in other.sync(third.acquire)
        second.release()  # it does not wait any more
        waiting = ThreadPoolExecutor().submit(other.sync, third.acquire)
        first.release()
        assert waiting.result(SECONDS) == ""
        mine_now = WorkerLock(two_workers, "peeling", "run-3")
        assert "run run-2 of " in two_workers.sync(mine_now.acquire)
    assert two_workers.sync(mine_now.acquire) == ""  # the client of run-2 is closed
    mine_now.release()


@pytest.mark.parametrize("threads", [1, 4])
def test_a_small_job_ends_beside_a_large_one(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """The first run peels until the second has ended."""
    peels, ended, peel = threading.Event(), threading.Event(), peel_alone.peel

    def wait_in_first(*arguments: Any, **options: Any) -> Any:
        if not peels.is_set():
            peels.set()
            assert ended.wait(SECONDS)
        return peel(*arguments, **options)

    monkeypatch.setattr("edgemill.pipeline.bounding.schedule.peel", wait_in_first)
    how: dict[str, Any] = {"device": "cpu", "partitions": 1, "output.report": False}
    with (
        runs.cluster(n_workers=1, processes=False, protocol="tcp", threads_per_worker=threads) as client,
        Client(address(client), set_as_default=False) as other,
        ThreadPoolExecutor() as pool,
    ):
        large = pool.submit(mine, rows, tmp_path / "large", client=client, **how)
        assert peels.wait(SECONDS)
        try:
            small = pool.submit(mine, rows, tmp_path / "small", client=other, **how).result(SECONDS)
        finally:
            ended.set()
        assert large.result(SECONDS).edges.to_table() == small.edges.to_table()


def test_who_is_missing_is_told(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the log and in `status`, and a worker that compiles kernels is named when the run gives up."""
    out, own = tmp_path / "out", Events.waits
    shown: list[str] = []

    def look(self: Events, reason: str) -> None:
        own(self, reason)
        if reason:
            status = status_of(out)
            shown.extend([describe(status, datetime.now(UTC)), status.as_json(datetime.now(UTC))["waiting"]])

    monkeypatch.setattr(Events, "waits", look)
    with runs.cluster(n_workers=1, processes=False, protocol="tcp", threads_per_worker=1) as client:
        (there,) = workers_of(client)
        absent = "tcp://127.0.0.1:1"
        client.log_event(ready._TOPIC, {"worker": absent, "seconds": 3.0})
        client.log_event(ready._TOPIC, {"worker": "tcp://127.0.0.1:2", "seconds": 3.0})
        client.log_event(ready._TOPIC, {"worker": "tcp://127.0.0.1:2", "seconds": None})
        cluster = {"least_workers": 3, "waiting_seconds": 1}
        with pytest.raises(ClusterLost, match="1 of 3 workers") as ended:
            mine(rows, out, client=client, cluster=cluster)
    log = map(json.loads, (tmp_path / "out.failed.log.jsonl").read_text().splitlines())
    logged = [line["reason"] for line in log if line["event"] == "waiting"]
    assert len(logged) == 1
    assert len(shown) == 2
    for text in (str(ended.value), *logged, *shown):
        assert there in text
        assert "1 still compiling kernels" in text
        assert absent in text
        assert "tcp://127.0.0.1:2" not in text
