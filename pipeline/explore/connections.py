"""Connections of the explorer's server: some have a thread each, many wait in the kernel, silent ones are ended."""

from __future__ import annotations

import socket
from contextlib import suppress
from http.server import ThreadingHTTPServer
from threading import BoundedSemaphore, Event, Lock
from time import monotonic
from typing import Any

__all__ = ["BoundedServer"]

_WAITING = 1024
"""Connections that wait to be accepted (`listen`'s backlog); Linux takes at most net.core.somaxconn, 4096."""
_THREADS = 64
_SILENT_SECONDS = 30.0
"""How long a connection may take to send its request: browsers open some and leave them idle."""
_PRESSED_SECONDS = 2.0
"""The same while others wait for a thread."""
_LOOK_SECONDS = 0.25
"""Between looks for such connections while others wait for a thread."""
_CLOSING_SECONDS = 5.0
"""How long answers that are under way may take once the server closes."""


class BoundedServer(ThreadingHTTPServer):
    """A server with at most 64 connections at a time, of a thread each; up to 1,024 more wait to be accepted.

    A handler calls `has_request` when it has read a request. A connection that sends none is ended after 30 seconds,
    or after 2 when others wait. `server_close` waits for answers under way, for 5 seconds at most.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = _WAITING

    def __init__(self, *arguments: Any) -> None:
        self._threads_left = BoundedSemaphore(_THREADS)
        self._stopping = Event()
        self._open: set[socket.socket] = set()
        """Connections that have a thread."""
        self._silent: dict[socket.socket, float] = {}
        """Those of them that have sent no request yet, and since when: the oldest first."""
        self._lock = Lock()
        super().__init__(*arguments)

    def has_request(self, connection: socket.socket) -> None:
        """The connection has sent its request, and is left alone from now on."""
        with self._lock:
            self._silent.pop(connection, None)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Wait until there is a thread for a connection; gives whether it is to be served."""
        while not self._threads_left.acquire(timeout=_LOOK_SECONDS):
            self._end_silent(_PRESSED_SECONDS)
            if self._stopping.is_set():
                return False
        with self._lock:
            self._open.add(request)
            self._silent[request] = monotonic()
        return True

    def shutdown_request(self, request: Any) -> None:
        """End a connection, and give its thread to another."""
        super().shutdown_request(request)
        with self._lock:
            self._silent.pop(request, None)
            if request not in self._open:
                return
            self._open.remove(request)
        self._threads_left.release()

    def service_actions(self) -> None:
        """Look after silent connections; called twice a second, and after each that is accepted."""
        self._end_silent(_SILENT_SECONDS)

    def shutdown(self) -> None:
        """End `serve_forever`, from another thread."""
        self._stopping.set()
        super().shutdown()

    def server_close(self) -> None:
        """Listen no more, and wait for answers under way: no thread is to read files while the interpreter ends."""
        super().server_close()
        self._end_silent(0)
        end = monotonic() + _CLOSING_SECONDS
        left = [self._threads_left.acquire(timeout=max(0.0, end - monotonic())) for _ in range(_THREADS)]
        for _ in range(sum(left)):
            self._threads_left.release()

    def _end_silent(self, seconds: float) -> None:
        """End connections that have been silent for so long; their threads notice."""
        with self._lock:
            for connection, since in list(self._silent.items()):
                if monotonic() - since < seconds:
                    break
                del self._silent[connection]
                with suppress(OSError):  # it has gone by itself
                    connection.shutdown(socket.SHUT_RDWR)
