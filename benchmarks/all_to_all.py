"""What an exchange of everybody with everybody costs the Dask scheduler: it knows each part as a task.

    python -m benchmarks all_to_all --partitions 4,16,32,64 --workers 2 --repeats 3

Bundles of one number for each receiver go from all to all as those of a run do. The scheduler is a process of its own,
and *scheduler* the processor time that it takes, so that neither the workers nor what else the machine does are in it:
a cluster gets through so many exchanges at best, however many workers it has. *Wall* is the time on these cores.
Medians of the repeats, after one that does not count. *Memory* is what the scheduler's grew by in the first exchange of
so many partitions, which is what it keeps of its tasks, and what Python keeps of that.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from distributed import Client

from benchmarks import machine
from benchmarks.table import markdown, mebibytes, seconds
from edgemill.pipeline.engine import Engine
from edgemill.pipeline.exchange import exchange, send
from edgemill.tasks.messages import Bundle, bundle


@dataclass(frozen=True)
class AllToAll:
    """One exchange of so many partitions, time and again."""

    partitions: int
    scheduler_seconds: list[float]
    wall_seconds: list[float]
    scheduler_bytes: int
    """By which the scheduler grew at most in the exchange before them."""

    @property
    def parts(self) -> int:
        """Parts that are delivered."""
        return self.partitions**2

    @property
    def tasks(self) -> int:
        """Tasks: bundles, their row counts, parts, receivers."""
        return self.parts + 3 * self.partitions


@contextmanager
def cluster(workers: int) -> Iterator[tuple[Client, int]]:
    """A scheduler and workers as processes of their own; gives a client, and the scheduler's process number."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ending:
        file = Path(folder) / "scheduler.json"
        environment = {**os.environ, "PYTHONSAFEPATH": "1", "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error"}

        def start(*arguments: str) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", "dask", *arguments, "--scheduler-file", str(file), "--no-dashboard"]
            process = subprocess.Popen(command, env=environment, cwd=folder, stderr=subprocess.DEVNULL)
            ending.callback(process.wait)
            ending.callback(process.terminate)
            return process

        scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0")
        for _ in range(workers):
            start("worker", "--nthreads", "1", "--host", "127.0.0.1", "--no-nanny")
        with Client(scheduler_file=str(file), set_as_default=False, timeout=60) as client:
            client.wait_for_workers(workers, timeout=60)
            yield client, scheduler.pid


def measure(client: Client, scheduler: int, partitions: int, repeats: int) -> AllToAll:
    """Exchange `repeats` times, after once."""
    before = _taken(scheduler)
    Path(f"/proc/{scheduler}/clear_refs").write_text("5")  # its peak starts again
    _exchange(client, partitions)
    found = AllToAll(partitions, [], [], _taken(scheduler).peak_bytes - before.resident_bytes)
    for _ in range(repeats):
        before, start = _taken(scheduler), time.perf_counter()
        _exchange(client, partitions)
        found.wall_seconds.append(time.perf_counter() - start)
        found.scheduler_seconds.append(_taken(scheduler).cpu_seconds - before.cpu_seconds)
    return found


def _taken(process: int) -> machine.Taken:
    taken = machine.taken_by(process)
    if taken is None:
        raise RuntimeError("the scheduler has ended")
    return taken


def _exchange(client: Client, partitions: int) -> None:
    def post(sender: int) -> Bundle[Any]:
        return bundle(sender, {q: np.zeros(1, np.int64) for q in range(partitions)})

    def count(mail: dict[int, Any]) -> int:
        return len(mail)

    engine = Engine(client, uuid.uuid4().hex)
    sent = send(engine, "post", "all", post, [(p,) for p in range(partitions)])
    received = engine.gather(exchange(engine, "all", sent, count, [()] * partitions))
    assert received == [partitions] * partitions
    engine.abandon()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--partitions", default="4,16,32,64", help="counts, with commas between")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)


HEAD = ("partitions", "parts", "tasks", "scheduler, s", "tasks/s", "wall, s", "memory, MiB")


def row(found: AllToAll) -> list[str]:
    """A line of the table."""
    busy = median(found.scheduler_seconds)
    return [
        str(found.partitions),
        str(found.parts),
        str(found.tasks),
        seconds(busy),
        f"{found.tasks / busy:.0f}" if busy else "",
        seconds(median(found.wall_seconds)),
        mebibytes(found.scheduler_bytes),
    ]


def report(options: argparse.Namespace) -> None:
    """Measure and print."""
    with cluster(options.workers) as (client, scheduler):
        counts = map(int, options.partitions.split(","))
        print(markdown(HEAD, [row(measure(client, scheduler, count, options.repeats)) for count in counts]))
