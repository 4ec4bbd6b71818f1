"""A Dask worker's handler for connections from groups of shards on other workers.

The worker has it while one of its groups is open, as it has one for Dask's P2P shuffle. TLS, protocols and addresses
are therefore those of the cluster, no other port is open, and Dask refuses processes without a certificate.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from distributed import Worker
from distributed.core import Status

from ....tasks.errors import InternalError
from .group_connections import HANDLER, GroupConnections

_WAITING_SECONDS = 600.0
"""How long a connection may wait for the task of the group that it is for."""


class ConnectionHandler:
    """Passes connections to the groups of one worker. All of it runs in the worker's event loop."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._open = 0
        """Groups that are open."""
        self._groups: dict[tuple[str, int], asyncio.Future[GroupConnections]] = {}
        self._ended: deque[tuple[str, int]] = deque(maxlen=256)

    @classmethod
    def of(cls, worker: Worker) -> ConnectionHandler:
        """The handler of the worker, a new one if it has none."""
        handler: Any = worker.handlers.get(HANDLER)
        return cls(worker) if handler is None else handler.__self__

    def add(self, group: GroupConnections) -> None:
        """Pass connections to this group. Raises InternalError if the worker has such a group of the run already."""
        waiting = self._groups.setdefault(group.key, asyncio.get_running_loop().create_future())
        if waiting.done() or group.key in self._ended:
            run, rank = group.key
            raise InternalError(f"there are two groups {rank} of the shards of {run}")
        waiting.set_result(group)
        self._open += 1
        self._worker.handlers[HANDLER] = self.accept

    def remove(self, key: tuple[str, int]) -> None:
        """Refuse connections for this group from now on."""
        del self._groups[key]
        self._ended.append(key)
        self._open -= 1
        if not self._open:
            self._worker.handlers.pop(HANDLER, None)

    async def accept(self, comm: Any, run: str, sender: int, receiver: int, groups: int, seconds: float) -> Status:
        """Called for a new connection. Waits until the group opens, then receives until the connection ends."""
        key = run, receiver
        group, ended, refused = None, key in self._ended, ""
        if not ended:
            waiting = self._groups.setdefault(key, asyncio.get_running_loop().create_future())
            try:
                group = await asyncio.wait_for(asyncio.shield(waiting), min(seconds, _WAITING_SECONDS))
                refused = group.refusal(sender, groups)
            except TimeoutError:
                if self._groups.get(key) is waiting and not waiting.done():
                    del self._groups[key]
        welcome = group is not None and not refused
        await comm.write({"welcome": welcome, "ended": ended, "refused": refused})
        if welcome and group is not None:
            await group.listen(comm, sender)
        comm.abort()
        return Status.dont_reply
