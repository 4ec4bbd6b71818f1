"""Threads of workers: those that run tasks, and those for kernels, which are more on machines with many cores."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import runs
from edgemill.kernels.runtime import threads as kernel_threads_module
from edgemill.pipeline.cluster.connecting.local import threads_of_a_worker
from edgemill.pipeline.cluster.connecting.start import connect
from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.plan.choice import make_plan
from edgemill.pipeline.settings.models import ClusterSettings
from edgemill.pipeline.settings.sources import make_settings
from edgemill.pipeline.stages import task_engine as updating_threads
from edgemill.pipeline.stages.task_engine import ThreadedEngine
from edgemill.tasks.generate import generate


def have_cores(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_threads_module, "cores", lambda: count)


@pytest.mark.parametrize(
    ("cores", "workers", "wanted", "threads"),
    [
        (2, None, None, (2, 2)),
        (16, None, None, (16, 16)),
        (32, None, None, (16, 32)),
        (64, None, None, (16, 48)),
        (64, 2, None, (16, 32)),
        (64, 8, None, (8, 8)),
        (2, 4, None, (1, 1)),
        (64, None, 60, (60, 60)),
        (64, 2, 3, (3, 3)),
    ],
)
def test_threads_by_cores(
    cores: int, workers: int | None, wanted: int | None, threads: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    have_cores(cores, monkeypatch)
    assert threads_of_a_worker(ClusterSettings(workers=workers, threads_per_worker=wanted)) == threads


def test_tasks_share_the_threads_for_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    have_cores(64, monkeypatch)
    with (
        connect(ClusterSettings(device="cpu")) as client,
        closing(Engine.connect(client, "threads").session) as session,
    ):
        engine = Engine.set_up(session, session.execution_on("cpu"))
        assert (engine.capacity.threads, engine.capacity.kernel_threads) == (16, 48)
        each = {tasks: engine.for_tasks(tasks)._call(print, False).kernel_threads for tasks in (1, 2, 5, 16, 1000)}
        assert each == {1: 48, 2: 24, 5: 9, 16: 3, 1000: 3}


def test_workers_of_a_running_cluster_have_as_many_threads_for_kernels() -> None:
    with (
        runs.cluster(n_workers=1, processes=False, threads_per_worker=5) as client,
        closing(Engine.connect(client, "threads").session) as session,
    ):
        assert (session.capacity.threads, session.capacity.kernel_threads) == (5, 5)


def test_the_plan_tells_the_threads_for_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    have_cores(64, monkeypatch)
    generate("rmat", str(tmp_path / "rows"), files=1, seed=1, scale=8)
    capacity = make_plan(make_settings(str(tmp_path / "rows"), str(tmp_path / "out"))).capacity
    assert (capacity.threads, capacity.kernel_threads) == (16, 48)


def test_tasks_of_an_update(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 16 at once."""
    have_cores(64, monkeypatch)
    counts: list[int] = []
    running, most, lock = 0, 0, threading.Lock()
    all_run = threading.Barrier(16)

    @contextmanager
    def kernel_threads(count: int) -> Iterator[int]:
        counts.append(count)
        yield count

    def task(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        if number < 16:
            all_run.wait(30)
        with lock:
            running -= 1
        return number

    monkeypatch.setattr(updating_threads, "kernel_threads", kernel_threads)
    engine = ThreadedEngine("test")
    assert engine.threads == 48
    assert engine.map("tasks", task, [(n,) for n in range(16)]) == list(range(16))
    assert engine.map("more", task, [(n + 16,) for n in range(40)]) == list(range(16, 56))
    assert most == 16 and set(counts) == {3}
    assert engine.map("one", task, [(99,)]) == [99]
    assert counts[-1] == 48
    assert ThreadedEngine("test", 20).capacity.threads == ThreadedEngine("test", 20).threads == 20
