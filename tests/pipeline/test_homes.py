"""Where tasks of a run go that keep their data on one worker, and that one run at a time peels."""

from __future__ import annotations

import os

from distributed import Client, Lock

from edgemill.pipeline.engine import Engine


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
