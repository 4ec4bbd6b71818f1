"""Where tasks run: a running scheduler, worker processes started here, or one worker in this process."""

from __future__ import annotations

import copy
import ctypes
import logging
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from multiprocessing import active_children
from pathlib import Path
from threading import Lock
from typing import Any

import dask
from distributed import Client, LocalCluster, Nanny, Worker
from distributed.deploy.spec import SpecCluster

from ....tasks.errors import UsageError
from ...settings.models import ClusterSettings
from ..batching import ShortIntervals
from ..client import give_dask_threads
from ..execution import GPU, KERNEL_THREADS
from ..workers import ignore_ctrl_c as leave_ctrl_c
from .connect import own_loop, running, tell_nobody
from .guard import guarded_start, refuse_daemon
from .local import WORKER_BYTES, has_gpu_workers, host_memory_bytes, local_gpu, threads_of_a_worker
from .tls import check_processes, is_encrypted, security

KEPT_BYTES = 2**28
"""Largest arrays in host memory, and most freed memory, that the C library of a process with a GPU keeps for reuse."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of `mallopt` of the GNU C library (malloc.h)."""


def keep_freed_memory() -> None:
    """Have the C library of this process keep KEPT_BYTES of freed memory. Does nothing with another C library.

    By default arrays above a size of 128 KiB to 32 MiB get new memory from the system each time. A page takes the
    system up to ten microseconds on a virtual machine, and threads of a process wait for each other meanwhile.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for parameter in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            library.mallopt(parameter, KEPT_BYTES)


TARGET = 0.6
"""Dask's default share of a worker's memory for results. It spills results beyond that."""
LEAST_TARGET = 0.1
_SCRATCH = "dask-scratch-space"
"""Folder that Dask makes for its workers. If it belongs to another user, Dask appends the user's id."""
UCXX_ENVIRONMENT = {"UCXPY_PROGRESS_MODE": "thread", "UCXPY_ENABLE_PYTHON_FUTURE": "1"}
"""Messages arrive in a thread that does not need Python. By default Python's event loop asks for them all the time, and
threads that compute wait for it.
"""
_OPEN_FILL = 1 / 32
"""Share of a GPU's memory that each other worker keeps open after it has read it. The driver does not take such memory
back when its owner frees it. By default UCX has no limit: with each run of R-MAT 26 four workers had 5 to 18 GB less.
"""
_DEVICE_FILL = 0.8
"""Share of a GPU's memory for results. Tasks need the rest."""


_SET_BY_DASK = "distributed.nanny.pre-spawn-environ"
"""Setting of Dask: variables of the environment that it sets in this process before it starts a worker process."""


