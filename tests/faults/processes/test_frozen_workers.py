"""Frozen workers (SIGSTOP), and workers without a resource that the run needs: no run waits for ever."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client, Worker

import runs
from edgemill.kernels.runtime.device import Device
from edgemill.pipeline import ClusterLost, Result, UsageError, mine
from edgemill.pipeline.cluster.connecting.start import connect
from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.cluster.execution import GPU
from edgemill.pipeline.events import Events
from edgemill.pipeline.settings.models import ClusterSettings
from trials import Trials

HOW: dict[str, Any] = {"device": "cpu", "partitions": 4}


@pytest.fixture
def stop() -> Iterator[Callable[..., None]]:
    """Freezes processes, and kills them at the end: a frozen process ends in no other way."""
    stopped: list[int] = []

    def freeze(*pids: int) -> None:
        for pid in pids:
            stopped.append(pid)
            os.kill(pid, signal.SIGSTOP)

    yield freeze
    for pid in stopped:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def at_task(monkeypatch: pytest.MonkeyPatch, number: int, strike: Callable[[], None]) -> None:
    """Call `strike` after some finished tasks."""
    emit, told = Events.emit, itertools.count(1)

    def struck(self: Events, event: str, /, **fields: object) -> None:
        emit(self, event, **fields)
        if event == "task_done" and next(told) == number:
            strike()

    monkeypatch.setattr(Events, "emit", struck)


def is_running(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [1, 2])
def test_frozen_workers_are_replaced(
    rows: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stop: Callable[..., None],
    trials: Trials,
    frozen: int,
) -> None:
    """One worker of the run's own cluster is frozen, or both."""
    pids: list[int] = []

    @contextmanager
    def connected(settings: ClusterSettings, *_: object) -> Iterator[Client]:
        with connect(settings) as client:
            pids.extend(client.run(os.getpid).values())
            yield client

    plain = mine(rows, tmp_path / "plain", **HOW)
    monkeypatch.setattr("edgemill.pipeline.run.full.connect", connected)
    at_task(monkeypatch, 8, lambda: stop(*pids[:frozen]))
    # Dask takes no worker for frozen that was silent for less than 5 s.
    result = mine(rows, tmp_path / "out", cluster={"workers": 2, "silence_seconds": 1}, **HOW)
    assert len(pids) == 2
    assert not any(map(is_running, pids))
    assert tables(result) == tables(plain)
    assert sorted(os.listdir(tmp_path)) == ["out", "plain"]
    trials("workers freeze", "same")


@pytest.mark.slow
def test_all_workers_of_a_patient_scheduler_are_frozen(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: Callable[..., None], trials: Trials
) -> None:
    """The scheduler would wait for ever, but the driver does not."""
    with dask.config.set({"distributed.scheduler.worker-ttl": None}), runs.two_processes() as client:
        pids = list(client.run(os.getpid).values())
        at_task(monkeypatch, 8, lambda: stop(*pids))
        with pytest.raises(ClusterLost, match=r"no task.* 2 s .*none of 2 workers.*heartbeats"):
            mine(rows, tmp_path / "out", client=client, cluster={"waiting_seconds": 2}, **HOW)
        assert not (tmp_path / "out").exists()
    trials("workers freeze", "refused")


@pytest.mark.slow
def test_one_worker_of_a_patient_scheduler_is_frozen(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: Callable[..., None], trials: Trials
) -> None:
    with dask.config.set({"distributed.scheduler.worker-ttl": None}), runs.two_processes() as client:
        pids = list(client.run(os.getpid).values())
        at_task(monkeypatch, 8, lambda: stop(pids[0]))
        with pytest.raises(ClusterLost, match=r"tcp://.*heartbeat"):
            mine(rows, tmp_path / "out", client=client, cluster={"waiting_seconds": 3}, **HOW)
    trials("workers freeze", "refused")


def test_a_gpu_that_no_worker_has(rows: Path, tmp_path: Path) -> None:
    """It is reported at the start of the run."""
    with (
        runs.cluster(n_workers=1, processes=False, threads_per_worker=1) as client,
        pytest.raises(UsageError, match=r"^device is gpu.*worker .*none: "),
    ):
        mine(rows, tmp_path / "out", client=client, device="gpu")


@pytest.mark.timeout(150)
def test_the_workers_with_gpus_go_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgemill.kernels.device", lambda: Device("H200", 10**9, 1, ""))
    with runs.cluster(n_workers=1, processes=False, resources={GPU: 1}) as client:
        engine = Engine.connect(client, "run", "gpu", waiting_seconds=0.5)
        assert engine.execution.device == "H200"

        async def another() -> Worker:
            scheduler: Any = client.scheduler
            known = list((await scheduler.identity(n_workers=-1))["workers"])
            worker: Worker = await Worker(scheduler.address, nthreads=1, dashboard=False)
            await client.retire_workers(known)
            return worker

        worker: Worker = client.sync(another)
        holding = engine.for_partitions()
        task = holding.submit("task", int)
        with pytest.raises(ClusterLost, match=r"no task.* 0\.5 s .*no worker.*GPU"):
            holding.gather([task])
        assert engine.gather([engine.submit("task", int)]) == [0]
        assert engine.on_every_worker(int) == [0]
        client.sync(worker.close)
        monkeypatch.setattr("edgemill.pipeline.cluster.session._RETURN_SECONDS", 0.1)
        with pytest.raises(ClusterLost, match=r"0\.5.*\(cluster\.waiting_seconds\)"):
            engine.on_every_worker(int)


def tables(result: Result) -> list[Any]:
    return [result.edges.to_table(), result.vertices.to_table()]
