"""Calls from several threads, an event loop, a task of Dask and child processes: they work or raise one error, and
leave what belongs to the whole process as it was.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import locale
import logging
import os
import signal
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import current_process
from pathlib import Path
from threading import Barrier
from typing import Any

import dask
import numba
import pyarrow as pa
import pytest
from distributed import Client, LocalCluster

import edgemill
import runs
from edgemill import InputError, OutputLocked, UsageError, mine
from edgemill.pipeline.cluster.connecting import guard
from edgemill.pipeline.cluster.connecting.start import connect
from edgemill.pipeline.settings.models import ClusterSettings

ROWS = [*((a, b) for a in range(6) for b in range(a + 1, 6)), (5, 9), (9, 10)]
HIGHEST = 4
THREADS = 4


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.write_rows(tmp_path_factory.mktemp("rows") / "rows.parquet", ROWS)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A user's, with one worker in this process."""
    options: dict[str, Any] = {"processes": False, "n_workers": 1, "threads_per_worker": 2, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


def of_the_process() -> dict[str, Any]:
    """What all threads of a process share, and a call must leave as it was."""
    umask = os.umask(0o22)
    os.umask(umask)
    known = [logging.getLogger(name) for name in list(logging.root.manager.loggerDict)]
    return {
        "environment": dict(os.environ),
        "configuration of Dask": copy.deepcopy(dask.config.config),
        "levels": {logger.name: (logger.level, logger.propagate, logger.disabled) for logger in known},
        "handlers": {logger.name: [(id(one), one.level) for one in logger.handlers] for logger in known},
        "filters of warnings": list(warnings.filters),
        "signal handlers": [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)],
        "place": (os.getcwd(), umask, locale.setlocale(locale.LC_ALL)),
        "paths": list(sys.path),
        "collector": (gc.isenabled(), gc.get_threshold()),
        "hooks": (sys.excepthook, sys.unraisablehook),
        "threads": (numba.get_num_threads(), pa.cpu_count(), pa.io_thread_count()),
    }


@contextmanager
def unchanged_and_silent(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Within the block, calls change nothing that all threads share, and nothing of Dask is logged."""
    before = of_the_process()
    caplog.clear()
    with caplog.at_level(logging.INFO):
        level = logging.root.level
        yield
        assert logging.root.level == level
    after = of_the_process()
    new = after["levels"].keys() - before["levels"].keys()  # of modules that the calls import
    for what in ("levels", "handlers"):
        after[what] = {name: value for name, value in after[what].items() if name not in new}
    for what, value in before.items():
        assert after[what] == value, what
    assert [(record.name, record.getMessage()) for record in caplog.records] == []


@pytest.fixture
def dask_to_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a script or a notebook that configured logging before Dask was imported."""
    for name in ("distributed", "bokeh", "tornado"):
        monkeypatch.setattr(logging.getLogger(name), "handlers", [])
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)


def highest(*given: Any, **settings: Any) -> int:
    return int(mine(*given, **settings).manifest.lam.max or 0)


@pytest.mark.parametrize("calls", [8, pytest.param(48, marks=pytest.mark.slow)])
def test_calls_in_threads(
    calls: int, rows: Path, tmp_path: Path, dask_to_root: None, caplog: pytest.LogCaptureFixture
) -> None:
    """Some with an output and others without, of λ and of a program, of paths and of frames."""
    highest(rows)  # loads what calls share
    frame = pa.table({"src": [a for a, _ in ROWS], "dst": [b for _, b in ROWS]})
    all_at_once = Barrier(THREADS)

    def call(at: int) -> object:
        if at < THREADS:
            all_at_once.wait()
        match at % 4:
            case 0:
                return highest(rows)
            case 1:
                return highest(frame, tmp_path / f"out-{at}", report=False)
            case 2:
                return edgemill.components(rows).count_rows()
            case _:
                return edgemill.estimate(rows).edges

    with unchanged_and_silent(caplog), ThreadPoolExecutor(THREADS) as threads:
        found = list(threads.map(call, range(calls)))
    assert found == [(HIGHEST, HIGHEST, 8, len(ROWS))[at % 4] for at in range(calls)]


@pytest.mark.slow
def test_worker_processes_of_calls_in_threads(rows: Path, dask_to_root: None, caplog: pytest.LogCaptureFixture) -> None:
    highest(rows, workers=1, device="cpu")
    with unchanged_and_silent(caplog), ThreadPoolExecutor(2) as threads:
        found = [threads.submit(highest, rows, workers=1, device="cpu") for _ in range(4)]
        assert [one.result() for one in found] == [HIGHEST] * 4


def test_one_output_of_two_threads(rows: Path, tmp_path: Path) -> None:
    """The other thread's run ends as that of another process would."""
    together = Barrier(2)

    def call(_: int) -> object:
        together.wait()
        try:
            return highest(rows, tmp_path / "out", report=False)
        except OutputLocked as error:
            return type(error), str(tmp_path / "out") in str(error)

    with ThreadPoolExecutor(2) as threads:
        found = Counter(threads.map(call, range(2)))
    assert found in ({HIGHEST: 1, (OutputLocked, True): 1}, {HIGHEST: 2})
    assert runs.flaws(tmp_path / "out", rows) == []


