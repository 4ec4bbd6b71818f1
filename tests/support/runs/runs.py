"""Whole runs on drawn rows, read back as plain Python, and what a cluster must not keep of them."""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster, Nanny, Scheduler, SpecCluster

from edgemill.pipeline import Result
from edgemill.pipeline.cluster.batching import ShortIntervals
from edgemill.pipeline.plan.fit import describe
from edgemill.pipeline.plan.plan import Plan
from edgemill.tasks.publish.result_columns import EDGES, names_of
from edgemill.tasks.verify.result import verify

Edge = tuple[Any, Any]
EDGE_COLUMNS = list(names_of(EDGES, "always", "exact"))
"""Columns of the table of edges of a result with exact λ, after the two of ids."""
_barriers = itertools.count()


def write_rows(path: Path, rows: Iterable[Edge], id_type: pa.DataType | None = None) -> Path:
    """Rows as a Parquet file with the columns src and dst, int64 unless told otherwise."""
    ends = list(zip(*rows, strict=True)) or [(), ()]
    pq.write_table(pa.table([pa.array(end, id_type or pa.int64()) for end in ends], names=["src", "dst"]), path)
    return path


def column(result: Result, name: str) -> dict[Edge, int]:
    """A column of the result's edges, by their two ids as published."""
    table = result.edges.to_table()
    source, target = (table[place].to_pylist() for place in (0, 1))
    return dict(zip(zip(source, target, strict=True), table[name].to_pylist(), strict=True))


def vertex_column(result: Result, name: str) -> dict[Any, int]:
    """A column of the result's vertices, by id."""
    table = result.vertices.to_table()
    return dict(zip(table["id"].to_pylist(), table[name].to_pylist(), strict=True))


def check_intervals(result: Result, plain: Result) -> None:
    """Each interval contains λ."""
    assert not result.converged
    low, high = column(result, "lambda_low"), column(result, "lambda_high")
    exact = column(plain, "lambda")
    assert low.keys() == exact.keys()
    assert all(low[edge] <= lam <= high[edge] for edge, lam in exact.items())
    assert result.manifest.unsettled == sum(low[edge] < high[edge] for edge in low) > 0
    assert verify(result.path).ok


def plan_lines(plan: Plan) -> dict[str, str]:
    """What `edgemill plan` tells, by the name at the start of each line."""
    return dict(line.split(maxsplit=1) for line in describe(plan).splitlines())


def flaws(out: Any, rows: Any = None) -> list[str]:
    """What `verify` finds wrong with a result."""
    return [f"{name}: {detail}" for name, ok, detail in verify(out, rows).checks if not ok]


def assert_nothing_left(client: Client) -> None:
    """No future, no task and no result of a run is left on the cluster, but for what waits for a search for cycles.

    The search takes longer than most runs here, so it is made only where something is left.
    """
    if _left(client):
        gc.collect()
        left = _left(client)
        assert not left, sorted(left)


def _left(client: Client) -> set[str]:
    client.sync(turn)  # the client's loop sends what was released …
    client.run(_all_threads_free)  # … tasks that run are let finish …
    barrier = f"barrier-{next(_barriers)}"  # … and this comes after both, to the scheduler and to the worker
    client.submit(int, key=barrier, pure=False).result()
    kept = set(client.futures) | set(client.run_on_scheduler(_tasks))
    for results in client.run(_results).values():
        kept |= set(results)
    return {str(key) for key in kept if not str(key).startswith("barrier-")}


async def turn() -> None:
    """Ends when the loop has done what was asked of it before."""


async def _all_threads_free(dask_worker: Any) -> None:
    """Ends when every thread of the worker has come to the same place, which one that runs a task does after it."""
    threads = dask_worker.state.nthreads
    place = threading.Barrier(threads)
    waiting = [dask_worker.executors["default"].submit(place.wait) for _ in range(threads)]
    await asyncio.gather(*map(asyncio.wrap_future, waiting))


def _tasks(dask_scheduler: Any) -> list[str]:
    return list(dask_scheduler.tasks)


def _results(dask_worker: Any) -> list[str]:
    return list(dask_worker.data)


@contextmanager
def cluster(**options: Any) -> Iterator[Client]:
    """A client of a LocalCluster with these options, in no test's way."""
    with (
        LocalCluster(
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0", "plugins": [ShortIntervals()]},
            silence_logs=50,
            **options,
        ) as started,
        Client(started, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def mixed_cluster(*others: str) -> Iterator[Client]:
    """A worker with the name gpu that declares a GPU, and `others` that do not."""
    options: dict[str, Any] = {"nthreads": 2, "memory_limit": "2GiB", "dashboard": False, "silence_logs": 50}
    workers = {
        name: {
            "cls": Nanny,
            "options": options
            | ({"resources": {"GPU": 1}} if name == "gpu" else {"env": {"CUDA_VISIBLE_DEVICES": ""}}),
        }
        for name in ("gpu", *others)
    }
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, "host": "127.0.0.1", "port": 0}}
    with (
        SpecCluster(scheduler=scheduler, workers=workers, silence_logs=50) as started,
        Client(started, set_as_default=False) as client,
    ):
        client.wait_for_workers(1 + len(others))
        yield client


def two_processes() -> AbstractContextManager[Client]:
    """A client of two worker processes of a thread each."""
    return cluster(n_workers=2, threads_per_worker=1)
