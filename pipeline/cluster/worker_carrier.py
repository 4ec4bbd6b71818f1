"""A carrier between groups of shards on different workers, over Dask's own connections.

Each group opens one connection to each other group and sends its packets on it in order. A long packet is cut into
pieces: Dask sends larger messages through another thread, and a long one would delay the heartbeats that follow it. A
receiver takes a group for lost if its connection ends without notice, or if no heartbeat arrives: the event loop sends
a heartbeat each second, however long the task computes.

A worker has a handler for such connections while one of its groups is open, as it has one for Dask's P2P shuffle. TLS,
protocols and addresses are therefore those of the cluster, no other port is open, and Dask refuses processes without a
certificate.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from distributed import Worker
from distributed.comm.core import connect
from distributed.core import Status
from distributed.protocol.serialize import to_serialize

from ...tasks.errors import ClusterLost, EdgemillError, InternalError
from ...tasks.shards.carriers.carrier import GroupPacket, Words, check_words, lost
from .this_worker import CLOSING

PIECE_WORDS = 2**21
_SMALL_BYTES = 2**16
"""Packets up to this size travel as one byte string."""
PACKET, MORE, ABANDONED, ENDED = range(4)
"""Kinds of messages: the first piece of a packet, a later piece, a group that fails, a group that ends."""
HEARTBEAT = b""

Message: TypeAlias = Sequence[Any]
"""A list: kind, run, exchange; then for PACKET the numbers of common and own words and a piece, for MORE a piece."""


def messages_of(run: str, exchange: int, common: Words, own: Sequence[Words], rank: int) -> list[list[Message]]:
    """[groups] the messages to each group; none to the group `rank`. The caller must not change `common` later."""
    found: list[list[Message]] = []
    text = common.tobytes() if common.nbytes <= _SMALL_BYTES else None
    for group, words in enumerate(own):
        if group == rank:
            found.append([])
        elif text is not None and common.nbytes + words.nbytes <= _SMALL_BYTES:
            found.append([[PACKET, run, exchange, len(common), len(words), text + words.tobytes()]])
        else:
            first, *others = [*_pieces(common), *_pieces(words.copy())]
            found.append([[PACKET, run, exchange, len(common), len(words), to_serialize(first)]])
            found[group] += [[MORE, run, exchange, to_serialize(piece)] for piece in others]
    return found


def _pieces(words: Words) -> list[Words]:
    return [words[start : start + PIECE_WORDS] for start in range(0, len(words), PIECE_WORDS)]


class _Partial(NamedTuple):
    common: int
    words: Words
    """Both parts of the packet; the first `filled` words have arrived."""
    filled: int


class Inbox:
    """Puts the packets of one group together, from the messages of all other groups."""

    def __init__(self, run: str, groups: int) -> None:
        self.run = run
        self._groups = groups
        self.received = [0] * groups
        """[groups] the last exchange whose packet has arrived whole."""
        self._partial: dict[int, _Partial] = {}
        self._packets: dict[int, list[GroupPacket | None]] = {}
        self._missing: dict[int, int] = {}

    def take(self, sender: int, message: Message) -> tuple[int, list[GroupPacket | None]] | None:
        """Take a message of kind PACKET or MORE. Returns an exchange and its packets by sender when the last has
        arrived.

        Raises InternalError for a message of another run or exchange.
        """
        kind, run, exchange, *rest = message
        due = self.received[sender] + 1
        if run != self.run or exchange != due:
            raise InternalError(f"a packet of {run}, exchange {exchange}, came in {self.run}, exchange {due}")
        if kind == PACKET:
            common, own, piece = rest
            words = _words(piece)
            if len(words) == common + own:
                return self._arrived(sender, exchange, GroupPacket(words[:common], words[common:]))
            partial = _Partial(common, np.empty(common + own, np.uint32), 0)
        else:
            partial, words = self._partial.pop(sender), _words(rest[0])
        filled = partial.filled + len(words)
        partial.words[partial.filled : filled] = words
        if filled < len(partial.words):
            self._partial[sender] = partial._replace(filled=filled)
            return None
        return self._arrived(
            sender, exchange, GroupPacket(partial.words[: partial.common], partial.words[partial.common :])
        )

    def _arrived(self, sender: int, exchange: int, packet: GroupPacket) -> tuple[int, list[GroupPacket | None]] | None:
        self.received[sender] = exchange
        packets = self._packets.setdefault(exchange, [None] * self._groups)
        packets[sender] = packet
        missing = self._missing[exchange] = self._missing.get(exchange, self._groups - 1) - 1
        if missing:
            return None
        del self._missing[exchange]
        return exchange, self._packets.pop(exchange)


def _words(piece: bytes | Words) -> Words:
    return np.frombuffer(piece, np.uint32) if isinstance(piece, bytes) else piece


HANDLER = "edgemill_carrier"
"""Name of the worker's handler that accepts the connections."""
HEARTBEAT_SECONDS = 1.0
CLOSING_SECONDS = 5.0


class GroupConnections:
    """Connections of one group to and from all others. All of it runs in the worker's event loop, except the reading of
    `ready`.
    """

    def __init__(self, worker: Worker, run: str, rank: int, groups: int, silence: float) -> None:
        self.worker, self.rank, self.groups = worker, rank, groups
        self.ready: SimpleQueue[tuple[int, list[GroupPacket | None]] | EdgemillError] = SimpleQueue()
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
        """Open the connection to a group. Tries again until the task of that group has started."""
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
        """Send heartbeats, and check the heartbeats of other groups, until the group or the worker closes."""
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


SILENT_SECONDS = 25.0
"""How long a group may send no heartbeat."""


class WorkerCarrier:
    """Exchanges packets between Dask workers; see `Carrier`. `open` makes it, in the thread of a task."""

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

    def exchange(self, common: Words, own: Sequence[Words]) -> list[GroupPacket]:
        """See `Carrier.exchange`."""
        check_words(common, own, self.groups)
        if self._error is not None:
            raise self._error
        self._exchange += 1
        to_self = GroupPacket(common.copy(), own[self.rank].copy())
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

    def _wait(self) -> tuple[int, list[GroupPacket | None]] | EdgemillError:
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
