"""Where tasks run: a running scheduler, worker processes started here, or one worker in this process."""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dask
from distributed import Client, LocalCluster, Worker
from distributed.system import MEMORY_LIMIT
from distributed.utils import silence_logging_cmgr

from ..kernels.device import Device, device
from ..tasks.errors import ClusterLost, UsageError
from . import leave_ctrl_c
from .engine import GPU
from .releases import PACKAGE, refusal
from .settings import ClusterSettings
from .tls import check_address, is_encrypted, security, speaks_tls
from .watch import workers_of

__all__ = ["WORKER_BYTES", "check_device", "connect", "cores", "has_gpu_workers", "local_gpu"]

WORKER_BYTES = 345 * 2**20
"""Memory of a worker with nothing to do, and of the kernels' buffers."""
TARGET = 0.6
"""Dask's own share of a worker's memory for results that wait: what exceeds it is spilled."""
LEAST_TARGET = 0.1
_DEVICE_FILL = 0.8
"""Share of a GPU's memory that results may take while they wait; tasks need the rest."""
_START_SECONDS = 30
"""How long to wait for a scheduler and its first worker, where `least_workers` does not ask for patience."""
_LOOKING_SECONDS = 0.2
"""Between two looks for a scheduler file."""


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def connect(settings: ClusterSettings) -> Iterator[Client]:
    """A client of the cluster that the settings name, closed at the end with all that was started here.

    Raises ClusterLost if a scheduler does not answer or has too few workers, UsageError for an unreadable scheduler
    file, for certificates that do not serve, and for a folder that results cannot be spilled to.
    """
    if not settings.is_started_here:
        with _running(settings) as client:
            yield client
        return
    _refuse_unusable(settings.local_directory)
    threads = settings.threads_per_worker or max(1, cores() // (settings.workers or 1))
    memory = settings.memory_limit_bytes or "auto"
    options = {"memory_limit": memory, "local_directory": settings.local_directory} | _dashboard(settings)
    certificates = security(settings)
    if settings.workers is not None:
        options["security"] = certificates  # one process talks to nobody
    if has_gpu_workers(settings):
        options["resources"] = {GPU: 1}
        options |= _spilling(settings)
    with (
        dask.config.set(_patience(settings) | _preload(settings)),
        _cluster_type(settings)(
            n_workers=settings.workers or 1,
            threads_per_worker=threads,
            silence_logs=logging.CRITICAL,  # what fails is told once, by the exception that ends the run
            **options,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _dashboard(settings: ClusterSettings) -> dict[str, Any]:
    """Where Dask's HTTP server listens. Raises UsageError if that is no address of this machine."""
    address = settings.dashboard_address
    if address is None:
        # What is left of it listens on this machine alone, and not on the port that all runs would want.
        return {"dashboard_address": None, "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"}}
    host = address.rpartition(":")[0].strip("[]")
    try:
        socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise UsageError(
            f"cluster.dashboard_address {address} cannot be had: {error.strerror}; name an address of this machine"
        ) from error
    return {"dashboard_address": address}


def _preload(settings: ClusterSettings) -> dict[str, Any]:
    """Dask's configuration of what worker processes do before they take work."""
    if settings.workers is None:
        return {}
    return {"distributed.worker.preload": [*dask.config.get("distributed.worker.preload"), leave_ctrl_c.__name__]}


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


def _refuse_unusable(folder: str | None) -> None:
    if folder is None:
        return
    try:
        os.makedirs(folder, exist_ok=True)
        reason = None if os.access(folder, os.W_OK) else "it cannot be written to"
    except OSError as error:
        reason = error.strerror
    if reason is not None:
        raise UsageError(f"cluster.local_directory {folder} cannot be used: {reason}; name another folder")


def check_device(settings: ClusterSettings) -> None:
    """Raises UsageError if workers started here should have a GPU and this machine has none."""
    if settings.is_started_here:
        local_gpu(settings)


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
        return partial(LocalCluster, processes=False, worker_class=_WorkerHere)
    if not has_gpu_workers(settings):
        return partial(LocalCluster, processes=True)
    gpu = local_gpu(settings)
    if settings.workers > gpu.count:
        raise UsageError(f"cluster.workers is {settings.workers}, and this machine has {gpu.count} GPUs, one for each")
    if settings.protocol == "ucxx" and find_spec("distributed_ucxx") is None:
        raise UsageError("cluster.protocol ucxx needs distributed-ucxx: install edgemill[ucxx-cu13] or [ucxx-cu12]")
    try:
        from dask_cuda import LocalCUDACluster
    except ImportError as error:
        raise UsageError(f"several GPU workers need dask-cuda ({error}): install edgemill[cu13]") from error
    protocol = "tls" if settings.protocol == "tcp" and is_encrypted(security(settings)) else settings.protocol
    return partial(LocalCUDACluster, protocol=protocol)


class _WorkerHere(Worker):
    """A worker in this process, whose HTTP server would listen on all of the machine's addresses."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options | {"dashboard_address": "127.0.0.1:0"})


@contextmanager
def _running(settings: ClusterSettings) -> Iterator[Client]:
    least = settings.least_workers or 1
    patience = _START_SECONDS if settings.least_workers is None else settings.waiting_seconds
    certificates = security(settings)
    end = time.monotonic() + patience
    if settings.least_workers is not None:
        _await_file(settings.scheduler_file, end)
    address = _address(settings)
    check_address(address, certificates)
    try:
        client = Client(address, timeout=_left(end), set_as_default=False, security=certificates)
    except (OSError, ValueError) as error:
        encrypted = address.startswith("tls://")
        if isinstance(error, ValueError) and not encrypted:
            raise UsageError(f"cluster.scheduler: {address!r} names no Dask scheduler: {error}") from error
        if not encrypted and speaks_tls(address):
            raise ClusterLost(
                f"the scheduler at {address} speaks TLS: use tls:// and set cluster.tls_ca_file, cluster.tls_cert_file "
                "and cluster.tls_key_file"
            ) from error
        with_tls = " with TLS and a certificate of that authority" if encrypted else ""
        raise ClusterLost(f"no Dask scheduler answers at {address}{with_tls}: {error}") from error
    with silence_logging_cmgr(logging.CRITICAL), client:  # as above
        _refuse_other_release(client)
        with suppress(TimeoutError):
            client.wait_for_workers(least, timeout=_left(end))
        found = len(workers_of(client))
        if found < least:
            those = f"{found} of {least} workers (cluster.least_workers)" if found else "no workers"
            raise ClusterLost(f"the Dask scheduler at {address} has {those} after {patience:g} s; start some")
        yield client


def _refuse_other_release(client: Client) -> None:
    """Workers with the preload do not come to a scheduler of another release: it would be waited for them in vain."""
    scheduler: Any = client.scheduler
    with suppress(OSError):  # who has gone is told of by who waits
        other = refusal(client.sync(scheduler.versions, packages=[PACKAGE]), {})
        if other is not None:
            raise other


def _left(end: float) -> float:
    """Seconds until then, one at least."""
    return max(1.0, end - time.monotonic())


def _await_file(path: str | None, end: float) -> None:
    """Wait for a scheduler file, whole, that is about to be written."""
    while path is not None and time.monotonic() < end:
        with suppress(OSError, ValueError):
            json.loads(Path(path).read_text(encoding="utf-8"))
            return
        time.sleep(_LOOKING_SECONDS)


def _address(settings: ClusterSettings) -> str:
    """Where the scheduler is that runs already. Raises UsageError for a scheduler file that does not say."""
    path = settings.scheduler_file
    if path is None:
        return settings.scheduler or ""
    if not os.path.isfile(path):
        raise UsageError(f"cluster.scheduler_file: there is no file {path}")
    try:
        return str(json.loads(Path(path).read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"cluster.scheduler_file: {path} is not what a Dask scheduler writes: {error!r}") from error
