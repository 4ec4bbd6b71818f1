"""Runs on clusters whose workers join late, change, or retire: the result is the same."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin

import runs
from edgemill.pipeline import ClusterLost, Result, mine
from edgemill.pipeline.cluster.execution import Execution
from edgemill.pipeline.cluster.session import Session
from edgemill.pipeline.events import Events
from edgemill.tasks.generate import generate
from processes import DASK, started

HOW: dict[str, Any] = {"device": "cpu", "partitions": 4}
HOW["output.report"] = False
SECONDS = 120
Change = Callable[[LocalCluster, Client], None]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawn")
    generate("rmat", str(folder), files=3, seed=4, scale=7, edge_factor=8)
    return folder


@pytest.fixture(scope="module")
def plain(drawn: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return mine(drawn, tmp_path_factory.mktemp("plain") / "out", **HOW)


def assert_equal(result: Result, plain: Result) -> None:
    for one, other in zip(tables(result), tables(plain), strict=True):
        assert one == other
    assert result.manifest.counts == plain.manifest.counts


def tables(result: Result) -> list[pa.Table]:
    found = (result.edges, result.vertices, result.hierarchy, result.dn_graphs, result.dn_graph_members)
    return [table.to_table() for table in found]


class Arrivals(SchedulerPlugin):
    """Counts workers that join, and sets `left` when one leaves."""

    def __init__(self) -> None:
        self.came, self.left = 0, threading.Event()

    def add_worker(self, *_: Any, **__: Any) -> None:
        self.came += 1

    def remove_worker(self, *_: Any, **__: Any) -> None:
        self.left.set()


@contextmanager
def own_cluster(workers: int, processes: bool = False) -> Iterator[tuple[LocalCluster, Client, Arrivals]]:
    arrivals = Arrivals()
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=processes,
            protocol="tcp",
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0", "plugins": [arrivals]},
            silence_logs=50,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield cluster, client, arrivals


def at_events(monkeypatch: pytest.MonkeyPatch, changes: dict[int, Callable[[], None]]) -> Iterator[int]:
    """Make changes at the events with these numbers, among those of finished tasks and exchanges."""
    emit, count = Events.emit, iter(range(10**6))
    done: list[int] = []

    def changing(self: Events, event: str, /, **fields: object) -> None:
        emit(self, event, **fields)
        if event in ("task_done", "exchange") and (number := next(count)) in changes:
            changes[number]()
            done.append(number)

    monkeypatch.setattr(Events, "emit", changing)
    return iter(done)


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_cluster_that_adapts_begins_with_no_worker(
    drawn: Path, plain: Result, tmp_path: Path, processes: bool
) -> None:
    """It starts workers for waiting tasks, and ends idle workers."""
    with own_cluster(0, processes) as (cluster, client, arrivals):
        cluster.adapt(minimum=0, maximum=2, interval="100ms", wait_count=2, target_duration="100ms")
        result = mine(drawn, tmp_path / "out", client=client, **HOW)
    assert arrivals.came >= 1
    assert_equal(result, plain)


@pytest.mark.slow
def test_workers_that_come_late_are_waited_for(
    drawn: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions: list[Session] = []
    made = Session.__init__

    def noted(self: Session, *arguments: Any, **options: Any) -> None:
        made(self, *arguments, **options)
        sessions.append(self)

    monkeypatch.setattr(Session, "__init__", noted)
    with own_cluster(0) as (cluster, client, _):
        with pytest.raises(ClusterLost, match=r"0\.5.*\(cluster\.waiting_seconds\)"):
            mine(drawn, tmp_path / "out", client=client, cluster={"waiting_seconds": 0.5}, **HOW)
        cluster.scale(2)  # which does not wait for them
        result = mine(drawn, tmp_path / "out", client=client, cluster={"least_workers": 2}, **HOW)
        several = {"least_workers": 3, "waiting_seconds": 0.5}
        with pytest.raises(ClusterLost, match=r"2.*3.*\(cluster\.least_workers\).*0\.5"):
            mine(drawn, tmp_path / "other", client=client, cluster=several, **HOW)
        runs.assert_nothing_left(client)
    assert [session.capacity.workers for session in sessions] == [2]
    assert_equal(result, plain)


@pytest.mark.parametrize(
    ("events", "in_waves"),
    [
        pytest.param((2, 9), False, marks=pytest.mark.slow),
        ((12, 18), False),
        pytest.param((6, 18), True, marks=pytest.mark.slow),
    ],
)
def test_a_cluster_that_grows_and_shrinks(
    drawn: Path,
    plain: Result,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    events: tuple[int, int],
    in_waves: bool,
) -> None:
    """From two workers to three, then to one, with results on all of them."""
    if in_waves:
        monkeypatch.setattr("edgemill.pipeline.plan.plan.Plan.in_waves", property(lambda _: True))
    with own_cluster(2) as (cluster, client, arrivals):

        def grow() -> None:
            cluster.scale(3)
            client.wait_for_workers(3, timeout=SECONDS)

        def shrink() -> None:
            arrivals.left.clear()
            cluster.scale(1)
            assert arrivals.left.wait(SECONDS)

        done = at_events(monkeypatch, dict(zip(events, (grow, shrink), strict=True)))
        result = mine(drawn, tmp_path / "out", client=client, **HOW)
    assert [*done] == [*events]
    assert arrivals.came == 3
    assert_equal(result, plain)


@pytest.mark.slow
def test_a_cluster_that_shrinks_before_a_task_of_every_worker(
    drawn: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker is retired before the kernels are compiled on every worker. It is not replaced."""
    choose, wait, asked = Session.execution_on, Client.wait_for_workers, list[int]()

    def after(self: Session, device: str) -> Execution:
        chosen = choose(self, device)
        cluster.scale(1)
        assert arrivals.left.wait(SECONDS)
        return chosen

    def noted(self: Client, n_workers: int, timeout: float | None = None) -> Any:
        asked.append(n_workers)
        return wait(self, n_workers, timeout)

    monkeypatch.setattr(Session, "execution_on", after)
    monkeypatch.setattr(Client, "wait_for_workers", noted)
    with own_cluster(2) as (cluster, client, arrivals):
        result = mine(drawn, tmp_path / "out", client=client, **HOW)
    assert set(asked) == {1}
    assert_equal(result, plain)


@pytest.mark.slow
def test_workers_with_a_lifetime(drawn: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of `dask worker`: one reaches its lifetime during the run and is restarted."""
    with own_cluster(0) as (cluster, client, arrivals), ExitStack() as workers:
        for number, options in enumerate(([], ["--lifetime", "20s", "--lifetime-restart"])):
            common = [cluster.scheduler_address, "--nworkers", "1", "--nthreads", "1", "--no-dashboard"]
            place = ["--local-directory", str(tmp_path / f"worker-{number}")]
            workers.enter_context(started(tmp_path / f"{number}.log", *DASK, "worker", *common, *place, *options))

        def leave() -> None:
            client.wait_for_workers(2, timeout=SECONDS)
            arrivals.left.clear()
            assert arrivals.left.wait(SECONDS)

        done = at_events(monkeypatch, {9: leave})
        result = mine(drawn, tmp_path / "out", client=client, cluster={"least_workers": 2}, **HOW)
        client.wait_for_workers(2, timeout=SECONDS)
    assert [*done] == [9]
    assert arrivals.came >= 3
    assert_equal(result, plain)
