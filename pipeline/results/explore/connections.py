"""The connections of the explorer's server: a bounded number of threads, a queue in the kernel, idle timeouts."""

from __future__ import annotations

import socket
from contextlib import suppress
from http.server import ThreadingHTTPServer
from threading import BoundedSemaphore, Event, Lock
from time import monotonic
from typing import Any

_WAITING = 1024
"""Connections that wait to be accepted (the backlog of `listen`). Linux allows at most net.core.somaxconn, 4096."""
_THREADS = 64
_IDLE_SECONDS = 30.0
"""Time for a connection to send its request. Browsers open connections in advance and leave them idle."""
_IDLE_SECONDS_UNDER_LOAD = 2.0
"""The same while other connections wait for a thread."""
_POLL_SECONDS = 0.25
"""Interval of the search for idle connections while others wait for a thread."""
_CLOSING_SECONDS = 5.0
"""Time for running answers to finish when the server closes."""


class BoundedServer(ThreadingHTTPServer):
    """A server with at most 64 connections at a time, a thread for each; up to 1,024 more wait to be accepted.

    A handler calls `has_request` after it has read a request. A connection without a request is closed after 30
    seconds, or after 2 seconds while others wait. `server_close` waits up to 5 seconds for running answers.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = _WAITING

    def __init__(self, *arguments: Any) -> None:
        self._threads_left = BoundedSemaphore(_THREADS)
        self._stopping = Event()
        self._open: set[socket.socket] = set()
        """Connections that have a thread."""
        self._idle: dict[socket.socket, float] = {}
        """Connections that have sent no request yet, with the time of their start, oldest first."""
        self._lock = Lock()
        super().__init__(*arguments)

    def has_request(self, connection: socket.socket) -> None:
        """Note that the connection has sent its request: it is no longer idle."""
        with self._lock:
            self._idle.pop(connection, None)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Wait until a thread is free for a connection. Returns whether the connection is to be served."""
        while not self._threads_left.acquire(timeout=_POLL_SECONDS):
            self._close_idle(_IDLE_SECONDS_UNDER_LOAD)
            if self._stopping.is_set():
                return False
        with self._lock:
            self._open.add(request)
            self._idle[request] = monotonic()
        return True

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, and free its thread."""
        super().shutdown_request(request)
        with self._lock:
            self._idle.pop(request, None)
            if request not in self._open:
                return
            self._open.remove(request)
        self._threads_left.release()

    def service_actions(self) -> None:
        """Close idle connections. The server calls it twice a second, and after each accepted connection."""
        self._close_idle(_IDLE_SECONDS)

    def shutdown(self) -> None:
        """End `serve_forever`, from another thread."""
        self._stopping.set()
        super().shutdown()

    def server_close(self) -> None:
        """Stop listening, and wait for running answers: no thread may read files while the interpreter exits."""
        super().server_close()
        self._close_idle(0)
        end = monotonic() + _CLOSING_SECONDS
        left = [self._threads_left.acquire(timeout=max(0.0, end - monotonic())) for _ in range(_THREADS)]
        for _ in range(sum(left)):
            self._threads_left.release()

    def _close_idle(self, seconds: float) -> None:
        """Close connections that have been idle for `seconds`; their threads then end."""
        with self._lock:
            for connection, since in list(self._idle.items()):
                if monotonic() - since < seconds:
                    break
                del self._idle[connection]
                with suppress(OSError):  # the client has closed it
                    connection.shutdown(socket.SHUT_RDWR)
