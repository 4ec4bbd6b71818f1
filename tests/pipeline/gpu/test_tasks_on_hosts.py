"""On workers with GPUs: the kernel threads of tasks whose arrays are in host memory, as those of text ids are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client
from numba.core.config import NUMBA_NUM_THREADS

import drive
import runs
from edgemill.kernels.runtime.threads import numba_is_loaded, threads_now
from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.cluster.session import Session
from edgemill.pipeline.events import Events
from edgemill.pipeline.stages.extracting import KnownLambda, extract
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.generate import generate
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.publish.lambda_columns import BucketResults

HOST, DEVICE = MemorySpace.HOST, MemorySpace.DEVICE
THREADS = 4


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with runs.cluster(n_workers=1, processes=False, threads_per_worker=THREADS, resources={"GPU": 1}) as client:
        yield client


@pytest.fixture
def engine(client: Client) -> Iterator[Engine]:
    """The engine of a worker that says it has a GPU. None is used here: tasks on CPUs have the same threads."""
    with closing(Engine.connect(client, "threads").session) as session:
        on_cpus = session.execution_on("cpu")
        capacity = replace(on_cpus.capacity, device_bytes=2**36)
        yield Engine(session, replace(on_cpus, capacity=capacity), None)


@pytest.mark.parametrize(("tasks", "shared"), [(1, THREADS), (2, THREADS // 2), (16, 1)])
def test_a_task_that_has_the_gpu_has_all_threads(engine: Engine, tasks: int, shared: int) -> None:
    """No other one runs beside it. Tasks on the host's arrays run beside each other, and share them."""
    engine = engine.for_tasks(tasks)
    threads = [own._call(print, False).kernel_threads for own in (engine.for_partitions(), engine.for_partitions(HOST))]
    assert threads == [THREADS, shared]
    assert [bool(own.for_partitions(DEVICE)._resources) for own in (engine, engine.on_cpus())] == [True, False]
    assert engine.for_partitions(HOST)._resources is None
    assert engine.for_partitions().in_background()._call(print, False).kernel_threads == 1


def test_a_task_gets_the_threads(engine: Engine) -> None:
    numba_is_loaded()  # a thread that loads it itself would set its number only then
    calls = [()] * 16
    alone = engine.for_tasks(16).for_partitions().map("threads", threads_now, calls)
    beside = engine.for_tasks(16).for_partitions(HOST).map("threads", threads_now, calls)
    assert engine.gather(alone) == [min(THREADS, NUMBA_NUM_THREADS)] * 16
    assert engine.gather(beside) == [1] * 16


def test_groups_on_the_host_are_extracted_by_all_threads(
    engine: Engine, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks of buckets run at once, each with its share of the threads; the one that merges them has all."""
    generate("rmat", str(tmp_path), files=1, seed=1, scale=8)
    ingested = drive.ingest(open_source(str(tmp_path)), buckets=THREADS)
    results = []
    for bucket in ingested.edges:
        level = (np.arange(len(bucket)) % 3).astype(np.int32)
        results.append(BucketResults(bucket.bucket, level, level, level))
    expected = drive.extract(ingested, results)
    started: dict[str, tuple[int, Any]] = {}
    start = Session.start

    def recording(session: Session, name: str, call: Any, *given: Any, **more: Any) -> Any:
        started[name] = call.kernel_threads, more["resources"]
        return start(session, name, call, *given, **more)

    monkeypatch.setattr(Session, "start", recording)
    edges, degrees, own = (
        client.scatter(list(part), hash=False) for part in (ingested.edges, ingested.degrees, results)
    )
    found = extract(engine, Events(), KnownLambda(edges, degrees, own, ingested.starts), 1, HOST)
    assert found.record == expected.record
    assert started["grow-tree"] == started["send-outline"] == (1, None)
    threads = {count for count, resources in started.values() if resources is None}
    assert len(threads) == 2 and max(threads) == engine.capacity.host_threads == THREADS
    assert all(resources is None for _, resources in started.values())
