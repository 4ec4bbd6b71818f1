"""A worker with another version of edgemill, or none, is refused with both versions in the message."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from socket import create_server
from typing import Any

import dask
import pytest
from distributed import Client, Scheduler, Worker
from distributed.versions import get_versions

import runs
from edgemill.pipeline import ClusterLost, UsageError, __version__, mine
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.cluster.versions import version_difference, version_error
from edgemill.pipeline.cluster.watchdog import workers_of
from processes import DASK, ended, started

OTHER, NONE = "9.9.9", ""
PRELOAD = "edgemill.pipeline.preload"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A worker of this version, on a port."""
    with runs.cluster(n_workers=1, processes=False, protocol="tcp", threads_per_worker=1) as client:
        yield client


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.write_rows(tmp_path_factory.mktemp("rows") / "rows.parquet", [(0, 1), (1, 2), (0, 2)])


def claiming(folder: Path, version: str) -> str:
    """A folder for PYTHONPATH in which a process finds edgemill of that version, or none."""
    about = folder / f"edgemill-{version or 0}.dist-info"
    about.mkdir(parents=True)
    if version:
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: edgemill\nVersion: {version}\n")
    else:
        (folder / "edgemill").mkdir()
        (folder / "edgemill" / "__init__.py").write_text("raise ModuleNotFoundError('No module named edgemill')")
    return str(folder)


@contextmanager
def another(client: Client, folder: Path, version: str) -> Iterator[str]:
    """A worker process that claims another version, on the client's cluster; gives its address."""
    before = set(addresses(client))
    words = [*DASK, "worker", address_of(client), "--no-nanny", "--no-dashboard", "--nthreads", "1"]
    words += ["--local-directory", str(folder)]
    with started(folder / "log", *words, PYTHONPATH=claiming(folder / "path", version)):
        client.wait_for_workers(len(before) + 1, timeout=60)
        (found,) = set(addresses(client)) - before
        yield found
    while set(addresses(client)) != before:
        client.sync(runs.turn)


def addresses(client: Client) -> list[str]:
    return list(workers_of(client))


def address_of(client: Client) -> str:
    return str(client.scheduler_info()["address"])


@pytest.mark.parametrize("version", [OTHER, pytest.param(NONE, marks=pytest.mark.slow)])
def test_a_worker_of_another_release(client: Client, rows: Path, tmp_path: Path, version: str) -> None:
    """At the start of a run, and by tasks of a run that has already started."""
    text = (
        f"edgemill {OTHER}, and .*edgemill {__version__}" if version else f"no edgemill, and .*edgemill {__version__}"
    )
    with another(client, tmp_path, version) as address:
        refused = rf"the worker at {address} .*has {text}: install the same release everywhere"
        with pytest.raises(UsageError, match=refused):
            mine(rows, tmp_path / "out", client=client)
        engine = Engine.connect(client, "late")
        if version:
            with pytest.raises(UsageError, match=refused):
                engine.on_every_worker(int)
        else:  # it leaves, as it cannot read what it is sent, and the task is done elsewhere
            place = addresses(client).index(address)
            assert engine.gather(engine.map("task", int, [()], at=[place])) == [0]
        engine.session.release_all()
    assert not (tmp_path / "out").exists()
    runs.assert_nothing_left(client)
    assert mine(rows, tmp_path / "out", client=client).converged


