"""Where tasks run: a running scheduler, worker processes started here, or one worker in this process."""

from __future__ import annotations

import logging
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import dask
from distributed import Client, LocalCluster, Worker
from distributed.deploy.spec import SpecCluster
from distributed.system import MEMORY_LIMIT

from ..kernels.device import Device, device
from ..tasks.errors import UsageError
from . import leave_ctrl_c
from .engine import GPU
from .guard import guarded_start
from .leave_ctrl_c import runner_without_ctrl_c
from .running import running
from .settings import ClusterSettings
from .streams import Prompt
from .tls import check_processes, is_encrypted, security

__all__ = ["WORKER_BYTES", "check_device", "check_least_workers", "connect", "cores", "has_gpu_workers", "local_gpu"]

WORKER_BYTES = 345 * 2**20
"""Memory of a worker with nothing to do, and of the kernels' buffers."""
TARGET = 0.6
"""Dask's own share of a worker's memory for results that wait: what exceeds it is spilled."""
LEAST_TARGET = 0.1
_SCRATCH = "dask-scratch-space"
"""Folder that Dask makes for its workers, or, where another user has it, one with the user's id after it."""
_DEVICE_FILL = 0.8
"""Share of a GPU's memory that results may take while they wait; tasks need the rest."""


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def connect(settings: ClusterSettings) -> Iterator[Client]:
    """A client of the cluster that the settings name, closed at the end with all that was started here.

    Raises what `running` does, and UsageError for certificates that do not serve, and for a folder that results cannot
    be spilled to.
    """
    if not settings.is_started_here:
        with running(settings) as client:
            yield client
        return
    _check_folder(settings)
    threads = settings.threads_per_worker or max(1, cores() // (settings.workers or 1))
    memory = settings.memory_limit_bytes or "auto"
    options = {"memory_limit": memory} | _scheduler(settings)
    certificates = security(settings)
    if settings.workers is not None:  # one process talks to nobody
        check_processes(certificates)
        options["security"] = certificates
    if has_gpu_workers(settings):
        options["resources"] = {GPU: 1}
        options |= _spilling(settings)
    with (
        dask.config.set(_patience(settings) | _preload(settings)),
        _started(
            _cluster_type(settings),
            settings.workers is not None,
            n_workers=settings.workers or 1,
            threads_per_worker=threads,
            silence_logs=logging.CRITICAL,  # what fails is told once, by the exception that ends the run
            **options,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def _started(kind: Callable[..., LocalCluster], in_processes: bool, **options: Any) -> Iterator[LocalCluster]:
    """A cluster, closed at the end; what is left of one whose start is interrupted ends with this process.

    Dask would close that, too, when Python ends, which it cannot, and tell so at length; and so would workers that
    come to life without it.
    """
    before, others = set(SpecCluster._instances), set(active_children())
    runner = runner_without_ctrl_c() if in_processes else None
    try:
        with guarded_start(options["local_directory"] or dask.config.get("temporary-directory", None)):
            cluster = kind(loop=runner and runner.loop, **options)
    except BaseException:
        for half_made in set(SpecCluster._instances) - before:
            half_made.shutdown_on_close = False
        for process in set(active_children()) - others:
            process.kill()
        raise
    try:
        with cluster:
            yield cluster
    finally:
        if runner is not None:
            runner.stop()


def _scheduler(settings: ClusterSettings) -> dict[str, Any]:
    """The folder of workers and scheduler, where Dask's HTTP server listens, and how long messages wait."""
    folder, address = {"local_directory": settings.local_directory}, settings.dashboard_address
    own = folder | {"plugins": [Prompt()]}
    if address is None:
        # What is left of it listens on this machine alone, and not on the port that all runs would want.
        return folder | {"dashboard_address": None, "scheduler_kwargs": own | {"dashboard_address": "127.0.0.1:0"}}
    _check_dashboard(address)
    return folder | {"dashboard_address": address, "scheduler_kwargs": own}


def _check_dashboard(address: str) -> None:
    """Raises UsageError if that is no address of this machine; another port is found for one that is taken."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise UsageError(
            f"cluster.dashboard_address {address} cannot be had: {error.strerror}; name an address of this machine"
        ) from error


def _preload(settings: ClusterSettings) -> dict[str, Any]:
    """Dask's configuration of what worker processes do before they take work."""
    if settings.workers is None:
        return {}
    given = dask.config.get("distributed.worker.preload")
    others = [given] if isinstance(given, str) else given  # one name, as an environment variable has it
    return {"distributed.worker.preload": [*others, leave_ctrl_c.__name__]}


def _patience(settings: ClusterSettings) -> dict[str, Any]:
    """Dask's configuration of how long a worker may be silent, and a task wait for one, or for memory."""
    return {
        # A worker in this process is never frozen alone, and must outlive a laptop's sleep.
        "distributed.scheduler.worker-ttl": None if settings.workers is None else settings.silence_seconds,
        "distributed.scheduler.no-workers-timeout": settings.waiting_seconds,
        # A paused worker waits for memory, and if it is not results that fill it, nothing will ever free any. Without
        # pause results are spilled all the same, and what exceeds the limit then is ended, and told.
        "distributed.worker.memory.pause": False,
        # Beside the results there is the worker itself, which is most of a small one.
        "distributed.worker.memory.target": _target(settings),
        # A worker that is not back by then is given up for good; on a busy machine a start takes long.
        "distributed.deploy.lost-worker-timeout": settings.waiting_seconds,
    }


def _target(settings: ClusterSettings) -> float:
    """The share of a worker's memory that results which wait may take: 60 % of what is left beside the worker."""
    if settings.workers is None or settings.memory_limit_bytes is None:
        return TARGET
    return max(LEAST_TARGET, TARGET * (1 - WORKER_BYTES / settings.memory_limit_bytes))


def _check_folder(settings: ClusterSettings) -> None:
    """Raises UsageError if workers started here cannot write to the folder that results are spilled to."""
    of_dask = dask.config.get("temporary-directory", None)
    if settings.local_directory is not None:
        name, folder = "cluster.local_directory", settings.local_directory
    elif of_dask is not None:
        name, folder = "Dask's temporary-directory (DASK_TEMPORARY_DIRECTORY)", of_dask
    else:
        name, folder = "for temporary files (TMPDIR)", None
    try:
        if folder is not None:
            os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        where = f"{name} {folder}" if folder is not None else f"the folder {name}"
        raise UsageError(f"{where} cannot be used: {error.strerror}; name another folder") from error
    for own in (_SCRATCH, f"{_SCRATCH}-{os.geteuid()}"):
        path = Path(folder or tempfile.gettempdir(), own)
        if path.is_symlink():
            raise UsageError(
                f"{path} is a symbolic link, and workers would write and remove what it leads to: remove it, or name "
                "another folder with cluster.local_directory=…"
            )


def check_device(settings: ClusterSettings) -> None:
    """Raises UsageError if workers started here should have a GPU and this machine has none."""
    if settings.is_started_here:
        local_gpu(settings)


def check_least_workers(settings: ClusterSettings) -> None:
    """Raises UsageError if workers are to be waited for and all are started here."""
    if settings.is_started_here and settings.least_workers is not None:
        raise UsageError(
            "cluster.least_workers is for a cluster that runs already: name its scheduler or give mine a client, "
            "or set cluster.workers=… to start some here"
        )


def local_gpu(settings: ClusterSettings) -> Device:
    """The GPU that workers started here would use. Raises UsageError if one is asked for and there is none."""
    if settings.device == "cpu":
        return Device("", 0, 0, "cluster.device is cpu")
    found = device()
    if settings.device == "gpu" and found.lack:
        raise UsageError(f"cluster.device is gpu, and this machine has none: {found.lack}")
    return found


def has_gpu_workers(settings: ClusterSettings) -> bool:
    """Whether workers started here are to have a GPU each: if asked for, or by `auto` where there are GPUs enough.

    Raises UsageError if GPUs are asked for and there is none.
    """
    gpu = local_gpu(settings)
    if gpu.lack or settings.workers is None or settings.device == "gpu":
        return not gpu.lack
    return settings.workers <= gpu.count and find_spec("dask_cuda") is not None


def _spilling(settings: ClusterSettings) -> dict[str, Any]:
    """Options of GPU workers: results that wait for their tasks move to the host when they fill the GPU."""
    gpu = local_gpu(settings)
    limit = settings.device_memory_limit_bytes or int(_DEVICE_FILL * gpu.memory_bytes)
    if settings.workers is not None:
        return {"device_memory_limit": limit}
    try:
        from dask_cuda.device_host_file import DeviceHostFile
    except ImportError as error:
        if settings.device_memory_limit_bytes is not None:
            raise UsageError(
                f"cluster.device_memory_limit_bytes needs dask-cuda ({error}): install edgemill[cu13]"
            ) from error
        return {"data": dict}  # results stay where they are: writing them to a disk would not empty the GPU
    on_host = settings.memory_limit_bytes or MEMORY_LIMIT
    return {"data": (DeviceHostFile, {"device_memory_limit": limit, "memory_limit": on_host})}


def _cluster_type(settings: ClusterSettings) -> Callable[..., LocalCluster]:
    """Worker processes, on a GPU each where GPUs compute, or one worker in this process."""
    if settings.workers is None:
        # Without a protocol Dask's configuration could ask for TLS, from this process to itself.
        return partial(LocalCluster, processes=False, protocol="inproc", worker_class=_WorkerHere)
    if not has_gpu_workers(settings):
        return partial(LocalCluster, processes=True)
    gpu = local_gpu(settings)
    if settings.workers > gpu.count:
        raise UsageError(f"cluster.workers is {settings.workers}, and this machine has {gpu.count} GPUs, one for each")
    if settings.protocol == "ucxx" and find_spec("distributed_ucxx") is None:
        raise UsageError("cluster.protocol=ucxx needs distributed-ucxx: install edgemill[ucxx-cu13] or [ucxx-cu12]")
    try:
        from dask_cuda import LocalCUDACluster
    except ImportError as error:
        raise UsageError(f"several GPU workers need dask-cuda ({error}): install edgemill[cu13]") from error
    protocol = "tls" if settings.protocol == "tcp" and is_encrypted(security(settings)) else settings.protocol
    # It has a preload of its own, beside which Dask's configuration of them counts no more.
    return partial(LocalCUDACluster, protocol=protocol, preload=[leave_ctrl_c.__name__])


class _WorkerHere(Worker):
    """A worker in this process, whose HTTP server would listen on all of the machine's addresses."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options | {"dashboard_address": "127.0.0.1:0"})
