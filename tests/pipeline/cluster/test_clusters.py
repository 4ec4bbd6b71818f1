"""The result is the same in this process, in worker processes and on a running scheduler."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from socket import create_server
from types import SimpleNamespace
from typing import Any, Literal

import dask
import pyarrow as pa
import pytest
from distributed import Client, LocalCluster
from distributed.system import memory_limit

import runs
from backends import kernel_types
from edgemill.kernels.runtime.device import Device
from edgemill.kernels.runtime.warm import warm
from edgemill.pipeline import ClusterLost, Result, UsageError, mine
from edgemill.pipeline.cluster.connecting.local import has_gpu_workers, host_memory_bytes
from edgemill.pipeline.cluster.connecting.start import connect
from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.cluster.execution import Execution
from edgemill.pipeline.cluster.watchdog import workers_of
from edgemill.pipeline.settings.models import ClusterSettings
from edgemill.tasks.generate import generate
from edgemill.tasks.shards import warm_shards

Mine = Callable[..., Result]
PLAIN: dict[str, Any] = {"output.report": False}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("rmat", str(folder), files=3, seed=4, scale=9, edge_factor=8)
    return folder


def address(client: Client) -> str:
    return str(client.scheduler_info()["address"])


def tables(result: Result) -> tuple[pa.Table, pa.Table]:
    return result.edges.to_table(), result.vertices.to_table()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["band", "fixpoint"])
def test_worker_processes_started_here(tmp_path: Path, mined: Mine, rows: Path, method: Any) -> None:
    result = mine(rows, tmp_path / "out", workers=2, method=method)
    here = mined(rows, method=method)
    assert tables(result) == tables(here)
    assert [output.sha256 for output in result.manifest.outputs] == [output.sha256 for output in here.manifest.outputs]
    assert result.manifest.partitions == here.manifest.partitions
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


@pytest.mark.parametrize(
    "bounding",
    [
        {},
        pytest.param({"method": "band"}, marks=pytest.mark.slow),
        pytest.param({"method": "fixpoint"}, marks=pytest.mark.slow),
        pytest.param({"method": "fixpoint", "operator": "tridn"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_scheduler_by_address(
    tmp_path: Path, mined: Mine, rows: Path, two_workers: Client, bounding: dict[str, Any]
) -> None:
    result = mine(rows, tmp_path / "out", scheduler=address(two_workers), bounding=bounding, **PLAIN)
    assert tables(result) == tables(mined(rows, partitions=1))
    runs.assert_nothing_left(two_workers)


@pytest.mark.slow
def test_a_scheduler_by_its_file(tmp_path: Path, mined: Mine, rows: Path, two_workers: Client) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"type": "Scheduler", "address": address(two_workers)}))
    result = mine(rows, tmp_path / "out", scheduler_file=file, partitions=3, **PLAIN)
    assert tables(result) == tables(mined(rows, partitions=1))
    runs.assert_nothing_left(two_workers)


def test_one_partition_on_several_workers(tmp_path: Path, mined: Mine, rows: Path, two_workers: Client) -> None:
    result = mine(rows, tmp_path / "out", client=two_workers, partitions=1, **PLAIN)
    assert result.manifest.bounding.method == "peel"
    assert tables(result) == tables(mined(rows, partitions=1))
    runs.assert_nothing_left(two_workers)


@pytest.mark.parametrize(
    "methods",
    [["auto"], pytest.param(["auto", "band", "fixpoint"], marks=pytest.mark.slow)],
    ids=" ".join,
)
def test_arrays_that_travelled_are_of_the_types_that_were_warmed(
    tmp_path: Path, rows: Path, methods: list[Any]
) -> None:
    with runs.two_processes() as client:
        for method in methods:
            shards: dict[str, Any] = {"partitions": 5} if method == "auto" else {}
            client.run(warm, "peel" if method == "auto" else method, 5)
            if shards:
                client.run(warm_shards, 1)
            before = client.run(kernel_types)
            mine(rows, tmp_path / method, client=client, method=method, **shards, **PLAIN)
            assert client.run(kernel_types) == before


def test_workers_are_there_while_the_client_forgets_them(
    mined: Mine, rows: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every two seconds its copy of the workers is replaced by an empty one."""
    monkeypatch.setattr(Client, "scheduler_info", lambda self, n_workers=5: {"workers": {}})
    assert mined(rows, partitions=2).converged


