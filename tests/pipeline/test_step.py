"""Runs that peel several partitions in step, with stand-ins for the GPUs' kernels, and where their tasks run."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from distributed import Client, Lock

import peers_here
from edgemill.pipeline import ClusterLost, OutOfRoom, UsageError, mine
from edgemill.pipeline.config import make_settings
from edgemill.pipeline.engine import Capacity, Engine
from edgemill.pipeline.peeling import wait_for_all
from edgemill.pipeline.plan import Plan
from edgemill.pipeline.planning import open_input, plan_run
from edgemill.tasks.generate import generate

GIGABYTE = 10**9


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("rmat", str(folder), files=3, seed=4, scale=9, edge_factor=8)
    return folder


@pytest.fixture
def in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    peers_here.stand_in(monkeypatch)
    monkeypatch.setattr(Plan, "can_peel_in_step", True)
    peers_here.plan_partitions(monkeypatch)


@pytest.mark.usefixtures("in_step")
@pytest.mark.parametrize("method", ["range", "hash"])
def test_the_same_result(rows: Path, tmp_path: Path, method: str) -> None:
    alone = mine(rows, tmp_path / "alone", device="cpu", partitions=1)
    parted = mine(rows, tmp_path / "parted", device="cpu", partitioning={"count": 3, "method": method})
    assert parted.edges.to_table() == alone.edges.to_table()
    manifest = parted.manifest
    assert (manifest.bounding.method, manifest.bounding.exchanges) == ("peel", 1)
    assert manifest.bounding.steps == alone.manifest.bounding.steps
    (exchange,) = manifest.exchanges
    assert exchange.messages == sum(partition.ghost for partition in manifest.partitions)
    assert (exchange.settled, exchange.unsettled) == (manifest.counts.edges, 0)


@pytest.mark.usefixtures("in_step")
def test_without_time(rows: Path, tmp_path: Path) -> None:
    bounding = {"method": "peel", "max_seconds": 1e-9}
    result = mine(rows, tmp_path / "out", device="cpu", partitions=3, bounding=bounding)
    assert not result.converged
    assert pq.read_schema(next((tmp_path / "out").rglob("*.parquet"))).get_field_index("lambda") == -1


@pytest.mark.parametrize(
    ("capacity", "partitions", "can"),
    [
        (Capacity(1, 4, 0, GIGABYTE, True, True), 3, True),
        (Capacity(1, 4, 0, 300_000, True, True), 3, False),  # together they do not fit
        (Capacity(1, 4, 0, GIGABYTE, True, True), 33, False),  # more than a post has room for
        (Capacity(4, 4, 0, GIGABYTE, True), 4, True),
        (Capacity(4, 4, 0, GIGABYTE, True), 5, False),
        (Capacity(4, 4, 0, GIGABYTE, False), 4, False),  # on several machines
    ],
)
def test_when(rows: Path, capacity: Capacity, partitions: int, can: bool) -> None:
    settings = make_settings(str(rows), "out", partitions=partitions)
    plan = plan_run(settings, open_input(settings), capacity)
    assert plan.can_peel_in_step is can
    assert plan.method == ("peel" if can else "band")
    settings = make_settings(str(rows), "out", partitions=partitions, method="peel")
    refusal = pytest.raises(
        UsageError, match=rf"bounding.method=peel works on one partition, .* not on {partitions} here"
    )
    with nullcontext() if can else refusal:
        assert plan_run(settings, open_input(settings), capacity).method == "peel"


@pytest.mark.parametrize("method", ["auto", "peel", "band", "fixpoint"])
def test_cpus_peel_shards_where_gpus_peel_partitions(rows: Path, method: str) -> None:
    settings = make_settings(str(rows), "out", partitions=3, method=method)
    source = open_input(settings)
    plan = plan_run(settings, source, Capacity(4, 2, 0))
    by_shards = method in ("auto", "peel")
    assert (plan.partitions, plan.shards, plan.can_peel_in_step) == (3, 6 if by_shards else 0, False)
    assert plan.method == ("peel" if by_shards else method)
    assert plan_run(settings, source, Capacity(4, 2, 0, GIGABYTE, True)).shards == 0


def test_peel_chooses_as_many_partitions_as_it_can(rows: Path) -> None:
    settings = make_settings(str(rows), "out", method="peel")
    source = open_input(settings)
    assert plan_run(settings, source, Capacity(4, 4, 0, GIGABYTE, True)).partitions == 4
    assert plan_run(settings, source, Capacity(4, 4, 0)).partitions == 1


def test_a_task_runs_where_its_partition_is_kept(two_workers: Client) -> None:
    assert Engine(two_workers, "elsewhere").homes is None
    engine = Engine(two_workers, "homes")
    engine.keep_apart(2)
    assert engine.homes == [0, 1]
    pids = engine.gather(engine.map("pid", os.getpid, [(), ()], engine.homes))
    assert len(set(pids)) == 2
    futures = engine.map("again", os.path.realpath, [("/proc/self",)] * 4, [1, 0, 1, 0])
    assert engine.gather(futures) == [f"/proc/{pids[place]}" for place in (1, 0, 1, 0)]
    links = engine.map("links", str, [("/proc/self",)] * 2, [0, 0])
    assert engine.peek(links, os.path.realpath, [0, 1]) == [f"/proc/{pid}" for pid in pids]


def test_one_run_at_a_time(two_workers: Client) -> None:
    engine = Engine(two_workers, "alone")
    other = Lock("edgemill-peeling", two_workers.scheduler, two_workers.loop)
    with engine.alone("peeling"):
        assert not other.acquire(timeout=0.1)
    with engine.alone("peeling"):
        pass
    assert other.acquire(timeout=5)
    other.release()


def test_the_first_to_fail_says_why(two_workers: Client) -> None:
    """What the others lose by it is not what the user is told."""

    def fail(name: str) -> None:  # in here, as workers cannot import this module
        raise ClusterLost("planted") if name == "lost" else OutOfRoom("planted")

    engine = Engine(two_workers, "why")
    lost, first = (engine.submit(name, fail, name) for name in ("lost", "first"))
    with pytest.raises(OutOfRoom, match="planted"):
        wait_for_all(engine, [lost, first])
    with pytest.raises(ClusterLost, match="planted"):
        wait_for_all(engine, [engine.submit("again", fail, "lost")])
    engine.abandon()
