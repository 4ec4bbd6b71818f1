"""Runs by shards on two workers that share a GPU: every carrier, and killed workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import pyarrow as pa
import pytest
from distributed import Client

import paced_levels
import runs
from edgemill import kernels
from edgemill.pipeline import Result, UsageError, mine
from edgemill.pipeline.events import Events

pytestmark = pytest.mark.gpu


@contextmanager
def two_workers() -> Iterator[Client]:
    """Two worker processes that report a GPU each."""
    patience = {"distributed.deploy.lost-worker-timeout": 300}  # as in clusters that runs start
    with (
        dask.config.set(patience),
        runs.cluster(n_workers=2, threads_per_worker=1, resources={"GPU": 1}) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def standing() -> Iterator[Client]:
    with two_workers() as client:
        yield client


@contextmanager
def workers_for(carrier: str) -> Iterator[Client]:
    """Two worker processes, with a GPU each where the carrier needs that."""
    if carrier != "nccl":
        with two_workers() as client:
            yield client
        return
    if kernels.device().count < 2:
        pytest.skip("NCCL needs a GPU for each worker, and this machine has one")
    from dask_cuda import LocalCUDACluster

    options: Any = {"dashboard_address": None, "silence_logs": 50, "resources": {"GPU": 1}}
    with (
        LocalCUDACluster(n_workers=2, threads_per_worker=1, **options) as started,
        Client(started, set_as_default=False) as client,
    ):
        yield client


def tables(result: Result) -> list[pa.Table]:
    found = (result.edges, result.vertices, result.hierarchy, result.dn_graphs, result.dn_graph_members)
    return [table.to_table() for table in found]


@pytest.mark.parametrize(
    ("asked", "used"),
    [("auto", "mailboxes"), ("mailboxes", "mailboxes"), ("shared-memory", "shared-memory"), ("dask", "dask")],
)
def test_every_carrier(rows: Path, plain: Result, standing: Client, tmp_path: Path, asked: Any, used: str) -> None:
    result = mine(rows, tmp_path / "out", client=standing, device="gpu", partitions=2, carrier=asked)
    assert tables(result) == tables(plain)
    shards = result.manifest.bounding.shards
    assert shards is not None
    assert (shards.groups, shards.carrier, shards.relayed) == (2, used, "")
    runs.assert_nothing_left(standing)


def test_nccl_needs_a_gpu_for_each_worker(rows: Path, standing: Client, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"two workers have the same GPU|CuPy finds no NCCL"):
        mine(rows, tmp_path / "out", client=standing, device="gpu", partitions=2, carrier="nccl")
    assert not (tmp_path / "out").exists()


def test_nccl_between_two_gpus(rows: Path, plain: Result, tmp_path: Path) -> None:
    with workers_for("nccl") as client:
        result = mine(rows, tmp_path / "out", client=client, device="gpu", partitions=2, carrier="nccl")
    assert tables(result) == tables(plain)
    shards = result.manifest.bounding.shards
    assert shards is not None
    assert (shards.groups, shards.carrier) == (2, "nccl")


@pytest.mark.parametrize("carrier", ["mailboxes", "shared-memory", "dask", "nccl"])
@pytest.mark.parametrize("levels", [1, 4])
def test_a_killed_worker(
    rows: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, carrier: Any, levels: int
) -> None:
    """The run resumes from the last checkpoint once there is another worker."""
    emit, told, killed = Events.emit, [0], [0]
    with workers_for(carrier) as client:
        client.run(paced_levels.shorten_launches)
        pid = next(iter(client.run(os.getpid).values()))

        def kill(self: Events, event: str, /, **fields: object) -> None:
            emit(self, event, **fields)
            told[0] += event == "level"
            if told[0] == levels and not killed[0]:
                killed[0] = pid
                os.kill(pid, signal.SIGKILL)

        monkeypatch.setattr(Events, "emit", kill)
        result = mine(
            rows,
            tmp_path / "out",
            client=client,
            device="gpu",
            partitions=2,
            carrier=carrier,
            checkpoint={"every_seconds": 0.5},
        )
    assert killed == [pid]
    assert tables(result) == tables(plain)