@pytest.mark.parametrize("workers", [None, 2])
def test_a_folder_that_nothing_can_be_spilled_to(rows: Path, tmp_path: Path, workers: int | None) -> None:
    (tmp_path / "file").touch()
    folder = str(tmp_path / "file" / "x")
    unusable = rf"{folder} cannot be used: Not a directory; name another folder"
    with pytest.raises(UsageError, match=rf"cluster\.local_directory {unusable}"):
        mine(rows, tmp_path / "out", cluster={"local_directory": folder, "workers": workers})
    with dask.config.set({"temporary-directory": folder}):
        with pytest.raises(UsageError, match=rf"temporary-directory \(DASK_TEMPORARY_DIRECTORY\) {unusable}"):
            mine(rows, tmp_path / "out", workers=workers)
        with connect(ClusterSettings(device="cpu", local_directory=str(tmp_path))):
            pass


def test_no_folder_for_temporary_files(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    with pytest.raises(UsageError, match=r"temporary files \(TMPDIR\).*: No such file"):
        mine(rows, tmp_path / "out")


def test_an_unreadable_scheduler_file(tmp_path: Path, rows: Path) -> None:
    with pytest.raises(UsageError, match=r"scheduler_file: .*no file .*absent\.json"):
        mine(rows, tmp_path / "out", scheduler_file=tmp_path / "absent.json")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "address",
    [
        "",
        "host",
        "tcp://host",
        "tls://host:port",
        "tcp://host:87860",
        "tcp://:8786",
        "tcp://a:1/",
        "http://a:1",
        "x://a:1",
    ],
)
def test_no_address(tmp_path: Path, rows: Path, address: str) -> None:
    """It is reported at once, and no client is left."""
    with pytest.raises(
        UsageError, match=rf"^scheduler: '{address}' is not the address of a scheduler.*tcp://host:8786"
    ):
        mine(rows, tmp_path / "out", scheduler=address)
    assert not (tmp_path / "out").exists()


