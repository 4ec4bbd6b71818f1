"""The connections of one group of shards to all others, in the event loop of its Dask worker.

Each group opens one connection to each other group and sends its packets on it in order. A receiver takes a group for
lost if its connection ends without notice, or if no heartbeat arrives: the event loop sends one each second, however
long the task computes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from distributed import Worker
from distributed.comm.core import connect

from ....tasks.errors import ClusterLost, EdgemillError, InternalError
from ....tasks.shards.carriers.carrier import Packet, lost
from ..this_worker import CLOSING
from .packet_messages import ABANDONED, ENDED, HEARTBEAT, Inbox, Message

HANDLER = "edgemill_carrier"
"""Name of the worker's handler that accepts the connections."""
HEARTBEAT_SECONDS = 1.0
CLOSING_SECONDS = 5.0


class GroupConnections:
    """Connections of one group to and from all others. All of it runs in the worker's event loop, but `ready`."""

    def __init__(self, worker: Worker, run: str, rank: int, groups: int, silence: float) -> None:
        self.worker, self.rank, self.groups = worker, rank, groups
        self.ready: SimpleQueue[tuple[int, list[Packet | None]] | EdgemillError] = SimpleQueue()
        """For the task's thread: an exchange and its packets, or the error that ends the exchanges."""
        self.heartbeats = 0
        """Heartbeats that the event loop has sent."""
        self.inbox = Inbox(run, groups)
        self._silence = silence
        self._error: EdgemillError | None = None
        self._out: dict[int, Any] = {}
        self._in: dict[int, Any] = {}
        self._all_in = asyncio.Event()
        self._none_in = asyncio.Event()
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended: set[int] = set()
        self._exchange = 0
        self._silent = [0.0] * groups
        """[groups] seconds since the last message."""

    @property
    def key(self) -> tuple[str, int]:
        """The run and the group's rank."""
        return self.inbox.run, self.rank

    # Opening and closing

    async def open(self, addresses: Sequence[str], seconds: float) -> None:
        """Connect to all other groups, on workers at `addresses` [groups]. Raises ClusterLost, InternalError."""
        others = [group for group in range(self.groups) if group != self.rank]
        if others:
            try:
                async with asyncio.timeout(seconds):
                    await asyncio.gather(*(self._start(self._connect(g, addresses[g], seconds)) for g in others))
                    await self._all_in.wait()
                if self._error is not None:
                    raise self._error
            except TimeoutError as error:
                missing = [str(group) for group in others if group not in self._in or group not in self._out]
                raise ClusterLost(
                    f"groups {', '.join(missing)} of the shards did not connect to the others; run again"
                ) from error
        self._start(self._send_heartbeats())

    async def _connect(self, other: int, address: str, seconds: float) -> None:
        """Open the connection to a group. Tries again while its task has not started."""
        hello = {"op": HANDLER, "run": self.inbox.run, "sender": self.rank, "receiver": other}
        hello |= {"groups": self.groups, "seconds": seconds}
        pause = 0.02
        while self._error is None and other not in self._ended:
            comm = None
            try:
                comm = await connect(address, timeout=seconds, **self.worker.connection_args)
                await comm.write(hello)
                answer = await comm.read()
                if isinstance(answer, dict) and "welcome" in answer:
                    if answer["refused"]:
                        raise InternalError(f"group {other} of the shards refuses this one: {answer['refused']}")
                    if answer["ended"]:
                        raise lost(other, "has ended")
                    if answer["welcome"]:
                        self._out[other], comm = comm, None
                        return
            except OSError:  # the other worker has no handler yet, or is lost
                pass
            finally:
                if comm is not None:
                    comm.abort()
            await asyncio.sleep(pause)
            pause = min(2 * pause, 0.5)
        raise self._error or lost(other, "ended before the others")

    def refusal(self, sender: int, groups: int) -> str:
        """Why a connection from `sender`, one of `groups` groups, is not accepted; empty if it is."""
        if groups != self.groups:
            return f"{groups} groups of shards meet {self.groups}"
        if sender in self._in or sender == self.rank or not 0 <= sender < groups:
            return f"there are two groups {sender}"
        return ""

    async def close(self) -> None:
        """End all connections. Packets that were sent still arrive."""
        await self._send_to_all([ENDED, self.inbox.run, self._exchange])
        self._error = self._error or lost(self.rank, "has ended")
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for comm in self._out.values():
            try:
                await asyncio.wait_for(comm.close(), CLOSING_SECONDS)
            except (TimeoutError, OSError):
                comm.abort()
        for comm in list(self._in.values()):
            comm.abort()
        if self._in:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._none_in.wait(), CLOSING_SECONDS)

    # Sending

    def send(self, exchange: int, messages: Sequence[Sequence[Message]]) -> None:
        """Send each other group its messages of an exchange."""
        self._exchange = exchange
        self._check_ended()
        self._start(self._send(messages))

    async def _send(self, messages: Sequence[Sequence[Message]]) -> None:
        async with self._writing:
            for other, comm in self._out.items():
                with suppress(OSError):  # the receiving side reports the lost group
                    for message in messages[other]:
                        await comm.write(message)

    async def abandon(self) -> None:
        """Tell all other groups that this group fails."""
        await self._send_to_all([ABANDONED, self.inbox.run, self._exchange])

    async def _send_to_all(self, message: Message) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._send([[message]] * self.groups), CLOSING_SECONDS)

    async def _send_heartbeats(self) -> None:
        """Send heartbeats, and check those of other groups, until the group or the worker closes."""
        while self.worker.status not in CLOSING:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            self.heartbeats += 1
            for other in self._in:
                self._silent[other] += HEARTBEAT_SECONDS
                if self._silent[other] > self._silence and other not in self._ended:
                    self._fail(lost(other, f"sent no heartbeat for {self._silence:g} seconds"))
            if not self._writing.locked():
                async with self._writing:
                    for comm in self._out.values():
                        with suppress(OSError):
                            await comm.write(HEARTBEAT)
        self._fail(lost(self.rank, "has a worker that closes"))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Receiving

    async def listen(self, comm: Any, sender: int) -> None:
        """Receive the messages of a connection until it ends."""
        self._in[sender] = comm
        if len(self._in) == self.groups - 1:
            self._all_in.set()
        try:
            while self._error is None:
                message = await comm.read()
                self._silent[sender] = 0.0
                if message != HEARTBEAT:
                    self._take(sender, message)
        except OSError:
            if sender not in self._ended:
                self._fail(lost(sender, "is lost"))
        except EdgemillError as error:
            self._fail(error)
        except Exception as error:
            self._fail(InternalError(f"a packet of group {sender} of the shards cannot be read: {error!r}"))
        except asyncio.CancelledError:
            self._fail(lost(self.rank, "has a worker that closes"))
            raise
        finally:
            del self._in[sender]
            if not self._in:
                self._none_in.set()

    def _take(self, sender: int, message: Message) -> None:
        kind = message[0]
        if kind == ABANDONED:
            raise lost(sender, "failed")
        if kind == ENDED:
            self._ended.add(sender)
            self._check_ended()
            return
        complete = self.inbox.take(sender, message)
        if complete is not None:
            self.ready.put(complete)

    def _check_ended(self) -> None:
        """Fail if a group has ended before it sent its packet of this exchange."""
        for other in self._ended:
            if self.inbox.received[other] < self._exchange:
                self._fail(lost(other, "ended before the others"))

    def _fail(self, error: EdgemillError) -> None:
        if self._error is None:
            self._error = error
            self.ready.put(error)
            self._all_in.set()
