"""Where tasks run: a running scheduler, worker processes started here, or one worker in this process."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from typing import Any

import dask
from distributed import Client, LocalCluster
from distributed.system import MEMORY_LIMIT

from ..kernels.device import Device, device
from ..tasks.errors import ClusterLost, UsageError
from .engine import GPU
from .settings import ClusterSettings

__all__ = ["check_device", "connect", "cores", "has_gpu_workers", "local_gpu"]

_DEVICE_FILL = 0.8
"""Share of a GPU's memory that results may take while they wait; tasks need the rest."""
_START_SECONDS = 30
"""How long to wait for a scheduler, and then for its first worker."""


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def connect(settings: ClusterSettings) -> Iterator[Client]:
    """A client of the cluster that the settings name, closed at the end with all that was started here.

    Raises ClusterLost if a scheduler does not answer or has no workers, UsageError for an unreadable scheduler file or
    a folder that results cannot be spilled to.
    """
    if settings.scheduler is not None or settings.scheduler_file is not None:
        with _running(settings) as client:
            yield client
        return
    _refuse_unusable(settings.local_directory)
    threads = settings.threads_per_worker or max(1, cores() // (settings.workers or 1))
    options: dict[str, Any] = {
        "memory_limit": settings.memory_limit_bytes or "auto",
        "local_directory": settings.local_directory,
    }
    if has_gpu_workers(settings):
        options["resources"] = {GPU: 1}
        options |= _spilling(settings)
    with (
        # A paused worker waits for memory, and if it is not results that fill it, nothing will ever free any. Without
        # pause results are spilled all the same, and what exceeds the limit then is ended, and told.
        dask.config.set({"distributed.worker.memory.pause": False}),
        _cluster_type(settings)(
            n_workers=settings.workers or 1,
            threads_per_worker=threads,
            # No dashboard. What is left of its server listens on this machine alone, and not on the port that all
            # runs would want.
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            silence_logs=logging.CRITICAL,  # what fails is told once, by the exception that ends the run
            **options,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


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
    if settings.scheduler is None and settings.scheduler_file is None:
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
        return partial(LocalCluster, processes=False)
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
    return partial(LocalCUDACluster, protocol=settings.protocol)


@contextmanager
def _running(settings: ClusterSettings) -> Iterator[Client]:
    place = settings.scheduler or settings.scheduler_file
    if settings.scheduler_file is not None and not os.path.isfile(settings.scheduler_file):
        raise UsageError(f"cluster.scheduler_file: there is no file {settings.scheduler_file}")
    try:
        client = Client(
            address=settings.scheduler,
            scheduler_file=settings.scheduler_file,
            timeout=_START_SECONDS,
            set_as_default=False,
        )
    except (OSError, TimeoutError) as error:
        raise ClusterLost(f"no Dask scheduler answers at {place}: {error}") from error
    except ValueError as error:
        raise UsageError(f"cluster.scheduler: {place!r} names no Dask scheduler: {error}") from error
    with client:
        with suppress(TimeoutError):
            client.wait_for_workers(1, timeout=_START_SECONDS)
        if not client.scheduler_info(n_workers=1)["workers"]:
            raise ClusterLost(f"the Dask scheduler at {place} has no workers after {_START_SECONDS} s; start some")
        yield client
