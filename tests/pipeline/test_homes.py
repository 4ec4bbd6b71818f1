"""Where tasks of a run go that keep their data on one worker, and how those end that wait for each other."""

from __future__ import annotations

import os

import pytest
from distributed import Client, Lock

from edgemill.pipeline import ClusterLost, OutOfRoom
from edgemill.pipeline.engine import Engine
from edgemill.pipeline.peeling import wait_for_all


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