@contextmanager
def connect(
    settings: ClusterSettings, profiled: bool = False, tell: Callable[[str], None] = tell_nobody
) -> Iterator[Client]:
    """A client of the cluster that the settings name. At the end the client is closed, with all that was started here.

    Workers that are started here record a profile if it is asked for (`profiled`), or if a dashboard can show it.
    `tell` is called with what is waited for, and with "" at the end.

    Raises as `running` does, and UsageError for certificates that cannot be used and for a folder that results cannot
    be spilled to.
    """
    if not settings.is_started_here:
        with running(settings, tell) as client:
            yield client
        return
    _check_folder(settings)
    threads, for_kernels = threads_of_a_worker(settings)
    memory = settings.memory_limit_bytes or "auto"
    resources: dict[str, float] = {KERNEL_THREADS: for_kernels}
    options: dict[str, Any] = {"memory_limit": memory, "resources": resources} | _scheduler(settings)
    certificates = security(settings)
    if settings.workers is not None:  # one process opens no connections
        check_processes(certificates)
        options["security"] = certificates
    if has_gpu_workers(settings):
        resources[GPU] = 1
        options |= _spilling(settings)
        if settings.workers is None:
            keep_freed_memory()
    configuration = (
        _patience(settings)
        | _measurements(profiled or settings.dashboard_address is not None)
        | _processes(settings)
        | _gpu_workers(settings)
    )
    in_processes = settings.workers is not None
    kind, own = _cluster_type(settings)
    options |= {"n_workers": settings.workers or 1, "threads_per_worker": threads} | own
    with (
        own_loop(ignores_ctrl_c=in_processes) as loop,
        _started(kind, configuration, in_processes, loop=loop, **options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


_starting = Lock()
"""Held while a cluster starts. For that time Dask's configuration and the variables of the environment, which are the
whole process's, have the values that the cluster reads.
"""


@contextmanager
def _started(
    kind: type[LocalCluster], configuration: Mapping[str, Any], in_processes: bool, **options: Any
) -> Iterator[LocalCluster]:
    """A cluster with this configuration of Dask, closed at the end. If its start is interrupted, its processes are
    killed.

    Dask would try to close a cluster that is half started when Python ends, fail, and print tracebacks. Workers that
    start without their cluster would do so, too.
    """
    with ExitStack() as stack:
        with _starting, dask.config.set(configuration), ExitStack() as starting:
            if in_processes:
                before = {name: os.environ.get(name) for name in _variables()}
                # Also at the end: a worker process that replaces a lost one sets the variables again.
                stack.callback(_restore, before)
                starting.callback(_restore, before)
                folder = options["local_directory"] or dask.config.get("temporary-directory", None)
                starting.enter_context(guarded_start(folder))
            cluster = _start(kind, options)
            for nanny in cluster.workers.values() if in_processes else ():
                # A worker process that replaces a lost one starts with the same configuration.
                nanny.config = copy.deepcopy(nanny.config)
                if nanny.process is not None:  # the process is not lost already
                    nanny.process.config = nanny.config
            servers = [cluster.scheduler, *cluster.workers.values()]
            _leave_search_path(servers)
        stack.callback(_remove_handlers, servers)
        yield stack.enter_context(cluster)


def _start(kind: type[LocalCluster], options: Mapping[str, Any]) -> LocalCluster:
    """A new cluster. Only one cluster starts at a time, so all that an interrupted start leaves behind belongs to this
    cluster.
    """
    give_dask_threads()
    clusters, processes = set(SpecCluster._instances), set(active_children())
    try:
        return kind(**options)
    except BaseException:
        unfinished = {one for one in set(SpecCluster._instances) - clusters if isinstance(one, kind)}
        for one in unfinished:
            one.shutdown_on_close = False
            _remove_handlers([one.scheduler, *one._created])
        others = set(SpecCluster._instances) - unfinished  # those of the user, who may start one meanwhile
        pids = {getattr(worker, "pid", None) for one in others for worker in one.workers.values()}
        for process in set(active_children()) - processes:
            if process.name.startswith("Dask Worker process") and process.pid not in pids:
                process.kill()
        raise


def _leave_search_path(servers: Sequence[Any]) -> None:
    """Remove the folders of these servers from Python's search path, where Dask puts them for modules that are uploaded
    to workers. Dask itself removes a folder only if no other server has added one since.
    """
    for server in servers:
        with suppress(ValueError):
            sys.path.remove(server.local_directory)


def _remove_handlers(servers: Sequence[Any]) -> None:
    """Remove the handlers of log records that these servers gave to Dask's loggers. Dask keeps some of its servers for
    long after they are closed, and each record goes through the handlers of all.
    """
    for name in ("scheduler", "worker", "nanny"):
        for server in filter(None, servers):
            logging.getLogger(f"distributed.{name}").removeHandler(server._deque_handler)


def _variables() -> list[str]:
    """Variables of the environment that Dask sets in this process when it starts worker processes."""
    return [*dask.config.get(_SET_BY_DASK), "PYTHONHASHSEED", "SPT_NOENV", "__DASK_PARENT_PID"]


def _restore(before: Mapping[str, str | None]) -> None:
    """Remove variables that were not in the environment `before`. Dask does not change variables that were."""
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)


def _scheduler(settings: ClusterSettings) -> dict[str, Any]:
    """Options of the scheduler: its folder, the address of Dask's HTTP server, and the intervals between messages."""
    folder, address = {"local_directory": settings.local_directory}, settings.dashboard_address
    own = folder | {"plugins": [ShortIntervals()]}
    if address is None:
        # The HTTP server still starts, on this machine alone and on any free port.
        return folder | {"dashboard_address": None, "scheduler_kwargs": own | {"dashboard_address": "127.0.0.1:0"}}
    _check_dashboard(address)
    return folder | {"dashboard_address": address, "scheduler_kwargs": own}


def _check_dashboard(address: str) -> None:
    """Raises UsageError if this is no address of this machine. Dask chooses another port if the port is in use."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise UsageError(
            f"cluster.dashboard_address {address} cannot be bound: {error.strerror}; name an address of this machine"
        ) from error


def _processes(settings: ClusterSettings) -> dict[str, Any]:
    """Dask's configuration for worker processes: their preloads, and a limit on what they log, also if the main script,
    which they import, shows logs.
    """
    if settings.workers is None:
        return {}
    given = dask.config.get("distributed.worker.preload")
    others = [given] if isinstance(given, str) else given  # an environment variable gives one name
    return {
        "distributed.worker.preload": [*others, leave_ctrl_c.__name__],
        f"{_SET_BY_DASK}.DASK_LOGGING__DISTRIBUTED": "critical",
    }


def _patience(settings: ClusterSettings) -> dict[str, Any]:
    """Dask's configuration of how long a worker may be silent, and how long a task waits for a worker or for memory."""
    return {
        # A worker in this process is never frozen alone, and must survive a laptop's sleep.
        "distributed.scheduler.worker-ttl": None if settings.workers is None else settings.silence_seconds,
        "distributed.scheduler.no-workers-timeout": settings.waiting_seconds,
        # A paused worker waits for memory, and waits for ever if the memory is filled by anything but results. Without
        # the pause results are spilled as well, and a worker that exceeds its limit is ended and reported.
        "distributed.worker.memory.pause": False,
        # An idle worker takes most of a small limit.
        "distributed.worker.memory.target": _target(settings),
    }


def _measurements(profiled: bool) -> dict[str, Any]:
    """Dask's configuration of what scheduler and workers measure of themselves. Measuring holds up all threads of
    Python.

    By default each of them checks every 20 ms whether its event loop is late. Every 10 ms a worker reads the stacks of
    its threads, for the profile that Dask's dashboard and performance report show.
    """
    profile = {} if profiled else {"distributed.worker.profile.enabled": False}
    return {"distributed.admin.tick.interval": "500ms"} | profile


def _gpu_workers(settings: ClusterSettings) -> dict[str, Any]:
    """Dask's configuration for worker processes with GPUs."""
    if settings.workers is None or not has_gpu_workers(settings):
        return {}
    return {
        # The largest arguments, such as the edges of a bucket, lie on one GPU. A worker that takes over a task from
        # another copies them, in more time than the task takes.
        "distributed.scheduler.work-stealing": False,
        # Dask has the C library return freed memory at once. Threads that write tables would wait for new pages.
        f"{_SET_BY_DASK}.MALLOC_TRIM_THRESHOLD_": KEPT_BYTES,
        f"{_SET_BY_DASK}.MALLOC_MMAP_THRESHOLD_": KEPT_BYTES,
    }


def _target(settings: ClusterSettings) -> float:
    """The share of a worker's memory for results: 60 % of what an idle worker leaves."""
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


def _spilling(settings: ClusterSettings) -> dict[str, Any]:
    """Options of GPU workers: results move to the host when they fill the GPU."""
    gpu = local_gpu(settings)
    limit = settings.device_memory_limit_bytes or int(_DEVICE_FILL * gpu.memory_bytes)
    if settings.workers is not None:
        return {"device_memory_limit": limit}
    from ..workers.device_results import DeviceResults

    on_host = settings.memory_limit_bytes or host_memory_bytes()
    return {"data": (DeviceResults, {"device_memory_limit": limit, "memory_limit": on_host})}


def _cluster_type(settings: ClusterSettings) -> tuple[type[LocalCluster], dict[str, Any]]:
    """The type of the cluster, and options of it: worker processes, with a GPU each if GPUs compute, or one worker in
    this process.
    """
    if settings.workers is None:
        # Without the protocol, Dask's configuration could require TLS within this process.
        own = {"processes": False, "protocol": "inproc", "worker_class": _WorkerHere, "silence_logs": False}
        return _patient(LocalCluster, settings.waiting_seconds), own
    refuse_daemon()
    if not has_gpu_workers(settings):
        own = {"processes": True, "worker_class": _QuietNanny, "silence_logs": False}
        return _patient(LocalCluster, settings.waiting_seconds), own
    gpu = local_gpu(settings)
    if settings.workers > gpu.count:
        raise UsageError(f"cluster.workers is {settings.workers}, and this machine has {gpu.count} GPUs, one for each")
    if settings.protocol == "ucxx":
        if find_spec("distributed_ucxx") is None:
            raise UsageError("cluster.protocol=ucxx needs distributed-ucxx: install edgemill[ucxx-cu13] or [ucxx-cu12]")
        limit = {"UCX_CUDA_IPC_CACHE_MAX_SIZE": f"{int(_OPEN_FILL * gpu.memory_bytes)}"}
        for name, value in (UCXX_ENVIRONMENT | limit).items():  # of this process, with the scheduler, and its workers
            os.environ.setdefault(name, value)
    try:
        from dask_cuda import LocalCUDACluster
    except ImportError as error:
        raise UsageError(f"several GPU workers need dask-cuda ({error}): install edgemill[cu13]") from error
    protocol = "tls" if settings.protocol == "tcp" and is_encrypted(security(settings)) else settings.protocol
    # LocalCUDACluster sets a preload of its own, which overrides Dask's configuration.
    own = {"protocol": protocol, "preload": [leave_ctrl_c.__name__], "silence_logs": logging.CRITICAL}
    return _patient(LocalCUDACluster, settings.waiting_seconds), own


_reading = Lock()
"""Held while a cluster reads how long it waits for a lost worker."""


def _patient(base: type[LocalCluster], seconds: float) -> type[LocalCluster]:
    """A type of clusters that give up a lost worker if it has not restarted after `seconds`; on a busy machine a start
    takes long. Dask reads that time from its configuration whenever a worker is lost.
    """

    def update_worker_status(self: Any, op: str, address: str) -> None:
        with _reading, dask.config.set({"distributed.deploy.lost-worker-timeout": seconds}):
            base._update_worker_status(self, op, address)

    return type(base.__name__, (base,), {"_update_worker_status": update_worker_status})


class _WorkerHere(Worker):
    """A worker in this process. Its HTTP server listens on this machine alone, and not on all of its addresses."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options | {"dashboard_address": "127.0.0.1:0"})


class _QuietNanny(Nanny):
    """Starts a worker process that logs critical records alone. Dask's nannies would change the level of this process's
    handlers, too.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options | {"silence_logs": None})
        self.silence_logs = logging.CRITICAL
