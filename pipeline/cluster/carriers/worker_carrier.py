"""A carrier between groups of shards on different workers, over Dask's own connections."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from queue import Empty
from typing import Any

from distributed import Worker

from ....tasks.errors import EdgemillError, InternalError
from ....tasks.shards.carriers.carrier import Packet, Words, check_words, lost
from .connection_handler import ConnectionHandler
from .group_connections import CLOSING_SECONDS, HEARTBEAT_SECONDS, GroupConnections
from .packet_messages import messages_of

SILENT_SECONDS = 25.0
"""How long a group may send no heartbeat."""


class WorkerCarrier:
    """Carries between Dask workers; see `Carrier`. `open` makes one, in the thread of a task."""

    name = "Dask"

    def __init__(self, connections: GroupConnections) -> None:
        self.rank, self.groups = connections.rank, connections.groups
        self._connections, self._loop = connections, _event_loop(connections.worker)
        self._key = connections.key
        self._exchange = 0
        self._closed = False
        self._error: EdgemillError | None = None

    @classmethod
    def open(
        cls,
        worker: Worker,
        run: str,
        rank: int,
        addresses: Sequence[str],
        seconds: float,
        silence: float = SILENT_SECONDS,
    ) -> WorkerCarrier:
        """Connect group `rank` to the groups at the `addresses` [groups] of their workers, within `seconds`.

        All groups pass the same `run`, which no other groups use. `worker` runs the task that calls this. A group
        without a heartbeat for `silence` seconds is lost. Raises ClusterLost, InternalError if the groups do not match.
        """

        async def opened() -> GroupConnections:
            connections = GroupConnections(worker, run, rank, len(addresses), silence)
            handler = ConnectionHandler.of(worker)
            handler.add(connections)
            try:
                await connections.open(addresses, seconds)
            except BaseException:
                await connections.close()
                handler.remove(connections.key)
                raise
            return connections

        return cls(asyncio.run_coroutine_threadsafe(opened(), _event_loop(worker)).result())

    def exchange(self, common: Words, own: Sequence[Words]) -> list[Packet]:
        """See `Carrier.exchange`."""
        check_words(common, own, self.groups)
        if self._error is not None:
            raise self._error
        self._exchange += 1
        to_self = Packet(common.copy(), own[self.rank].copy())
        if self.groups == 1:
            return [to_self]
        connections = self._connections
        messages = messages_of(connections.inbox.run, self._exchange, to_self.common, own, self.rank)
        try:
            self._loop.call_soon_threadsafe(connections.send, self._exchange, messages)
        except RuntimeError as error:  # the event loop is closed
            raise lost(self.rank, "has a worker that closes") from error
        received = self._wait()
        if isinstance(received, EdgemillError):
            self._error = received
            raise received
        exchange, packets = received
        if exchange != self._exchange:
            raise InternalError(f"packets of exchange {exchange} came in exchange {self._exchange} of the shards")
        packets[self.rank] = to_self
        return packets  # type: ignore[return-value]

    def _wait(self) -> tuple[int, list[Packet | None]] | EdgemillError:
        """The next entry of `ready`; an error if the event loop stops sending heartbeats."""
        connections, heartbeats, silent = self._connections, self._connections.heartbeats, 0.0
        while True:
            try:
                return connections.ready.get(timeout=HEARTBEAT_SECONDS)
            except Empty:
                silent = 0.0 if heartbeats != connections.heartbeats else silent + HEARTBEAT_SECONDS
                heartbeats = connections.heartbeats
                if silent > SILENT_SECONDS:
                    return lost(self.rank, "has a worker whose event loop is blocked")

    def abandon(self) -> None:
        """See `Carrier.abandon`."""
        self._error = self._error or lost(self.rank, "failed")
        if not self._closed:
            self._run(self._connections.abandon())

    def close(self) -> None:
        """See `Carrier.close`."""
        self._error = self._error or lost(self.rank, "has ended")
        if not self._closed:
            self._closed = True
            self._run(self._close())

    async def _close(self) -> None:
        await self._connections.close()
        ConnectionHandler.of(self._connections.worker).remove(self._key)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the event loop, if the loop still runs."""
        try:
            asyncio.run_coroutine_threadsafe(work, self._loop).result(4 * CLOSING_SECONDS)
        except RuntimeError:
            work.close()
        except TimeoutError:
            pass


def _event_loop(worker: Any) -> asyncio.AbstractEventLoop:
    """The event loop of a worker's connections."""
    loop: asyncio.AbstractEventLoop = worker.loop.asyncio_loop
    return loop
