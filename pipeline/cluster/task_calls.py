"""How a worker calls the function of a task.

A worker with a broken GPU ends its process. Its nanny starts another worker, and Dask runs its tasks again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from threading import BoundedSemaphore
from typing import Any, NoReturn

import pyarrow as pa
from dask.utils import key_split
from distributed import Client, get_worker
from distributed.comm.core import CommClosedError
from distributed.utils import sync

from ... import kernels
from ...kernels.runtime.device import fatal_cuda_error, pooled_memory, synchronize
from ...kernels.runtime.threads import kernel_threads
from ...tasks.errors import ClusterLost, OutOfRoom
from .versions import refuse_other_version
from .workers.spill import check_limits, mapped, put_in_files

_slots: dict[int, BoundedSemaphore] = {}
"""Number of tasks that this process runs at once → the semaphore that admits this number."""


class TaskOutOfRoom(OutOfRoom):
    """A task found no memory, on the host or on a GPU. The driver adds the advice that fits its plan."""


@dataclass(frozen=True)
class FileResults:
    """The arrays of results lie in files, and tasks map those of their arguments."""

    linked: bool
    """Whether a link to a file travels to another worker, in place of its content."""


@dataclass(frozen=True)
class TaskCall:
    """Calls a function as one task of a run. The driver makes it, and a worker calls it with the task's arguments."""

    version: str
    """Version of edgemill in the driver."""
    function: Callable[..., Any]
    kernel_threads: int
    """Threads of each kernel."""
    on_gpu: bool = False
    """Whether a worker that receives messages on its GPU waits for the task's kernels and trims the GPU's memory."""
    files: FileResults | None = None
    at_once: int | None = None
    """Tasks that the worker runs at once; None for no limit. A task that waits for its turn has mapped nothing."""
    numba_later: bool = False
    """Whether Numba is loaded by the first task with kernels for CPUs, since most tasks have none."""

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """The result of `function(*arguments)`.

        Raises UsageError on a worker with another version of edgemill, TaskOutOfRoom for want of memory, OutOfRoom for
        want of open files. If the GPU is broken, the worker process ends.
        """
        refuse_other_version(self.version)
        use_arrow_threads()
        threads = kernel_threads(self.kernel_threads, self.numba_later)
        with _slot(self.at_once), threads, pooled_memory(), _task_errors():
            if self.files is not None:
                return put_in_files(self.function(*mapped(arguments)), self.files.linked)
            if not self.on_gpu:
                return self.function(*arguments)
            try:
                result = self.function(*arguments)
                synchronize()  # an error in a kernel belongs to this task, not to a later one
                return result
            finally:
                kernels.trim()


def _slot(at_once: int | None) -> AbstractContextManager[Any]:
    return nullcontext() if at_once is None else _slots.setdefault(at_once, BoundedSemaphore(at_once))


@contextmanager
def _task_errors() -> Iterator[None]:
    """Raise errors of memory and limits as errors of edgemill, and end a worker whose GPU is broken."""
    try:
        yield
    except Exception as error:
        broken = fatal_cuda_error(error)
        if broken is not None:
            end_worker(broken)
        if isinstance(error, MemoryError):
            raise TaskOutOfRoom(f"a task ran out of memory ({error})") from error
        check_limits(error)
        raise


@dataclass(frozen=True)
class ResultKey:
    """The key of a result, as an argument of a task that must not depend on that result."""

    key: Any


def held_or_made(held: ResultKey, function: Callable[..., Any], *arguments: Any) -> Any:
    """Task: the result with this key if the worker holds it, otherwise `function(*arguments)`."""
    key_split.cache_clear()  # Dask caches 100,000 names in every process, 300 bytes each
    try:
        result: Any = get_worker().data[held.key]
    except KeyError:
        return function(*arguments)
    return mapped(result)


_TOPIC = "edgemill-broken-gpu"
"""Events of workers that end because of their GPU."""
_EVENT_SECONDS = 5.0


def end_worker(error: BaseException) -> NoReturn:
    """End this worker process from a task, after an error that leaves CUDA unusable in the process.

    Raises ClusterLost if nothing would restart the process: in a worker without a nanny, and in the driver.
    """
    worker = get_worker()
    if worker.nanny is None:
        raise ClusterLost(
            f"a kernel failed ({error}), and this GPU stays unusable until its process restarts: "
            "restart the worker, if it is one, and run again; if that fails too, use cluster.device=cpu"
        ) from error
    event = {"task": str(worker.get_current_task()), "error": f"{type(error).__name__}: {error}"}
    with suppress(OSError, CommClosedError):
        sync(worker.loop, worker.scheduler.log_event, topic=_TOPIC, msg=event, callback_timeout=_EVENT_SECONDS)
    os._exit(1)


def broken_gpu_message(client: Client, tasks: Collection[str]) -> str:
    """The message for tasks during which workers died, if they ended because of their GPUs; otherwise empty."""
    try:
        events = [event for _, event in client.get_events(_TOPIC) if event["task"] in tasks]
    except (OSError, CommClosedError):
        return ""
    if not events:
        return ""
    last = events[-1]
    return (
        f"{last['task']} broke the GPU of every worker that tried it, {len(events)} in all, the last with "
        f"{last['error']}: "
        "the device or a kernel is faulty; please report a kernel, and use cluster.device=cpu"
    )


@cache
def use_arrow_threads() -> None:
    """Give Arrow's pool of threads the size of the worker's, once in a worker process, from one of its tasks.

    Dask's nanny sets OMP_NUM_THREADS to 1 in worker processes, and Arrow sizes its pool by that variable. All tasks
    that read would then share one thread that decodes. If the worker is in a process with other code, the pool is left
    as it is.
    """
    worker = get_worker()
    if not worker.address.startswith("inproc://"):
        pa.set_cpu_count(max(pa.cpu_count(), worker.state.nthreads))
