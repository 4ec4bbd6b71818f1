"""A worker whose GPU is broken leaves: its nanny starts another, and Dask does its tasks again."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from typing import NoReturn

from distributed import Client, get_worker
from distributed.comm.core import CommClosedError
from distributed.utils import sync

from ..tasks.errors import ClusterLost

__all__ = ["leave", "why_they_left"]

_TOPIC = "edgemill-broken-gpu"
"""Where workers that leave tell why."""
_TELLING_SECONDS = 5.0


def leave(error: BaseException) -> NoReturn:
    """End this worker process, from a task, because of an error after which CUDA works no more in it.

    Raises ClusterLost instead where nobody would start another: in a worker without a nanny, or in the driver itself.
    """
    worker = get_worker()
    if worker.nanny is None:
        raise ClusterLost(
            f"a kernel failed ({error}), and nothing runs on this GPU any more until its process is started anew: "
            "start the worker again, if it is one, and run again; if that fails too, use cluster.device=cpu"
        ) from error
    told = {"task": str(worker.get_current_task()), "error": f"{type(error).__name__}: {error}"}
    with suppress(OSError, CommClosedError):
        sync(worker.loop, worker.scheduler.log_event, topic=_TOPIC, msg=told, callback_timeout=_TELLING_SECONDS)
    os._exit(1)


def why_they_left(client: Client, tasks: Collection[str]) -> str:
    """What to tell of tasks that no worker has survived; empty if none of them left by itself."""
    try:
        told = [message for _, message in client.get_events(_TOPIC) if message["task"] in tasks]
    except (OSError, CommClosedError):
        return ""
    if not told:
        return ""
    return (
        f"{told[-1]['task']} broke the GPU of every worker that tried it, {len(told)} in all, the last with "
        f"{told[-1]['error']}: "
        "a fault of the device, or of a kernel, which please report; cluster.device=cpu does without"
    )
