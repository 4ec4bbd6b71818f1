"""Letters between groups of shards on different workers, over Dask's own connections.

Each worker has one handler for it while a run needs one, as Dask's P2P shuffle has; so TLS, protocols and addresses are
those of the cluster, nothing else listens, and strangers are refused as Dask refuses them. Each group opens one
connection to each other group, and sends its letters on it in order. Letters are cut into pieces: Dask's larger
messages take a detour by another thread, and a long one would look like silence.

Who receives tells a lost group by a connection that ends without a word, or by silence: the event loop gives a sign of
life each second, however long the task computes.
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

from ..tasks.errors import ClusterLost, EdgemillError, InternalError
from ..tasks.shards.carrier import Letter, Words, check_words, lost

__all__ = ["WorkerCarrier"]

SILENT_SECONDS = 25.0
"""How long a group may give no sign of life."""
_HANDLER = "edgemill_carrier"
_BEAT_SECONDS = 1.0
_CLOSING_SECONDS = 5.0
_WAITING_SECONDS = 600.0
"""How long a connection may wait for the task that it is for."""
_PIECE_WORDS = 2**21
_SMALL_BYTES = 2**16
"""Letters up to this travel as one byte string."""
_LETTER, _MORE, _ABANDONED, _ENDED = range(4)
_ALIVE = b""
"""A sign of life."""
_GONE = (Status.closing, Status.closed, Status.failed)

Message: TypeAlias = Sequence[Any]
"""A list: kind, run, exchange; then for `_LETTER` words of `common` and of `own` and a piece, for `_MORE` a piece."""


class _Reception:
    """A worker's handler for connections from other groups. All of it runs in the worker's event loop."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._held = 0
        self._desks: dict[tuple[str, int], asyncio.Future[_Desk]] = {}
        self._ended: deque[tuple[str, int]] = deque(maxlen=256)

    @classmethod
    def at(cls, worker: Worker) -> _Reception:
        """The worker's; a new one if there is none."""
        handler: Any = worker.handlers.get(_HANDLER)
        return cls(worker) if handler is None else handler.__self__

    def hold(self) -> None:
        """Be there until `release` has been called as often."""
        self._held += 1
        self._worker.handlers[_HANDLER] = self.greet

    def release(self) -> None:
        """See `hold`."""
        self._held -= 1
        if not self._held:
            self._worker.handlers.pop(_HANDLER, None)

    def open(self, desk: _Desk) -> None:
        """Pass on connections for this run. Raises InternalError if the worker has a group of it already."""
        waiting = self._desks.setdefault(desk.key, asyncio.get_running_loop().create_future())
        if waiting.done() or desk.key in self._ended:
            raise InternalError(f"there are two groups {desk.rank} of the shards of {desk.run}")
        waiting.set_result(desk)
        self.hold()

    def close(self, desk: _Desk) -> None:
        """Refuse connections for this run from now on."""
        del self._desks[desk.key]
        self._ended.append(desk.key)
        self.release()

    async def greet(self, comm: Any, run: str, sender: int, receiver: int, groups: int, seconds: float) -> Status:
        """Dask's handler of a new connection: all that comes by it until it ends. Waits until the group opens here."""
        key = run, receiver
        desk, ended, refused = None, key in self._ended, ""
        if not ended:
            waiting = self._desks.setdefault(key, asyncio.get_running_loop().create_future())
            try:
                desk = await asyncio.wait_for(asyncio.shield(waiting), min(seconds, _WAITING_SECONDS))
                refused = desk.refusal(sender, groups)
            except TimeoutError:
                if self._desks.get(key) is waiting and not waiting.done():
                    del self._desks[key]
        welcome = desk is not None and not refused
        await comm.write({"welcome": welcome, "ended": ended, "refused": refused})
        if welcome and desk is not None:
            await desk.listen(comm, sender)
        comm.abort()
        return Status.dont_reply


