"""A lock on the workers of a cluster. The scheduler takes it from a client whose connection is closed.

Dask's own lock belongs to no client: after its holder was killed, others wait until its lease of 30 s ends, and are not
told which run they wait for.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from distributed import Client, Scheduler
from distributed.comm.core import CommClosedError
from distributed.diagnostics.plugin import SchedulerPlugin

from ...tasks.errors import ClusterLost, UsageError
from ..output.lock import LockOwner

_RELEASING_SECONDS = 10
"""How long a release may take. A scheduler that is lost has no lock any more."""


class WorkerLocks(SchedulerPlugin):
    """The locks of a scheduler. Each has a queue of runs that want it, of which the first holds it."""

    name = "edgemill-locks"
    idempotent = True

    def __init__(self) -> None:
        self._wanted: dict[str, dict[str, dict[str, Any]]] = {}
        """Lock → token of a run → the run that wants the lock"""

    async def start(self, scheduler: Scheduler) -> None:
        """Have the scheduler answer the calls of `WorkerLock`."""
        self._clients, self._changed = scheduler.clients, asyncio.Event()
        scheduler.handlers |= {"edgemill_lock": self.lock, "edgemill_unlock": self.unlock}

    async def lock(
        self, name: str, token: str, client: str, who: dict[str, Any], seen: str | None
    ) -> dict[str, Any] | None:
        """Wait for the lock `name`. Returns None once the run with `token` holds it. If another run than `seen` holds
        it meanwhile, returns that run; the caller then asks again.
        """
        wanted = self._wanted.setdefault(name, {})
        if token not in wanted:
            if client not in self._clients:
                raise ClusterLost("the Dask scheduler has closed the connection of this client; run again")
            wanted[token] = {"token": token, "client": client, **who}
            self._change(name)
        while token in wanted:
            holder = next(iter(wanted))
            if holder == token:
                return None
            if holder != seen:
                return wanted[holder]
            await self._changed.wait()
        raise ClusterLost("the Dask scheduler has closed the connection of this client; run again")

    async def unlock(self, name: str, token: str) -> None:
        """Remove the run with `token` from the queue of the lock. If this run held the lock, the next run gets it."""
        if self._wanted.get(name, {}).pop(token, None) is not None:
            self._change(name)

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        """Called when the connection of a client is closed."""
        for name, wanted in self._wanted.items():
            for token in [token for token, who in wanted.items() if who["client"] == client]:
                del wanted[token]
                self._change(name)

    def _change(self, name: str) -> None:
        wanted = self._wanted[name]
        if wanted:
            wanted[next(iter(wanted))].setdefault("since", datetime.now(UTC).isoformat(timespec="seconds"))
        self._changed.set()
        self._changed = asyncio.Event()


class WorkerLock:
    """The lock `name` of a cluster, for one run. Whoever makes it calls `release` at the end."""

    def __init__(self, client: Client, name: str, run_id: str) -> None:
        """Raises UsageError if the scheduler refuses the plugin, ClusterLost if the scheduler does not answer."""
        self._client, self._name, self._token = client, name, uuid4().hex
        self._who = LockOwner.here(run_id).model_dump(include={"run", "user", "host", "pid"})
        self._seen: str | None = None
        try:
            client.register_plugin(WorkerLocks())
        except ValueError as error:
            raise UsageError(
                "the Dask scheduler refuses a plugin: set distributed.scheduler.pickle to true for it"
            ) from error
        except OSError as error:
            raise ClusterLost(f"lost the Dask scheduler: {error}; run again") from error

    async def acquire(self) -> str:
        """Wait for the lock, in the client's event loop. Returns "" once this run has it. If another run has it now,
        returns a text that names that run: then call this again.
        """
        scheduler: Any = self._client.scheduler
        holder = await scheduler.edgemill_lock(
            name=self._name, token=self._token, client=self._client.id, who=self._who, seen=self._seen
        )
        if holder is None:
            return ""
        self._seen = holder["token"]
        return "run {run} of {user}, process {pid} on {host}, since {since}".format_map(holder)

    def release(self) -> None:
        """Give the lock to the next run. Does nothing if the run does not have it, or the scheduler is lost."""
        scheduler: Any = self._client.scheduler
        with suppress(OSError, CommClosedError, TimeoutError, AttributeError):
            self._client.sync(
                scheduler.edgemill_unlock, name=self._name, token=self._token, callback_timeout=_RELEASING_SECONDS
            )
