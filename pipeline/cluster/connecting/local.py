"""What this machine offers workers that are started here: cores, memory and GPUs.

Imports neither Dask nor the kernels, which take a second to load.
"""

from __future__ import annotations

import resource
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from ....tasks.errors import UsageError
from ...settings.models import ClusterSettings

if TYPE_CHECKING:
    from ....kernels.runtime.device import Device

WORKER_BYTES = 305 * 2**20
"""Memory of an idle worker, with the kernels' buffers: 285 to 330 MiB by the machine (docs/engineering/memory.md)."""
CLIENT_BYTES = 48 * 2**20
"""Memory of a scheduler and a client, beside the worker of the same process."""
MOST_TASKS = 16
"""Most tasks that a worker runs at once, unless the settings name its threads. All of them need Python's lock: on 64
cores, R-MAT 22, numbering took 2.4 s by 64 tasks at once and 0.8 by 16, publishing 1.9 and 0.5.
"""
_LIMITS = (
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/sys/fs/cgroup/memory/memory.soft_limit_in_bytes",
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory.high",
    "/sys/fs/cgroup/memory.low",
)
"""Files with limits of control groups, of versions 1 and 2: a number, or `max`."""


def host_memory_bytes() -> int:
    """Memory that this process and its workers may use: the machine's, or less by a limit of the system.

    The same as `distributed.system.memory_limit`, without the import of Dask.
    """
    limit = psutil.virtual_memory().total
    for path in _LIMITS:
        with suppress(OSError, ValueError):
            limit = min(limit, int(Path(path).read_text()) or limit)
    most = resource.getrlimit(resource.RLIMIT_RSS)[1]
    return min(limit, most) if most > 0 else limit


def threads_of_a_worker(settings: ClusterSettings) -> tuple[int, int]:
    """Threads of a worker started here that run tasks, and threads for its kernels, which its tasks share."""
    from ....kernels.runtime.threads import MOST_FOR_KERNELS, cores

    if settings.threads_per_worker is not None:
        return settings.threads_per_worker, settings.threads_per_worker
    share = max(1, cores() // (settings.workers or 1))
    return min(share, MOST_TASKS), min(share, MOST_FOR_KERNELS)


def check_device(settings: ClusterSettings) -> None:
    """Raises UsageError if workers started here should have a GPU and this machine has none."""
    if settings.is_started_here and settings.device == "gpu":
        local_gpu(settings)


def check_least_workers(settings: ClusterSettings) -> None:
    """Raises UsageError if workers are to be waited for and all are started here."""
    if settings.is_started_here and settings.least_workers is not None:
        raise UsageError(
            "cluster.least_workers applies to a running cluster: name its scheduler or give mine a client, "
            "or set cluster.workers=… to start some here"
        )


def local_gpu(settings: ClusterSettings) -> Device:
    """The GPU that workers started here would use. Raises UsageError if a GPU is asked for and the machine has none."""
    from ....kernels.runtime.device import Device, device  # loads the kernels

    if settings.device == "cpu":
        return Device("", 0, 0, "cluster.device is cpu")
    found = device()
    if settings.device == "gpu" and found.missing:
        raise UsageError(f"cluster.device is gpu, but this machine has none: {found.missing}")
    return found


def start_gpu(settings: ClusterSettings) -> bool:
    """Start to set up the GPU of a run whose only worker is in this process, if it may use one; returns whether."""
    if not settings.is_started_here or settings.workers is not None or settings.device == "cpu":
        return False
    from ....kernels.runtime.device import start_context

    start_context()
    return True


def has_gpu_workers(settings: ClusterSettings) -> bool:
    """Whether workers started here have a GPU each: if asked for, or by `auto` if there are enough GPUs.

    Raises UsageError if GPUs are asked for and there is none.
    """
    if settings.device == "cpu":
        return False
    gpu = local_gpu(settings)
    if gpu.missing or settings.workers is None or settings.device == "gpu":
        return not gpu.missing
    return settings.workers <= gpu.count and find_spec("dask_cuda") is not None