def test_the_exit_code(client: Client, rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with another(client, tmp_path, OTHER), pytest.raises(SystemExit) as code:
        where = ["--output", str(tmp_path / "out"), "--scheduler", address_of(client)]
        edgemill(["run", "--input", str(rows), *where], standalone_mode=True)
    assert code.value.code == 2
    assert re.search(rf"edgemill {OTHER}.* here is edgemill {__version__}", capsys.readouterr().err)


def test_a_scheduler_of_another_release_is_not_waited_at(
    client: Client, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers with the preload never join it."""
    theirs = get_versions(["edgemill"])
    theirs["packages"]["edgemill"] = OTHER
    cluster: Any = client.cluster
    monkeypatch.setitem(cluster.scheduler.handlers, "versions", lambda packages=None: theirs)
    waiting: dict[str, Any] = {
        "scheduler": address_of(client),
        "cluster.least_workers": 99,
        "cluster.waiting_seconds": 0.5,
    }
    with pytest.raises(UsageError, match=rf"{OTHER}.*here"):
        mine(rows, tmp_path / "out", **waiting)
    monkeypatch.undo()
    with pytest.raises(ClusterLost, match=r"of 99 workers \(cluster\.least_workers\) after 0\.5 s"):
        mine(rows, tmp_path / "out", **waiting)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, None),
        ({"numpy": "2.0.1", "cloudpickle": "1.0"}, None),
        ({"python": "3.10.9.final.0"}, r"has python 3\.10\.9.*, and here is python 3\.1"),
        ({"numpy": "1.26.4"}, r"has numpy 1\.26\.4, and here is numpy 2\."),
        ({"distributed": "2020.1.0"}, r"has distributed 2020\.1\.0, and here is distributed"),
        ({"dask": None}, "has no dask, and here is dask 20"),
    ],
)
def test_what_must_agree(changes: dict[str, str | None], text: str | None) -> None:
    ours: Any = get_versions(["edgemill"])
    theirs = {"packages": ours["packages"] | changes}
    error = version_error(ours, {"tcp://a:1": ours, "tcp://b:2": theirs, "tcp://c:3": theirs})
    if text is None:
        assert error is None
        return
    with pytest.raises(UsageError, match=rf"tcp://b:2 {text}.*\(1"):
        raise error or AssertionError
    with pytest.raises(UsageError, match=f"the Dask scheduler {text}"):
        raise version_error(theirs, {}) or AssertionError
    assert version_difference(ours) is None


def test_the_preload_warms_before_the_scheduler_knows_of_the_worker(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = addresses(client)
    seen: list[Any] = []

    def warm(on_gpu: bool) -> float:
        seen.append((on_gpu, addresses(client)))
        return 0.0

    monkeypatch.setattr("edgemill.pipeline.preload.compile_kernels", warm)

    async def come_and_go() -> list[str]:
        options: dict[str, Any] = {"nthreads": 1, "dashboard": False, "preload": [PRELOAD], "resources": {"GPU": 1}}
        async with Worker(address_of(client), **options) as worker:
            scheduler: Any = client.scheduler
            there = await scheduler.identity(n_workers=-1)
            assert worker.address in there["workers"]
            return list(there["workers"])

    assert len(client.sync(come_and_go)) == len(before) + 1
    assert seen == [(True, before)]


def test_the_preload_waits_for_the_scheduler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It logs warnings meanwhile. The worker joins as soon as the scheduler runs."""
    monkeypatch.setattr("edgemill.pipeline.preload.compile_kernels", lambda on_gpu: 0.0)
    with closing(create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    said = Heard()
    log = logging.getLogger("distributed.edgemill")
    log.addHandler(said)
    log.setLevel(logging.INFO)  # whatever other clusters of this process have silenced

    async def story() -> None:
        options: dict[str, Any] = {"nthreads": 1, "dashboard": False, "local_directory": str(tmp_path)}
        worker = Worker(f"tcp://127.0.0.1:{port}", preload=[PRELOAD], **options)
        comes = asyncio.ensure_future(worker.start())
        try:
            await asyncio.wait_for(said.first.wait(), 60)
            assert not comes.done()
            async with Scheduler(host="127.0.0.1", port=port, dashboard_address="127.0.0.1:0") as scheduler:
                await comes
                assert list(scheduler.workers) == [worker.address]
                await worker.close()
        finally:
            comes.cancel()

    try:
        with dask.config.set({"distributed.comm.timeouts.connect": "50ms"}):
            asyncio.run(story())
    finally:
        log.removeHandler(said)
        log.setLevel(logging.NOTSET)
    warning, ready = said.texts
    assert warning.startswith("waiting for the scheduler")
    assert f" tcp://127.0.0.1:{port}: Timed out" in warning
    assert ready.startswith("edgemill's kernels are ready")


class Heard(logging.Handler):
    """Collects log records, and signals the first."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.first = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        self.first.set()


def test_the_preload_warms_all_that_a_run_calls() -> None:
    from edgemill.kernels.runtime.warm import warm
    from edgemill.pipeline.run.compiling import compile_kernels, compile_updates

    assert compile_kernels(on_gpu=False) > 0 and compile_updates() > 0
    assert [warm(method, 2, text=True).compiled for method in ("peel", "band", "fixpoint")] == [0, 0, 0]


@pytest.mark.parametrize("nanny", ["--no-nanny", pytest.param("--nanny", marks=pytest.mark.slow)])
@pytest.mark.parametrize("version", [OTHER, pytest.param(NONE, marks=pytest.mark.slow)])
def test_the_preload_refuses(client: Client, tmp_path: Path, version: str, nanny: str) -> None:
    before = addresses(client)
    path = claiming(tmp_path, version)
    words = ["worker", address_of(client), nanny, "--no-dashboard", "--preload", PRELOAD]
    done = ended(*DASK, *words, "--local-directory", str(tmp_path), PYTHONPATH=path)
    assert done.returncode == (2 if version and nanny == "--no-nanny" else 1)
    text = f"has edgemill {__version__}, and here is edgemill {OTHER}" if version else "No module named edgemill"
    assert text in done.stderr
    assert addresses(client) == before


def test_the_preload_is_for_workers(tmp_path: Path) -> None:
    words = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--preload", PRELOAD]
    done = ended(*DASK, *words)
    assert done.returncode == 2
    assert "edgemill.pipeline.preload" in done.stderr