def test_calls_in_an_event_loop(rows: Path, dask_to_root: None, caplog: pytest.LogCaptureFixture) -> None:
    """In the loop's own thread, as in a cell of a notebook, and beside it in threads of the loop."""
    highest(rows)

    async def three() -> list[int]:
        beside = [asyncio.to_thread(highest, rows) for _ in range(2)]
        return [highest(rows), *await asyncio.gather(*beside)]

    with unchanged_and_silent(caplog):
        assert asyncio.run(three()) == [HIGHEST] * 3


def test_calls_in_tasks_of_dask(rows: Path, client: Client) -> None:
    """In a cluster of the user, also with more calls than its worker has threads."""
    found = client.map(lambda at: highest(rows), range(3), pure=False)
    assert client.gather(found) == [HIGHEST] * 3


@pytest.mark.slow
def test_calls_in_worker_processes_of_dask(rows: Path) -> None:
    def call(workers: int | None) -> object:
        from edgemill import UsageError, mine

        try:
            return mine(str(rows), workers=workers).manifest.lam.max
        except UsageError as error:
            return "workers" in str(error) and "daemonic" in str(error)

    with LocalCluster(n_workers=1, dashboard_address=":0") as cluster, Client(cluster) as own:
        assert own.gather([own.submit(call, None), own.submit(call, 2)]) == [HIGHEST, True]


def test_worker_processes_of_a_daemon(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(current_process()._config, "daemon", True)  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="starts processes"):
        mine(rows, workers=2, device="cpu")


def test_a_cluster_that_does_not_start_leaves_others_alone(monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    """Nor does it change what the process has."""

    def fail(self: Any) -> None:
        raise RuntimeError("Nanny failed to start.")

    before = of_the_process()
    monkeypatch.setattr("distributed.Nanny.instantiate", fail)
    with pytest.raises(edgemill.ClusterLost), connect(ClusterSettings(device="cpu", workers=1)):
        pass
    assert of_the_process() == before
    assert client.submit(int, pure=False).result() == 0


# Child processes

FORKED = """
import json, os, sys, threading, warnings
warnings.simplefilter("ignore")
import edgemill, numba
from distributed import Client, LocalCluster
rows = sys.argv[1]

def call(**settings):
    try:
        return edgemill.mine(rows, **settings).manifest.lam.max
    except edgemill.UsageError as error:
        return str(error)

def forked(**settings):
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writer, json.dumps(call(**settings)).encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as told:
        found = json.loads(told.read() or '"nothing"')
    os.waitpid(child, 0)
    return found

found = {}
found["before the first call"] = forked()
with LocalCluster(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
    with Client(cluster) as client:
        found["beside a client"] = forked()
        found["with the client"] = forked(client=client)
found["here"] = call()
found["layer"] = numba.threading_layer()
found["after a call"] = forked()
found["here again"] = call()
if len(sys.argv) > 2:
    started, over = threading.Event(), threading.Event()
    def pause(run):
        started.set()
        over.wait()
    import edgemill.pipeline.run.full as full
    warm, full.warm_workers = full.warm_workers, pause
    other = threading.Thread(target=call)
    other.start()
    started.wait()
    found["beside a call"] = forked()
    over.set()
    other.join()
print(json.dumps(found))
"""


def forks(rows: Path, layer: str, *more: str) -> dict[str, Any]:
    """What a script finds in processes that it forks."""
    command = [sys.executable, "-c", FORKED, str(rows), *more]
    environment = os.environ | {"NUMBA_THREADING_LAYER": layer}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_forked_processes(rows: Path) -> None:
    """The threads of OpenMP, of Dask and of the client do not survive; nothing waits for them."""
    found = forks(rows, "omp")
    assert (found["before the first call"], found["beside a client"]) == (HIGHEST, HIGHEST)
    assert "make a client in this process" in found["with the client"]
    assert (found["here"], found["here again"], found["layer"]) == (HIGHEST, HIGHEST, "omp")
    assert 'get_context("spawn")' in found["after a call"] and "OpenMP" in found["after a call"]


@pytest.mark.slow
def test_forked_processes_without_openmp(rows: Path) -> None:
    found = forks(rows, "workqueue", "beside a call")
    assert (found["after a call"], found["layer"]) == (HIGHEST, "workqueue")
    assert 'get_context("spawn")' in found["beside a call"] and "another thread" in found["beside a call"]


POOLS = """
import json, multiprocessing, sys, warnings
from concurrent.futures import ProcessPoolExecutor
import edgemill

def call(rows, **settings):
    try:
        return edgemill.mine(rows, **settings).manifest.lam.max
    except edgemill.UsageError as error:
        return str(error)

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    rows, method, first = sys.argv[1:]
    if first == "first":
        call(rows)
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        found = [pool.map_async(call, [rows] * 4).get(200), pool.apply_async(call, (rows,), {"workers": 2}).get(200)]
    with ProcessPoolExecutor(1, context) as executor:
        found.append(executor.submit(call, rows, workers=1, device="cpu").result(200))
    print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("method", "first"), [("fork", "no"), ("forkserver", "first"), ("spawn", "first")])
def test_pools_of_processes(method: str, first: str, rows: Path, tmp_path: Path) -> None:
    script = tmp_path / "pools.py"
    script.write_text(POOLS)
    command = [sys.executable, str(script), str(rows), method, first]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    several, daemon, executor = json.loads(done.stdout)
    assert several == [HIGHEST] * 4 and "daemonic" in daemon and executor == HIGHEST


def test_a_call_is_over_when_it_fails(rows: Path) -> None:
    with pytest.raises(InputError):
        mine(rows.with_name("none.parquet"))
    assert guard._calls.running == 0 and not guard._calls.forked
