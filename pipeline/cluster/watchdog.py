"""Ends waiting that cannot succeed: by default a Dask scheduler without a worker for a task keeps the task for ever."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeVar

from distributed import Client
from distributed.comm.core import CommClosedError

from ...tasks.errors import ClusterLost

T = TypeVar("T")
_TELLING_SECONDS = 10.0
"""Time without an event after which the run tells what it waits for."""
_CHECKS = 10
"""Checks of the cluster within the time after which waiting ends if no task can run."""
_PERIOD_SECONDS = 5.0
"""Most time between two checks. Work that ends sooner needs no check."""


def workers_of(client: Client, seconds: float | None = None) -> dict[str, Any]:
    """What the scheduler says of each worker, by address. Raises TimeoutError if it does not answer within `seconds`,
    and ClusterLost if the client is closed.

    This asks the scheduler, since `Client.scheduler_info` reads the client's copy, which is empty during each refresh.
    """
    scheduler: Any = client.scheduler
    if scheduler is None:
        raise ClusterLost("the Dask client is closed, or was never connected: make another")
    found: dict[str, Any] = client.sync(scheduler.identity, n_workers=-1, callback_timeout=seconds)["workers"]
    return found


class WorkerLost(ClusterLost):
    """A worker is lost to which a task was bound."""


class Watchdog:
    """Checks a cluster while the driver waits, whatever limits of its own the cluster has.

    Raises ClusterLost when for `seconds` no worker could run the tasks of the run `run_id`, and WorkerLost when a
    worker is lost to which a task is bound.
    """

    def __init__(self, client: Client, run_id: str, seconds: float, tell: Callable[[str], None]) -> None:
        """`tell` is called with why no task can run, and with "" when one can."""
        self._scheduler: Any = client.scheduler
        self._run_id, self._seconds, self._tell = run_id, seconds, tell
        self._reason, self._since = "", 0.0
        """Why no task can run, and since when."""
        self._told = ""
        self._last_seen: dict[str, tuple[float, float]] = {}
        """Worker → when the scheduler last heard of it, by its clock, and when that value last changed, by ours."""

    async def watch(self, work: Awaitable[T], resources: Collection[str] = (), only: Collection[str] = ()) -> T:
        """The result of `work`. Its tasks need workers with all `resources`, and the workers `only` if there are any.

        Runs in the client's event loop.
        """
        self._reason, self._last_seen = "", {}
        period = min(_PERIOD_SECONDS, self._seconds / _CHECKS)
        task = asyncio.ensure_future(work)
        task.add_done_callback(_retrieve_exception)
        try:
            while not (await asyncio.wait([task], timeout=period))[0]:
                await self._check(resources, only)
        finally:
            self._tell_once("")
        return await task

    def _tell_once(self, reason: str) -> None:
        if reason != self._told:
            self._told = reason
            self._tell(reason)

    async def _identity(self) -> Mapping[str, Any]:
        """What the scheduler says of itself. Raises TimeoutError if it does not answer in time."""
        asked = asyncio.ensure_future(self._scheduler.identity(n_workers=-1))
        asked.add_done_callback(_retrieve_exception)
        quiet = min(_TELLING_SECONDS, self._seconds / 2)
        if not (await asyncio.wait([asked], timeout=quiet))[0]:
            at = self._scheduler.address
            self._tell_once(f"at most {self._seconds:g} s for the Dask scheduler at {at}, which does not answer")
        answer: Mapping[str, Any] = await asyncio.wait_for(asked, self._seconds - quiet)
        return answer

    async def _check(self, resources: Collection[str], only: Collection[str]) -> None:
        try:
            workers: Mapping[str, Any] = (await self._identity())["workers"]
        except TimeoutError as error:
            raise ClusterLost(
                f"the Dask scheduler has not answered for {self._seconds:g} s (cluster.waiting_seconds); run again"
            ) from error
        except (OSError, CommClosedError):
            return  # the client notices that the connection is closed, and raises
        for address in only:
            if address not in workers:
                raise WorkerLost(f"the worker at {address} was lost at the start of the run; run again")
        now = time.monotonic()
        reason = self._why_no_task_can_run(workers, resources, now)
        if reason != self._reason:
            self._reason, self._since = reason, now
            self._tell_once("")
        if reason and now - self._since >= _TELLING_SECONDS:
            self._tell_once(f"for workers, at most {self._seconds:g} s: {reason}")
        if reason and now - self._since >= self._seconds:
            raise ClusterLost(
                f"no task could run for {self._seconds:g} s (cluster.waiting_seconds): {reason}; "
                "start workers and run again"
            )
        await self._refuse_frozen_workers(now)

    def _why_no_task_can_run(self, workers: Mapping[str, Any], resources: Collection[str], now: float) -> str:
        """Empty if a task can run at present. Updates when each worker was last seen."""
        before = self._last_seen
        self._last_seen = {
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
        if not any(changed == now for _, changed in self._last_seen.values()):
            return f"none of {len(workers)} workers sends heartbeats"
        return ""

    async def _refuse_frozen_workers(self, now: float) -> None:
        """Raises ClusterLost for a frozen worker with tasks or results of the run that the scheduler does not remove.

        Dask's own limit, `distributed.scheduler.worker-ttl`, removes it earlier unless that limit is more than twice
        this one.
        """
        frozen = [address for address, (_, changed) in self._last_seen.items() if now - changed > 2 * self._seconds]
        if not frozen:
            return
        processing = await self._scheduler.processing(workers=frozen)
        results = await self._scheduler.has_what(workers=frozen)
        for address in frozen:
            keys = [*processing.get(address, ()), *results.get(address, ())]
            if any(self._run_id in str(key) for key in keys):
                raise ClusterLost(
                    f"the worker at {address} has tasks of this run and sends no heartbeat: stop it, or set "
                    "distributed.scheduler.worker-ttl for that scheduler, and run again"
                )


def _retrieve_exception(task: asyncio.Future[Any]) -> None:
    """Retrieve the exception of work that is no longer awaited, which asyncio would report on stderr otherwise.

    The work is not cancelled: Dask's `gather` would leave its own tasks running. It ends when its futures are released.
    """
    if not task.cancelled():
        task.exception()