class _Partial(NamedTuple):
    exchange: int
    common: int
    words: Words
    """Room for all."""
    filled: int


class _Desk:
    """What one group has in its worker's event loop: connections to and from all other groups."""

    def __init__(self, worker: Worker, run: str, rank: int, groups: int, silence: float) -> None:
        self.worker, self.run, self.rank, self.groups = worker, run, rank, groups
        self.ready: SimpleQueue[tuple[int, list[Letter | None]] | EdgemillError] = SimpleQueue()
        """For the task's thread: an exchange and its letters, or why there are none."""
        self.beats = 0
        self._silence = silence
        self._error: EdgemillError | None = None
        self._out: dict[int, Any] = {}
        self._in: dict[int, Any] = {}
        self._all_in = asyncio.Event()
        self._none_in = asyncio.Event()
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._inbox: dict[int, list[Letter | None]] = {}
        self._missing: dict[int, int] = {}
        self._received = [0] * groups
        self._partial: dict[int, _Partial] = {}
        self._ended: set[int] = set()
        self._exchange = 0
        self._silent = [0.0] * groups

    @property
    def key(self) -> tuple[str, int]:
        """Its run and group."""
        return self.run, self.rank

    # Opening and closing

    async def open(self, addresses: Sequence[str], seconds: float) -> None:
        """Connect with all others. Raises ClusterLost, InternalError."""
        others = [g for g in range(self.groups) if g != self.rank]
        if others:
            try:
                async with asyncio.timeout(seconds):
                    await asyncio.gather(*(self._start(self._connect(g, addresses[g], seconds)) for g in others))
                    await self._all_in.wait()
                if self._error is not None:
                    raise self._error
            except TimeoutError as error:
                missing = [str(g) for g in others if g not in self._in or g not in self._out]
                raise ClusterLost(
                    f"groups {', '.join(missing)} of the shards did not come to meet the others; run again"
                ) from error
        self._start(self._beat())

    async def _connect(self, other: int, address: str, seconds: float) -> None:
        """Open the connection to a group, which may not be there yet."""
        hello = {"op": _HANDLER, "run": self.run, "sender": self.rank, "receiver": other}
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
            except OSError:  # not there, or not yet
                pass
            finally:
                if comm is not None:
                    comm.abort()
            await asyncio.sleep(pause)
            pause = min(2 * pause, 0.5)
        raise self._error or lost(other, "ended before the others")

    def refusal(self, sender: int, groups: int) -> str:
        """Why a connection is not for this group; nothing if it is."""
        if groups != self.groups:
            return f"{groups} groups of shards meet {self.groups}"
        if sender in self._in or sender == self.rank or not 0 <= sender < groups:
            return f"there are two groups {sender}"
        return ""

    async def close(self) -> None:
        """End all connections. Letters that were sent arrive."""
        await self._tell_all([_ENDED, self.run, self._exchange])
        self._error = self._error or lost(self.rank, "has ended")
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for comm in self._out.values():
            try:
                await asyncio.wait_for(comm.close(), _CLOSING_SECONDS)
            except (TimeoutError, OSError):
                comm.abort()
        for comm in list(self._in.values()):
            comm.abort()
        if self._in:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._none_in.wait(), _CLOSING_SECONDS)
        _Reception.at(self.worker).close(self)

    # Sending

    def send(self, exchange: int, messages: Sequence[Sequence[Message]]) -> None:
        """Send each other group its messages of an exchange."""
        self._exchange = exchange
        self._check_ends()
        self._start(self._send(messages))

    async def _send(self, messages: Sequence[Sequence[Message]]) -> None:
        async with self._writing:
            for other, comm in self._out.items():
                with suppress(OSError):  # the connection from there ends as well, or ends with a word
                    for message in messages[other]:
                        await comm.write(message)

    async def abandon(self) -> None:
        """Tell all others that this group fails."""
        await self._tell_all([_ABANDONED, self.run, self._exchange])

    async def _tell_all(self, message: Message) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._send([[message]] * self.groups), _CLOSING_SECONDS)

    async def _beat(self) -> None:
        """Give signs of life, and miss those of others, until the group closes or the worker does."""
        while self.worker.status not in _GONE:
            await asyncio.sleep(_BEAT_SECONDS)
            self.beats += 1
            for other in self._in:
                self._silent[other] += _BEAT_SECONDS
                if self._silent[other] > self._silence and other not in self._ended:
                    self._fail(lost(other, f"gave no sign of life for {self._silence:g} seconds"))
            if not self._writing.locked():
                async with self._writing:
                    for comm in self._out.values():
                        with suppress(OSError):
                            await comm.write(_ALIVE)
        self._fail(lost(self.rank, "has a worker that closes"))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Receiving

    async def listen(self, comm: Any, sender: int) -> None:
        """Take what comes by a connection, until it ends."""
        self._in[sender] = comm
        if len(self._in) == self.groups - 1:
            self._all_in.set()
        try:
            while self._error is None:
                message = await comm.read()
                self._silent[sender] = 0.0
                if message != _ALIVE:
                    self._take(sender, message)
        except OSError:
            if sender not in self._ended:
                self._fail(lost(sender, "is lost"))
        except EdgemillError as error:
            self._fail(error)
        except Exception as error:
            self._fail(InternalError(f"a letter of group {sender} of the shards cannot be read: {error!r}"))
        except asyncio.CancelledError:
            self._fail(lost(self.rank, "has a worker that closes"))
            raise
        finally:
            del self._in[sender]
            if not self._in:
                self._none_in.set()

    def _take(self, sender: int, message: Message) -> None:
        kind, run, exchange, *rest = message
        if kind == _ABANDONED:
            raise lost(sender, "failed")
        if kind == _ENDED:
            self._ended.add(sender)
            self._check_ends()
            return
        due = self._received[sender] + 1
        if run != self.run or exchange != due:
            raise InternalError(f"a letter of {run}, exchange {exchange}, came in {self.run}, exchange {due}")
        if kind == _LETTER:
            common, own, piece = rest
            words = _words(piece)
            if len(words) == common + own:
                self._arrived(sender, exchange, Letter(words[:common], words[common:]))
                return
            partial = _Partial(exchange, common, np.empty(common + own, np.uint32), 0)
        else:
            partial, words = self._partial.pop(sender), _words(rest[0])
        filled = partial.filled + len(words)
        partial.words[partial.filled : filled] = words
        if filled < len(partial.words):
            self._partial[sender] = partial._replace(filled=filled)
        else:
            self._arrived(sender, exchange, Letter(partial.words[: partial.common], partial.words[partial.common :]))

    def _arrived(self, sender: int, exchange: int, letter: Letter) -> None:
        self._received[sender] = exchange
        letters = self._inbox.setdefault(exchange, [None] * self.groups)
        letters[sender] = letter
        missing = self._missing[exchange] = self._missing.get(exchange, self.groups - 1) - 1
        if not missing:
            del self._missing[exchange]
            self.ready.put((exchange, self._inbox.pop(exchange)))

    def _check_ends(self) -> None:
        """Fail if a group has ended that is to send a letter of this exchange yet."""
        for other in self._ended:
            if self._received[other] < self._exchange:
                self._fail(lost(other, "ended before the others"))

    def _fail(self, error: EdgemillError) -> None:
        if self._error is None:
            self._error = error
            self.ready.put(error)
            self._all_in.set()