def test_what_is_no_scheduler(two_workers: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker, a port that accepts connections and sends nothing, and a closed port."""
    worker = next(iter(workers_of(two_workers)))
    with (
        pytest.raises(UsageError, match=rf"cluster\.scheduler: .*{worker} is a Dask worker"),
        connect(ClusterSettings(scheduler=worker)),
    ):
        pass
    monkeypatch.setattr("edgemill.pipeline.cluster.connecting.connect._ANSWER_SECONDS", 0.1)
    monkeypatch.setattr("edgemill.pipeline.cluster.connecting.tls._PROBE_SECONDS", 0.1)
    with closing(create_server(("127.0.0.1", 0))) as silent:
        mute = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        lost = rf"no Dask scheduler answers at {mute}: what listens there gives no answer"
        with pytest.raises(ClusterLost, match=lost), connect(ClusterSettings(scheduler=mute, waiting_seconds=0.1)):
            pass
    monkeypatch.setattr("edgemill.pipeline.cluster.connecting.connect._ANSWER_SECONDS", 60)
    lost = rf"no Dask scheduler answers at {mute}: .*(refused|Timed out trying to connect)"
    with pytest.raises(ClusterLost, match=lost), connect(ClusterSettings(scheduler=mute, waiting_seconds=0.1)):
        pass


def test_a_scheduler_without_workers(tmp_path: Path, rows: Path) -> None:
    with (
        LocalCluster(
            n_workers=0,
            processes=False,
            protocol="tcp",
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        ) as empty,
        Client(empty, set_as_default=False) as client,
    ):
        for where in ({"scheduler": empty.scheduler_address}, {"client": client}):
            with pytest.raises(ClusterLost, match=r"1.*\(cluster\.waiting_seconds\)"):
                mine(rows, tmp_path / "out", cluster={"waiting_seconds": 1}, **where)


class Begun(Exception):
    """Raised where workers would start."""


@pytest.mark.parametrize("given", ["json", ["json"]])
def test_what_workers_load_besides(monkeypatch: pytest.MonkeyPatch, given: str | list[str]) -> None:
    """Dask's environment variable is one name, its file has a list."""

    def start(*_: object, **__: object) -> None:
        raise Begun(dask.config.get("distributed.worker.preload"))

    monkeypatch.setattr(LocalCluster, "__init__", start)
    with (
        dask.config.set({"distributed.worker.preload": given}),
        pytest.raises(Begun) as begun,
        connect(ClusterSettings(device="cpu", workers=2)),
    ):
        pass
    assert begun.value.args == (["json", "edgemill.pipeline.cluster.workers.ignore_ctrl_c"],)


@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.parametrize("shown", [False, True])
def test_workers_record_a_profile_only_to_show_it(
    monkeypatch: pytest.MonkeyPatch, workers: int | None, shown: bool
) -> None:
    def start(*_: object, **__: object) -> None:
        raise Begun(dask.config.get("distributed.worker.profile.enabled"))

    monkeypatch.setattr(LocalCluster, "__init__", start)
    for address, profiled in (("127.0.0.1:0", False), (None, True)) if shown else ((None, False),):
        settings = ClusterSettings(device="cpu", workers=workers, dashboard_address=address)
        with pytest.raises(Begun) as begun, connect(settings, profiled):
            pass
        assert begun.value.args == (shown,)


def test_gpu_workers_leave_ctrl_c_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask-CUDA adds its own preload to its argument, and Dask then ignores its configuration."""
    begun = _begun_on_gpus(monkeypatch)
    assert begun["preload"] == ["edgemill.pipeline.cluster.workers.ignore_ctrl_c"]


def test_gpu_workers_keep_their_tasks_and_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = _begun_on_gpus(monkeypatch)
    assert begun["stealing"] is False
    assert begun["environment"]["MALLOC_TRIM_THRESHOLD_"] == begun["environment"]["MALLOC_MMAP_THRESHOLD_"] == 2**28
    assert dask.config.get("distributed.scheduler.work-stealing")  # afterwards


def _begun_on_gpus(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a cluster of workers with GPUs is begun with."""

    def start(*_: object, preload: list[str], **__: object) -> None:
        environment = dict(dask.config.get("distributed.nanny.pre-spawn-environ"))
        stealing = dask.config.get("distributed.scheduler.work-stealing")
        raise Begun({"preload": preload, "environment": environment, "stealing": stealing})

    kind = type("LocalCUDACluster", (LocalCluster,), {"__init__": start})
    monkeypatch.setitem(sys.modules, "dask_cuda", SimpleNamespace(LocalCUDACluster=kind))
    monkeypatch.setattr("edgemill.kernels.runtime.device.device", lambda: Device("a GPU", 2**30, 2, ""))
    with pytest.raises(Begun) as begun, connect(ClusterSettings(device="gpu", workers=2)):
        pass
    found: dict[str, Any] = begun.value.args[0]
    return found


def test_arrow_uses_the_threads_of_a_worker() -> None:
    """Dask's nanny gives it one."""
    with connect(ClusterSettings(device="cpu", workers=1, threads_per_worker=3)) as client:
        assert list(client.run(pa.cpu_count).values()) == [1]
        with closing(Engine.connect(client, "arrow").session) as session:
            assert session.on_every_worker(Execution(session.capacity), pa.cpu_count) == [3]


def test_a_client_that_is_closed(tmp_path: Path, rows: Path, client: Client) -> None:
    with Client(client.cluster, set_as_default=False) as other:
        pass
    with pytest.raises(ClusterLost, match="Dask client"):
        mine(rows, tmp_path / "out", client=other)


def test_workers_that_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run waits for the scheduler file first."""
    file = tmp_path / "scheduler.json"
    with runs.cluster(n_workers=0, processes=False, protocol="tcp", threads_per_worker=1) as client:
        text = json.dumps({"address": address(client)})

        def write(seconds: float) -> None:
            """The first check finds no file, the second an incomplete one."""
            file.write_text(text if file.exists() else text[:9])

        monkeypatch.setattr(
            "edgemill.pipeline.cluster.connecting.connect.time", SimpleNamespace(monotonic=time.monotonic, sleep=write)
        )
        started: Any = client.cluster
        started.scale(2)
        with connect(ClusterSettings(scheduler_file=str(file), least_workers=2)) as connected:
            assert len(workers_of(connected)) == 2
        several = ClusterSettings(scheduler=address(client), least_workers=3, waiting_seconds=0.5)
        with (
            pytest.raises(ClusterLost, match=r"2.*3.*\(cluster\.least_workers\).*0\.5"),
            connect(several),
        ):
            pass
    absent = ClusterSettings(scheduler_file=str(tmp_path / "absent"), least_workers=1, waiting_seconds=0.1)
    with pytest.raises(UsageError, match=r"cluster\.scheduler_file.*absent"), connect(absent):
        pass
    with pytest.raises(UsageError, match=r"cluster\.least_workers applies"):
        mine("edges", tmp_path / "out", cluster={"least_workers": 2})


@pytest.mark.parametrize(
    ("device", "workers", "gpus", "expected"),
    [
        ("auto", None, 1, True),
        ("auto", 2, 1, False),
        ("auto", 2, 0, False),
        ("cpu", None, 1, False),
        ("gpu", 2, 2, True),
    ],
)
def test_which_workers_get_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
    device: Literal["auto", "cpu", "gpu"],
    workers: int | None,
    gpus: int,
    expected: bool,
) -> None:
    """With `auto`, workers that would share a GPU compute on CPUs. With `gpu` they are refused."""
    found = Device("H200", 10**9, gpus, "" if gpus else "no CUDA device")
    monkeypatch.setattr("edgemill.kernels.runtime.device.device", lambda: found)
    assert has_gpu_workers(ClusterSettings(device=device, workers=workers)) is expected


def test_the_memory_of_this_machine_is_what_dask_finds() -> None:
    assert host_memory_bytes() == memory_limit()
