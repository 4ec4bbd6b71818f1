"""Runs in bands of λ on two workers that share a GPU: carriers, limits, and a killed worker."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from distributed import Client

import runs
from edgemill.pipeline import Result, mine
from edgemill.pipeline.bounding import peel_bands
from edgemill.pipeline.cluster.engine import Engine, Future
from edgemill.pipeline.plan import choice as planning
from edgemill.tasks.verify.result import verify

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _small_graphs_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "LEAST_EDGES", 1)


@contextmanager
def two_workers() -> Iterator[Client]:
    with runs.cluster(n_workers=2, threads_per_worker=2, resources={"GPU": 1}) as client:
        yield client


@pytest.fixture(scope="module")
def standing() -> Iterator[Client]:
    with two_workers() as client:
        yield client


def tables(result: Result) -> list[pa.Table]:
    found = (result.edges, result.vertices, result.hierarchy, result.dn_graphs, result.dn_graph_members)
    return [table.to_table() for table in found]


@pytest.mark.parametrize("carrier", ["mailboxes", "shared-memory", "dask"])
def test_each_carrier(rows: Path, plain: Result, standing: Client, tmp_path: Path, carrier: Any) -> None:
    """With mailboxes the GPUs read each other's memory."""
    result = mine(rows, tmp_path / "out", client=standing, device="gpu", carrier=carrier)
    assert tables(result) == tables(plain)
    bands = result.manifest.bounding.bands
    assert bands is not None
    assert (bands.workers, bands.bands > 1) == (2, True)
    runs.assert_nothing_left(standing)


def test_one_gpu_is_chosen_by_itself(rows: Path, plain: Result, standing: Client, tmp_path: Path) -> None:
    result = mine(rows, tmp_path / "out", client=standing, device="gpu")
    assert tables(result) == tables(plain)
    assert result.manifest.bounding.bands is None


def test_limit_of_time(rows: Path, plain: Result, standing: Client, tmp_path: Path) -> None:
    """λ of each edge is within its interval."""
    how: dict[str, Any] = {"client": standing, "device": "gpu", "carrier": "shared-memory"}
    result = mine(rows, tmp_path / "out", max_seconds=1e-9, **how)
    assert not result.converged
    low, high, exact = (
        runs.column(own, name) for own, name in ((result, "lambda_low"), (result, "lambda_high"), (plain, "lambda"))
    )
    assert all(low[edge] <= lam <= high[edge] for edge, lam in exact.items())
    assert verify(result.path).ok


@pytest.mark.parametrize("carrier", ["mailboxes", "shared-memory"])
@pytest.mark.parametrize("during", ["count-share", "filter", "band", "bands"])
def test_a_killed_worker(
    rows: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, during: str, carrier: Any
) -> None:
    """The other worker goes on."""
    start_on, killed = Engine.start_on, [""]
    with two_workers() as client:
        processes = client.run(os.getpid)

        def start_and_kill(
            engine: Engine, name: str, function: Callable[..., Any], arguments: Sequence[Any], addresses: Sequence[str]
        ) -> list[Future]:
            tasks = start_on(engine, name, function, arguments, addresses)
            if name == during and not killed[0]:
                killed[0] = addresses[-1]
                os.kill(processes[killed[0]], signal.SIGKILL)
            return tasks

        monkeypatch.setattr(Engine, "start_on", start_and_kill)
        result = mine(rows, tmp_path / "out", client=client, device="gpu", carrier=carrier)
    assert killed[0]
    assert tables(result) == tables(plain)


@pytest.mark.parametrize("helping", [False, True])
def test_workers_without_a_gpu(
    rows: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, helping: bool
) -> None:
    """They take no part, or peel bands beside the GPU if they are fast enough together."""
    start_on = Engine.start_on
    peeled: set[str] = set()

    def noted(
        engine: Engine, name: str, function: Callable[..., Any], arguments: Sequence[Any], addresses: Sequence[str]
    ) -> list[Future]:
        peeled.update(addresses if name == "band" else ())
        return start_on(engine, name, function, arguments, addresses)

    monkeypatch.setattr(Engine, "start_on", noted)
    if helping:
        monkeypatch.setattr(planning, "HELP_AT", 0)
        monkeypatch.setattr(peel_bands, "_MOST_BANDS", 4)
        monkeypatch.setattr(peel_bands._Workers, "may_help", lambda *_: True)
    with runs.mixed_cluster("cpu") as client:
        result = mine(rows, tmp_path / "out", client=client, device="auto", carrier="dask")
        runs.assert_nothing_left(client)
    assert tables(result) == tables(plain)
    bands = result.manifest.bounding.bands
    assert (bands is not None) == helping
    assert bands is None or (bands.workers, len(peeled)) == (2, 2)
