"""Workers with little memory: results go to the disk and come back; what exceeds the limit ends in one message."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import dask
import pytest

import runs
from edgemill.pipeline import OutOfRoom, Result, mine
from edgemill.pipeline.engine import Engine
from edgemill.tasks.generate import generate
from trials import Trials

MIB = 2**20


def tables(result: Result) -> list[Any]:
    return [result.edges.to_table(), result.vertices.to_table()]


def test_results_go_to_the_disk_and_come_back(rows: Path, tmp_path: Path, trials: Trials) -> None:
    """All of them, between two tasks: the share of memory that they may take is next to nothing."""
    how: dict[str, Any] = {"device": "cpu", "partitions": 4, "checkpoint": {"every_exchanges": 5}}
    plain = mine(rows, tmp_path / "plain", **how)
    scratch = tmp_path / "scratch"

    def spilled(dask_worker: Any) -> float:
        return float(dask_worker.data.cumulative_metrics["disk-write", "bytes"])

    with (
        dask.config.set({"distributed.worker.memory.target": 1e-6}),
        runs.cluster(n_workers=2, threads_per_worker=1, memory_limit="2GB", local_directory=str(scratch)) as client,
    ):
        result = mine(rows, tmp_path / "out", client=client, **how)
        written = client.run(spilled)
        assert len(list(scratch.rglob("storage"))) == 2
    assert min(written.values()) > 0
    assert tables(result) == tables(plain)
    assert not list(scratch.rglob("storage"))
    trials("results wait on the disk", "same")


def test_a_worker_that_exceeds_its_memory(tmp_path: Path, trials: Trials) -> None:
    """Ended by its nanny, in a task that takes four times what it may, until Dask gives the task up."""

    def hog() -> None:
        import threading

        held = [b"x" * MIB for _ in range(1200)]
        threading.Event().wait(60)
        held.clear()

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        runs.cluster(n_workers=1, threads_per_worker=1, memory_limit=300 * MIB) as client,
    ):
        engine = Engine(client, "hog")
        tasks = [engine.submit("hog", hog)]
        with pytest.raises(OutOfRoom, match=r"exceeded their memory 2 times, the last in hog-hog-1.* of 300\.00 MiB: "):
            engine.wait(tasks)
        with pytest.raises(OutOfRoom, match=r"raise partitioning\.count, give workers more memory"):
            engine.gather(tasks)
    trials("a worker exceeds its memory", "refused")


UNPLANNED = """
from edgemill.pipeline import plan
plan.EDGE_BYTES, plan.ROW_BYTES, plan.WORKER_BYTES = 1, 1, 1
from edgemill.pipeline.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "limit", "code"), [(16, 350, 7), (13, 350, 0)])
def test_a_run_that_was_planned_too_small(tmp_path: Path, trials: Trials, scale: int, limit: int, code: int) -> None:
    generate("rmat", tmp_path / "in", files=1, seed=1, scale=scale)
    paths = ["--input", str(tmp_path / "in"), "--output", str(tmp_path / "out"), "--device", "cpu"]
    memory = ["--workers", "1", "--set", f"cluster.memory_limit_bytes={limit * MIB}"]
    found = subprocess.run(
        [sys.executable, "-c", UNPLANNED, "run", *paths, *memory, "--partitions", "1"],
        check=False,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert (found.returncode, (tmp_path / "out").exists()) == (code, not code), found.stderr
    if code:
        first, *_ = found.stderr.splitlines()
        assert first.startswith("error: workers exceeded their memory ")
        assert first.endswith("(cluster.threads_per_worker)")
        assert "Traceback" not in found.stderr
    trials("a worker has less memory than a run takes", "refused" if code else "same")
