"""Partitions stay on their workers, and one run at a time peels on a cluster."""

from __future__ import annotations

import os

from distributed import Client, Lock

from edgemill.pipeline.cluster.engine import Engine


def test_a_task_runs_where_its_partition_is_kept(two_workers: Client) -> None:
    assert Engine.connect(two_workers, "elsewhere").partition_workers is None
    engine = Engine.connect(two_workers, "homes", pinned_partitions=2)
    assert engine.partition_workers == [0, 1]
    pids = engine.gather(engine.map("pid", os.getpid, [(), ()], engine.partition_workers))
    assert len(set(pids)) == 2
    futures = engine.map("again", os.path.realpath, [("/proc/self",)] * 4, [1, 0, 1, 0])
    assert engine.gather(futures) == [f"/proc/{pids[place]}" for place in (1, 0, 1, 0)]
    links = engine.map("links", str, [("/proc/self",)] * 2, [0, 0])
    assert engine.peek(links, os.path.realpath, [0, 1]) == [f"/proc/{pid}" for pid in pids]


def test_one_run_at_a_time(two_workers: Client) -> None:
    engine = Engine.connect(two_workers, "alone")
    other = Lock("edgemill-peeling", two_workers.scheduler, two_workers.loop)
    with engine.exclusive("peeling"):
        assert not other.acquire(timeout=0.1)
    with engine.exclusive("peeling"):
        pass
    assert other.acquire(timeout=5)
    other.release()
