"""Clusters in which only some workers have a GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from distributed import Client

import runs
from edgemill.kernels.runtime.device import Device
from edgemill.pipeline.bounding.peel_bands import _Workers
from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.cluster.session import Session
from edgemill.tasks.errors import UsageError

PRESENT = Device("a GPU", 2**30, 1, "")


@pytest.fixture(scope="module")
def mixed() -> Iterator[Client]:
    """A worker that declares a GPU, and two that do not."""
    with runs.mixed_cluster("one", "two") as client:
        yield client


@pytest.fixture
def session(mixed: Client) -> Iterator[Session]:
    found = Session(mixed, "mixed")
    yield found
    found.close()


def test_runs_on_gpus_leave_the_other_workers_out(
    mixed: Client, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "on_every_worker", lambda self, *_: [PRESENT for _ in self.workers])
    execution = session.execution_on("auto")
    monkeypatch.undo()
    capacity = execution.capacity
    assert (capacity.workers, capacity.device_bytes, capacity.helpers, capacity.helper_threads) == (1, 2**30, 2, 4)
    on_cpu = replace(execution, capacity=replace(capacity, device_bytes=0))  # so that tasks load no CuPy
    engine = Engine(session, on_cpu, None)
    processes = mixed.run(os.getpid)
    (own,) = session.workers
    assert set(engine.gather(engine.map("process", os.getpid, [()] * 20))) == {processes[own]}
    session.refresh_workers()
    assert [worker["name"] for worker in session.workers.values()] == ["gpu"]
    others = [a for a in engine.workers_now() if a not in session.workers]
    tasks = engine.on_cpus().start_on("process", os.getpid, [(), ()], others)
    assert engine.gather(tasks) == [processes[address] for address in others]


def test_all_workers_run_if_the_gpu_is_missing(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = replace(PRESENT, missing="it is broken")
    monkeypatch.setattr(Session, "on_every_worker", lambda self, *_: [missing for _ in self.workers])
    execution = session.execution_on("auto")
    assert (execution.capacity.workers, execution.capacity.device_bytes, execution.capacity.helpers) == (3, 0, 0)
    assert not session.needs_gpu
    with pytest.raises(UsageError, match="worker gpu"):
        session.execution_on("gpu")


def test_all_workers_run_on_cpus(session: Session) -> None:
    assert session.execution_on("cpu").capacity.workers == 3


def held(**helpers: float) -> _Workers:
    none: Any = None
    return _Workers({"g1": none, "g2": none, **dict.fromkeys(helpers, none)}, helpers=helpers)


def test_helpers_take_bands_that_do_not_delay_the_end() -> None:
    """Until bands are measured, a helper has the speed of its threads; then its own, and GPUs theirs."""
    workers = held(cpu=0.1)
    assert workers.may_help("cpu", 10, 200)
    assert not workers.may_help("cpu", 11, 200)
    workers.speed = {"g1": 100.0, "g2": 300.0}
    assert workers.may_help("cpu", 10, 200)
    workers.speed["cpu"] = 10.0
    assert workers.may_help("cpu", 10, 400)
    assert not workers.may_help("cpu", 10, 390)
    del workers.held["g1"], workers.held["g2"]
    assert workers.may_help("cpu", 10, 10)
