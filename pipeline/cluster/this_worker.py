"""What a task may ask of the worker that runs it."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from pathlib import Path

from distributed import get_worker, secede
from distributed.core import Status

from ...tasks.errors import ClusterLost

_PROGRESS_SECONDS = 0.2
"""Least time between two progress events of a task."""
CLOSING = (Status.closing, Status.closed, Status.failed)
"""States of a worker that runs no further task."""


def scratch_folder() -> Path:
    """The worker's folder for temporary files, which goes when the worker does."""
    return Path(get_worker().local_directory)


def leave_pool() -> None:
    """Let the worker start another task while this one goes on: a long task, such as peeling, would keep small tasks of
    other clients waiting. Does nothing in the process of the run, whose end waits for tasks.
    """
    if not get_worker().address.startswith("inproc://"):
        secede()


def progress_reporter(topic: str | None, part: int = 0) -> Callable[[int, int], None]:
    """A function that a task calls with its level and the edges left there; see `event_reporter`.

    The driver adds up the edges left over all values of `part`.
    """
    send = event_reporter(topic)
    return lambda level, left: send(part=part, level=level, unsettled=left)


def event_reporter(topic: str | None) -> Callable[..., None]:
    """A function that a task calls with fields of an event. Must be made in the task's thread.

    The first call sends the driver an event under `topic`, and later calls at most one in 0.2 seconds; None sends no
    events.

    The function raises ClusterLost in a task whose result no client waits for any more, as after the driver was
    killed: Dask lets such a task run, and it would occupy its worker.
    """
    worker = get_worker()
    key, last = worker.get_current_task(), -inf

    def send(**fields: object) -> None:
        nonlocal last
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled" or worker.status in CLOSING:
            raise ClusterLost("nobody waits for this task any more")
        if topic is not None and time.monotonic() - last > _PROGRESS_SECONDS:
            last = time.monotonic()
            worker.log_event(topic, fields)

    return send
