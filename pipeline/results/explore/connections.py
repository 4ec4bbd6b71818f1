"""The connections of the explorer's server: a thread for each complete request, and time limits for incomplete ones."""

from __future__ import annotations

import errno
import selectors
import socket
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from threading import BoundedSemaphore, Event, Lock
from time import monotonic
from typing import Any

_BACKLOG = 1024
"""Connections that the kernel accepts before the server does. Linux allows at most net.core.somaxconn, 4096."""
_THREADS = 64
_WAITING = 512
"""Connections without a thread: their requests are incomplete, or all threads are taken. One more closes the oldest
that is incomplete.
"""
_IDLE_SECONDS = 30.0
"""Time for a connection to send the first byte. Browsers open connections in advance and leave them idle."""
_HEAD_SECONDS = 5.0
"""Time for the rest of a request, from its first byte."""
_HEAD_BYTES = 1 << 16
"""Most bytes of a request. The page's have less than 2,000."""
_CLOSING_SECONDS = 5.0
"""Time for running answers to finish when the server closes."""


@dataclass
class _Client:
    """A connection that has no thread yet."""

    connection: socket.socket
    address: Any
    since: float
    """When it was accepted; when the first byte came, once it has."""
    request: bytearray = field(default_factory=bytearray)

    @property
    def end(self) -> float:
        """When its time is over."""
        return self.since + (_HEAD_SECONDS if self.request else _IDLE_SECONDS)

    @property
    def is_complete(self) -> bool:
        """Whether the request has a head, and with it all that a GET has; or more bytes than one may have."""
        return b"\r\n\r\n" in self.request or b"\n\n" in self.request or len(self.request) > _HEAD_BYTES


class BoundedServer(ThreadingHTTPServer):
    """A server with at most 64 threads, one for each request that is complete.

    The thread of `serve_forever` reads all requests, so connections that send nothing, or half a request, cost no
    thread: they are closed after 30 seconds, and 5 seconds after their first byte. At most 512 connections have no
    thread; a further one closes the oldest of them that is incomplete. A handler reads its request from `taken`.
    `server_close` waits up to 5 seconds for running answers.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = _BACKLOG

    def __init__(self, *arguments: Any) -> None:
        self._threads_left = BoundedSemaphore(_THREADS)
        self._stopping, self._ended = Event(), Event()
        self._ended.set()
        self._reading: dict[socket.socket, _Client] = {}
        """Connections whose requests are incomplete, oldest first."""
        self._ready: deque[_Client] = deque()
        """Those whose requests are complete, and wait for a thread."""
        self._taken: dict[socket.socket, bytes] = {}
        """The requests of connections with a thread."""
        self._lock = Lock()
        self._waker, self._woken = socket.socketpair()
        self._waker.setblocking(False)
        super().__init__(*arguments)

    def taken(self, connection: socket.socket) -> bytes:
        """The request of a connection with a thread."""
        return self._taken[connection]

    def serve_forever(self, poll_interval: float = 0.5) -> None:
        """Read and answer requests until `shutdown`. It waits for events, so `poll_interval` is not used."""
        self._ended.clear()
        self.socket.setblocking(False)
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self.socket, selectors.EVENT_READ)
                selector.register(self._woken, selectors.EVENT_READ)
                while not self._stopping.is_set():
                    left = min((client.end for client in self._reading.values()), default=None)
                    for key, _ in selector.select(None if left is None else max(0.0, left - monotonic())):
                        if key.fileobj is self.socket:
                            self._accept(selector)
                        elif key.fileobj is self._woken:
                            self._woken.recv(4096)
                        elif (client := self._reading.get(key.fileobj)) is not None:  # type: ignore[call-overload]
                            self._read(selector, client)
                    self._close_late(selector)
                    self._start_threads()
        finally:
            for client in (*self._reading.values(), *self._ready):
                super().shutdown_request(client.connection)
            self._reading.clear()
            self._ready.clear()
            self._ended.set()

    def _accept(self, selector: selectors.BaseSelector) -> None:
        try:
            connection, address = self.get_request()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._drop_oldest(selector)
            return  # else the client has gone
        if len(self._reading) + len(self._ready) >= _WAITING:
            self._drop_oldest(selector)
        connection.setblocking(False)
        self._reading[connection] = _Client(connection, address, monotonic())
        selector.register(connection, selectors.EVENT_READ)

    def _read(self, selector: selectors.BaseSelector, client: _Client) -> None:
        try:
            piece = client.connection.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:
            return self._drop(selector, client)
        if not client.request:
            client.since = monotonic()
        client.request += piece
        if client.is_complete:
            selector.unregister(client.connection)
            del self._reading[client.connection]
            self._ready.append(client)

    def _close_late(self, selector: selectors.BaseSelector) -> None:
        now = monotonic()
        for client in [client for client in self._reading.values() if client.end <= now]:
            self._drop(selector, client)

    def _drop_oldest(self, selector: selectors.BaseSelector) -> None:
        if self._reading:
            self._drop(selector, next(iter(self._reading.values())))

    def _drop(self, selector: selectors.BaseSelector, client: _Client) -> None:
        selector.unregister(client.connection)
        del self._reading[client.connection]
        super().shutdown_request(client.connection)

    def _start_threads(self) -> None:
        while self._ready and self._threads_left.acquire(blocking=False):
            client = self._ready.popleft()
            client.connection.setblocking(True)
            with self._lock:
                self._taken[client.connection] = bytes(client.request)
            self.process_request(client.connection, client.address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, and free its thread."""
        super().shutdown_request(request)
        with self._lock:
            if self._taken.pop(request, None) is None:
                return
        self._threads_left.release()
        self._wake()

    def shutdown(self) -> None:
        """End `serve_forever`, from another thread."""
        self._stopping.set()
        self._wake()
        self._ended.wait()

    def server_close(self) -> None:
        """Stop listening, and wait for running answers: no thread may read files while the interpreter exits."""
        super().server_close()
        end = monotonic() + _CLOSING_SECONDS
        left = [self._threads_left.acquire(timeout=max(0.0, end - monotonic())) for _ in range(_THREADS)]
        for _ in range(sum(left)):
            self._threads_left.release()
        if all(left):  # else a thread that ends later still wakes it
            self._waker.close()
            self._woken.close()

    def _wake(self) -> None:
        with suppress(OSError):  # it is awake if the buffer is full
            self._waker.send(b"1")
