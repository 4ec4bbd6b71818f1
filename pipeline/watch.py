"""Whether anything can come of waiting: a scheduler that has no worker for a task keeps it, by default for ever."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Collection, Mapping
from typing import Any, TypeVar

from distributed import Client
from distributed.comm.core import CommClosedError

from ..tasks.errors import ClusterLost

__all__ = ["Watch", "WorkerGone", "workers_of"]

T = TypeVar("T")
_OFTEN = 10
"""Looks in the time that a lack may last."""
_PERIOD_SECONDS = 5.0
"""Most time between two looks. What ends sooner costs none."""


def workers_of(client: Client, seconds: float | None = None) -> dict[str, Any]:
    """What the scheduler says of each worker, by address. Raises TimeoutError if it says nothing for so long, and
    ClusterLost if the client is closed.

    `Client.scheduler_info` looks at what the client keeps, which a refresh every two seconds replaces by none.
    """
    scheduler: Any = client.scheduler
    if scheduler is None:
        raise ClusterLost("the Dask client is closed, or was never connected: make another")
    found: dict[str, Any] = client.sync(scheduler.identity, n_workers=-1, callback_timeout=seconds)["workers"]
    return found


class WorkerGone(ClusterLost):
    """A worker went away that a task was to run on, and on no other."""


class Watch:
    """Looks at a cluster while the driver waits, whatever that cluster's own limits are.

    Raises ClusterLost in place of the waiting when for `seconds` no worker could run the tasks of the run `run_id`, and
    WorkerGone when one of those that a task is bound to went away.
    """

    def __init__(self, client: Client, run_id: str, seconds: float) -> None:
        self._scheduler: Any = client.scheduler
        self._run_id, self._seconds = run_id, seconds
        self._lack, self._since = "", 0.0
        self._heard: dict[str, tuple[float, float]] = {}
        """Worker → when the scheduler heard of it last, by its clock, and when that was seen to change, by ours."""

    async def over(self, work: Awaitable[T], resources: Collection[str] = (), only: Collection[str] = ()) -> T:
        """What `work` gives; its tasks need workers with all the `resources`, and the workers `only` if there are any.

        Runs in the client's loop.
        """
        self._lack, self._heard = "", {}
        period = min(_PERIOD_SECONDS, self._seconds / _OFTEN)
        task = asyncio.ensure_future(work)
        task.add_done_callback(_heed)
        while not (await asyncio.wait([task], timeout=period))[0]:
            await self._look(resources, only)
        return await task

    async def _look(self, resources: Collection[str], only: Collection[str]) -> None:
        try:
            identity = self._scheduler.identity(n_workers=-1)
            workers: Mapping[str, Any] = (await asyncio.wait_for(identity, self._seconds))["workers"]
        except TimeoutError as error:
            raise ClusterLost(f"the Dask scheduler has not answered for {self._seconds:g} s; run again") from error
        except (OSError, CommClosedError):
            return  # the client sees that the connection is gone, and says so
        for address in only:
            if address not in workers:
                raise WorkerGone(f"the worker at {address} went away while the run began; run again")
        now = time.monotonic()
        lack = self._lacking(workers, resources, now)
        if lack != self._lack:
            self._lack, self._since = lack, now
        if lack and now - self._since >= self._seconds:
            raise ClusterLost(
                f"no task could run for {self._seconds:g} s (cluster.waiting_seconds): {lack}; "
                "start workers and run again"
            )
        await self._refuse_the_silent(now)

    def _lacking(self, workers: Mapping[str, Any], resources: Collection[str], now: float) -> str:
        """Why no task can run at present; empty if one can."""
        before = self._heard
        self._heard = {
            address: before[address]
            if address in before and before[address][0] == worker["last_seen"]
            else (worker["last_seen"], now)
            for address, worker in workers.items()
        }
        if not workers:
            return "the cluster has no workers"
        for resource in resources:
            if not any(resource in worker["resources"] for worker in workers.values()):
                return f"no worker has the resource {resource}"
        if not any(heard == now for _, heard in self._heard.values()):
            return f"none of {len(workers)} workers gives a sign of life"
        return ""

    async def _refuse_the_silent(self, now: float) -> None:
        """Raises ClusterLost for a worker that the scheduler keeps though it is frozen, with tasks or results of ours.

        Dask's own limit, `distributed.scheduler.worker-ttl`, comes first unless it is set to more than twice ours.
        """
        silent = [address for address, (_, heard) in self._heard.items() if now - heard > 2 * self._seconds]
        if not silent:
            return
        running = await self._scheduler.processing(workers=silent)
        holding = await self._scheduler.has_what(workers=silent)
        for address in silent:
            keys = [*running.get(address, ()), *holding.get(address, ())]
            if any(self._run_id in str(key) for key in keys):
                raise ClusterLost(
                    f"the worker at {address} has tasks of this run and gives no sign of life: end it, or set "
                    "distributed.scheduler.worker-ttl for that scheduler, and run again"
                )


def _heed(task: asyncio.Future[Any]) -> None:
    """Take note of how it ended: what is given up ends when its futures are let go.

    Cancelled, Dask's `gather` would leave its own tasks alone, and asyncio would report each of them on stderr.
    """
    if not task.cancelled():
        task.exception()
