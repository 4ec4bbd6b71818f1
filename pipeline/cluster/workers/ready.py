"""What a worker says before it joins its cluster: the page /ready, and events while it compiles kernels.

Dask's own /health answers before that, and a scheduler does not know a worker that has not joined.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from distributed import Client, Worker
from distributed.comm.core import CommClosedError
from distributed.core import Status
from distributed.http.utils import RequestHandler

_TOPIC = "edgemill-preparing"
"""Events of workers that compile kernels."""
_NOW = "edgemill-now"
_PERIOD_SECONDS = 5.0
"""Time between two events of a worker."""
_SILENT_SECONDS = 4 * _PERIOD_SECONDS
"""A worker that has sent no event for so long has died meanwhile."""


class Ready(RequestHandler):
    """Answers 200 while the worker belongs to a scheduler, and 503 before and after."""

    def get(self) -> None:
        """Answer with the worker's status."""
        status = self.server.status
        self.set_status(200 if status in (Status.running, Status.paused) else 503)
        self.write(status.name)


def serve_ready(worker: Worker) -> None:
    """Have the worker answer /ready at the address of its dashboard."""
    worker.http_application.add_handlers(".*$", [("/ready", Ready, {"dask_server": worker})])


async def tell_preparing(worker: Worker) -> None:
    """Tell the scheduler again and again that the worker prepares, until this is cancelled; then that it is ready."""
    since = time.time()
    try:
        while True:
            await _tell(worker, time.time() - since)
            await asyncio.sleep(_PERIOD_SECONDS)
    finally:
        await _tell(worker, None)


async def _tell(worker: Worker, seconds: float | None) -> None:
    with suppress(OSError, CommClosedError):  # the worker notices that its scheduler is lost when it joins
        await worker.scheduler.log_event(topic=_TOPIC, msg={"worker": worker.address, "seconds": seconds})


def still_preparing(client: Client, seconds: float) -> dict[str, float]:
    """Address of each worker that compiles kernels at present → for how many seconds it has done so.

    Raises TimeoutError if the scheduler does not answer within `seconds`.
    """
    scheduler: Any = client.scheduler

    def ask(function: Callable[..., Any], **arguments: Any) -> Any:
        return client.sync(function, **arguments, callback_timeout=seconds)

    ask(scheduler.log_event, topic=_NOW, msg={})  # the time of the scheduler's host, to compare the others with
    now, _ = ask(scheduler.events, topic=_NOW)[-1]
    found: dict[str, float] = {}
    for at, event in ask(scheduler.events, topic=_TOPIC):
        found.pop(event["worker"], None)
        if event["seconds"] is not None and now - at < _SILENT_SECONDS:
            found[event["worker"]] = event["seconds"]
    return found
