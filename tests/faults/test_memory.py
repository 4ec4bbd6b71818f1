"""Workers with little memory: results are spilled and read back. A run over the limit ends with one message."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client

import runs
from edgemill.pipeline import ClusterLost, OutOfRoom, Result, make_plan, mine
from edgemill.pipeline.cluster.connecting.start import connect
from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.settings.models import ClusterSettings
from edgemill.pipeline.settings.sources import make_settings
from edgemill.tasks.generate import generate
from edgemill.tasks.shards.carriers.group_file import PREFIX
from in_process import call
from trials import Trials

MIB = 2**20


def tables(result: Result) -> list[Any]:
    return [result.edges.to_table(), result.vertices.to_table()]


def bytes_spilled(client: Client) -> list[float]:
    """Bytes that each worker has spilled."""

    def spilled(dask_worker: Any) -> float:
        return float(dask_worker.data.cumulative_metrics["disk-write", "bytes"])

    return list(client.run(spilled).values())


def cliques(folder: Path, count: int) -> Path:
    """Disjoint cliques of 8, any number of which takes few exchanges, as disks are slow."""
    parameters = {"vertices": 8 * count, "edges": 0, "cliques": count, "clique_size": 8}
    generate("planted-cliques", folder, files=4, seed=1, **parameters)
    return folder


@pytest.mark.slow
def test_results_go_to_the_disk_and_come_back(tmp_path: Path, trials: Trials) -> None:
    """All results are spilled between two tasks, with almost no share of memory for them."""
    rows = cliques(tmp_path / "in", 200)
    how: dict[str, Any] = {"device": "cpu", "partitions": 4}
    how["ingest"] = {"rows_per_block": 500}  # of one block all that follows may stay on one worker
    plain = mine(rows, tmp_path / "plain", **how)
    scratch = tmp_path / "scratch"

    with (
        dask.config.set({"distributed.worker.memory.target": 1e-6}),
        runs.cluster(n_workers=2, threads_per_worker=1, memory_limit="2GB", local_directory=str(scratch)) as client,
    ):
        result = mine(rows, tmp_path / "out", client=client, **how)
        written = bytes_spilled(client)
        assert len(list(scratch.rglob("storage"))) == 2
    assert min(written) > 0
    assert tables(result) == tables(plain)
    assert not list(scratch.rglob("storage"))
    trials("results wait on the disk", "same")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_shards_larger_than_memory(tmp_path: Path, trials: Trials) -> None:
    """Two workers with less memory than their shards need peel with rows in files, within their memory."""
    limit, disk = 480 * MIB, tmp_path / "disk"
    generate("rmat", tmp_path / "in", files=4, seed=1, scale=18, edge_factor=16)
    own: dict[str, Any] = {"workers": 2, "threads_per_worker": 1, "memory_limit_bytes": limit, "device": "cpu"}
    own["local_directory"] = str(disk)
    plan = make_plan(make_settings(str(tmp_path / "in"), str(tmp_path / "out"), cluster=own))
    assert (plan.partitions, plan.shards, plan.on_disk) == (2, 2, True)
    assert plan.worker_bytes < limit < plan.unspilled_bytes

    def most_resident() -> int:
        with open("/proc/self/status") as status:
            return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))

    def open_files() -> list[str]:
        """Open files in the worker's folder, also unlinked ones, without Dask's locks."""
        import os
        from contextlib import suppress

        found = []
        for handle in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                found.append(os.readlink(f"/proc/self/fd/{handle}"))
        return [name for name in found if name.startswith(str(disk)) and "lock" not in name]

    before = set(Path("/dev/shm").glob(f"{PREFIX}*"))
    with connect(ClusterSettings(**own)) as client:
        result = mine(tmp_path / "in", tmp_path / "out", client=client, device="cpu")
        peaks = list(client.run(most_resident).values())
        assert client.get_events("worker-restart-memory") == ()
        assert list(client.run(open_files).values()) == [[], []]
        assert not list(disk.rglob("array-*"))
    assert {path.name for path in disk.rglob("*") if path.is_file()} <= {"global.lock", "purge.lock"}  # Dask's
    assert set(Path("/dev/shm").glob(f"{PREFIX}*")) <= before
    assert max(peaks) < limit
    how = result.manifest.bounding.shards
    assert how is not None and (how.groups, how.shards, how.carrier) == (2, 2, "shared-memory")
    assert tables(result) == tables(mine(tmp_path / "in", tmp_path / "plain", device="cpu"))
    trials("results wait on the disk", "same")


@pytest.mark.slow
def test_strings_that_exceed_the_memory(tmp_path: Path, trials: Trials) -> None:
    """1.1 GB of ids of 800 bytes on a worker of 1 GiB, compared with the same graph with integer ids."""
    texts, integers, limit = tmp_path / "texts", tmp_path / "integers", 1024 * MIB
    texts.mkdir()
    integers.mkdir()
    rng = np.random.default_rng(1)
    for file in range(7):
        ends = rng.integers(0, 2**18, (2, 100_000))
        pq.write_table(pa.table(list(ends), names=["src", "dst"]), integers / f"{file}.parquet")
        columns = [[f"{vertex:06x}".ljust(800, "x") for vertex in end.tolist()] for end in ends]
        pq.write_table(pa.table(columns, names=["src", "dst"]), texts / f"{file}.parquet", row_group_size=10_000)
    own: dict[str, Any] = {"workers": 1, "threads_per_worker": 1, "memory_limit_bytes": limit, "device": "cpu"}
    how: dict[str, Any] = {"partitions": 4, "ingest": {"rows_per_block": 10_000}, "device": "cpu"}

    def most_resident() -> int:
        with open("/proc/self/status") as status:
            return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))

    with (
        # Dask's default. `conftest` lets workers look at their memory once a second, too late to spill in time.
        dask.config.set({"distributed.worker.memory.monitor-interval": "100ms"}),
        connect(ClusterSettings(**own, local_directory=str(tmp_path / "disk"))) as client,
    ):
        result = mine(texts, tmp_path / "out", client=client, **how)
        (written,) = bytes_spilled(client)
        (peak,) = client.run(most_resident).values()
        assert client.get_events("worker-restart-memory") == ()
    assert peak < limit < 7 * 2 * 100_000 * 800
    assert written > 500e6
    assert len(list((tmp_path / "out/edges").iterdir())) > 8  # of the buckets for the memory; the plan has 4
    assert not list((tmp_path / "disk").rglob("storage"))
    plain = mine(integers, tmp_path / "plain", device="cpu")
    for name, ids in (("edges", ["src", "dst"]), ("vertices", ["id"])):
        found, known = getattr(result, name), getattr(plain, name).to_table()
        rows = 0
        for batch in found.to_batches(batch_size=10_000):
            expected = known.slice(rows, batch.num_rows)
            rows += batch.num_rows
            for column in known.column_names:
                values = batch[column].to_pylist()
                if column in ids:
                    assert {len(text) for text in values} == {800}
                    values = [int(text.rstrip("x"), 16) for text in values]
                assert values == expected[column].to_pylist()
        assert rows == known.num_rows
    trials("ids exceed the memory", "same")


def test_a_worker_that_exceeds_its_memory(tmp_path: Path, trials: Trials) -> None:
    """Its nanny ends it in a task that takes four times its memory, until Dask gives up the task."""

    def hog() -> None:
        import threading

        held = [b"x" * MIB for _ in range(1200)]
        threading.Event().wait(60)
        held.clear()

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        runs.cluster(n_workers=1, threads_per_worker=1, memory_limit=300 * MIB) as client,
    ):
        engine = Engine.connect(client, "hog")
        tasks = [engine.submit("hog", hog)]
        with pytest.raises(OutOfRoom, match=r"exceeded.*2.*300\.00"):
            engine.wait(tasks)
        with pytest.raises(OutOfRoom, match=r"raise partitioning\.count"):
            engine.gather(tasks)
        advice = replace(engine.execution, memory_advice="start more workers")  # as of a run by shards
        engine = Engine.set_up(engine.session, advice)
        with pytest.raises(OutOfRoom, match="start more"):
            engine.gather(tasks)
    trials("a worker exceeds its memory", "refused")


def test_a_worker_that_dies_of_something_else(trials: Trials) -> None:
    def die() -> None:
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        runs.cluster(n_workers=1, threads_per_worker=1) as client,
    ):
        engine = Engine.connect(client, "dead")
        with pytest.raises(ClusterLost, match="died while"):
            engine.gather([engine.submit("dead", die)])
    trials("a task kills every worker", "refused")


def test_a_run_that_cannot_fit(rows: Path, tmp_path: Path, trials: Trials) -> None:
    """It is refused before the input is read, with both numbers and advice."""
    command = ["run", "--input", str(rows), "--output", str(tmp_path / "out"), "--device", "cpu"]
    found = call(*command, "--set", "cluster.memory_limit_bytes=100000000")
    assert (found.exit_code, (tmp_path / "out").exists()) == (7, False)
    assert re.match(r"Error: a worker needs .* MiB .*has 95\.37 MiB: ", found.stderr)
    assert '"event": "stage' not in (tmp_path / "out.failed.log.jsonl").read_text()
    trials("a worker has less memory than a run takes", "refused")


UNPLANNED = """
from edgemill.pipeline.plan import plan
from edgemill.pipeline.stages import ingesting
plan.EDGE_BYTES = plan.COPY_BYTES = plan.VERTEX_BYTES = ingesting.ROW_BYTES = plan.WORKER_BYTES = 1
plan.WORKER_EDGE_BYTES = plan.WORKER_COPY_BYTES = plan.WORKER_VERTEX_BYTES = 1
from edgemill.pipeline.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "limit", "code"), [(17, 350, 7), (13, 350, 0)])
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
        assert first.startswith("Error: workers exceeded their memory ")
        assert first.endswith("(--set cluster.threads_per_worker=…)")
        assert "Traceback" not in found.stderr
    trials("a worker has less memory than a run takes", "refused" if code else "same")