class WorkerCarrier:
    """Carries between Dask workers; see `Carrier`. `open` gives it, in the thread of a task."""

    name = "Dask"

    def __init__(self, desk: _Desk) -> None:
        self.rank, self.groups = desk.rank, desk.groups
        self._desk, self._loop = desk, _loop(desk.worker)
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
        """Meet the groups at the `addresses` [groups] of their workers within so many `seconds`.

        All give the same `run`, which no other groups use. `worker` is that of the task that calls this. A group that
        is silent for `silence` seconds is lost. Raises ClusterLost, InternalError if the groups do not match.
        """

        async def opened() -> _Desk:
            desk = _Desk(worker, run, rank, len(addresses), silence)
            _Reception.at(worker).open(desk)
            try:
                await desk.open(addresses, seconds)
            except BaseException:
                await desk.close()
                raise
            return desk

        return cls(asyncio.run_coroutine_threadsafe(opened(), _loop(worker)).result())

    def exchange(self, common: Words, own: Sequence[Words]) -> list[Letter]:
        """See `Carrier.exchange`."""
        check_words(common, own, self.groups)
        if self._error is not None:
            raise self._error
        self._exchange += 1
        mine = Letter(common.copy(), own[self.rank].copy())
        if self.groups == 1:
            return [mine]
        desk = self._desk
        messages = _messages(desk.run, self._exchange, mine.common, own, self.rank)
        try:
            self._loop.call_soon_threadsafe(desk.send, self._exchange, messages)
        except RuntimeError as error:  # the loop is closed
            raise lost(self.rank, "has a worker that closes") from error
        given = self._await()
        if isinstance(given, EdgemillError):
            self._error = given
            raise given
        exchange, letters = given
        if exchange != self._exchange:
            raise InternalError(f"letters of exchange {exchange} came in exchange {self._exchange} of the shards")
        letters[self.rank] = mine
        return letters  # type: ignore[return-value]

    def _await(self) -> tuple[int, list[Letter | None]] | EdgemillError:
        """What comes from the event loop, if that runs."""
        desk, beats, silent = self._desk, self._desk.beats, 0.0
        while True:
            try:
                return desk.ready.get(timeout=_BEAT_SECONDS)
            except Empty:
                silent = 0.0 if beats != desk.beats else silent + _BEAT_SECONDS
                beats = desk.beats
                if silent > SILENT_SECONDS:
                    return lost(self.rank, "has a worker whose event loop stands still")

    def abandon(self) -> None:
        """See `Carrier.abandon`."""
        self._error = self._error or lost(self.rank, "failed")
        if not self._closed:
            self._run(self._desk.abandon())

    def close(self) -> None:
        """See `Carrier.close`."""
        self._error = self._error or lost(self.rank, "has ended")
        if not self._closed:
            self._closed = True
            self._run(self._desk.close())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it in the event loop, if that still runs."""
        try:
            asyncio.run_coroutine_threadsafe(work, self._loop).result(4 * _CLOSING_SECONDS)
        except RuntimeError:
            work.close()
        except TimeoutError:
            pass


def _loop(worker: Any) -> asyncio.AbstractEventLoop:
    """The event loop that a worker's connections belong to."""
    found: asyncio.AbstractEventLoop = worker.loop.asyncio_loop
    return found


def _messages(run: str, exchange: int, common: Words, own: Sequence[Words], rank: int) -> list[list[Message]]:
    """[groups] what to send to each; nothing to this one. `common` is a copy that nobody changes."""
    found: list[list[Message]] = []
    text = common.tobytes() if common.nbytes <= _SMALL_BYTES else None
    for g, words in enumerate(own):
        if g == rank:
            found.append([])
        elif text is not None and common.nbytes + words.nbytes <= _SMALL_BYTES:
            found.append([[_LETTER, run, exchange, len(common), len(words), text + words.tobytes()]])
        else:
            first, *more = [*_pieces(common), *_pieces(words.copy())]
            found.append([[_LETTER, run, exchange, len(common), len(words), to_serialize(first)]])
            found[g] += [[_MORE, run, exchange, to_serialize(piece)] for piece in more]
    return found


def _pieces(words: Words) -> list[Words]:
    return [words[at : at + _PIECE_WORDS] for at in range(0, len(words), _PIECE_WORDS)]


def _words(piece: bytes | Words) -> Words:
    return np.frombuffer(piece, np.uint32) if isinstance(piece, bytes) else piece
