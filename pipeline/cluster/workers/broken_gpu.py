"""A worker with a broken GPU ends its process. Its nanny starts another worker, and Dask runs its tasks again."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from typing import NoReturn

from distributed import Client, get_worker
from distributed.comm.core import CommClosedError
from distributed.utils import sync

from ....tasks.errors import ClusterLost

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
