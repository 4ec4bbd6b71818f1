"""The connections of the explorer's server: a thread for each complete request, and time limits for incomplete ones.

The explorer's HTTP server: the page and its data, on loopback.

It is the standard library's threading server. An asynchronous server such as tornado would gain nothing: every answer
reads files and needs a thread, and there are few requests.

The package holds the page's files and its two libraries. Other answers are JSON. Ids of vertices and components are
strings in it, since JavaScript's integers end at 2^53. An error is `{"error": sentence}` with the status 400 (bad
request), 403, 404 (not in the result), 405, 409 (another run has replaced the result) or 500 (the result cannot be
read). Every request takes `groups`, which is "lambda" (the default) or the name of a program that found groups.

    GET /api/result                     counts of the result, its name, the type of its ids, and its kinds of groups
    GET /api/hierarchy                  the connected components of the graph, largest first, and their descendants
        ?component=ID                   … or those of a component, with the `path` to it: see tree.branches
        &depth=1..24 &most=1..200       levels (default 1), children of each node (default 100)
    GET /api/vertex?id=ID               a vertex and its groups, innermost first (at most 1000; `larger` counts the
                                        rest), and which of them is in the list of groups. If the vertex does not exist,
                                        `next` lists ids that follow
    GET /api/search?text=TEXT           vertices with TEXT in their id or label, see search.search; `next` as above
    GET /api/largest?by=&most=1..200    the largest DN-graphs by lambda, vertices, edges, density or triangles, or the
                                        listed groups of a program by vertices, edges or density; with some members
    GET /api/drawing?group=ID           see drawing.draw
    GET /api/members?group=ID           the ids and labels of all members
    GET /members.csv?group=ID           the members as a file, with all attributes

tree.tree describes the nodes of the hierarchy.

The server listens on 127.0.0.1 only. It refuses a request whose Host is not the printed address, which prevents DNS
rebinding, and a request that a browser marks as coming from another site's page. No part of a request is used as a file
path. Anyone with an account on this machine can send requests, as to every server on loopback.
"""

from __future__ import annotations

import errno
import json
import selectors
import socket
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from io import BufferedReader, BytesIO
from threading import BoundedSemaphore, Event, Lock
from time import monotonic
from typing import Any

from ...tasks.errors import UsageError
from ..messages.exits import Terminated, message
from ..results.result import Result
from .api import Api, File, Handler, NotFound, parameters
from .queries import BadRequest

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


ADDRESS = "127.0.0.1"

_SCRIPTS = ("explore", "icicle", "drawing", "labels", "members", "palette", "page")
_FILES = {f"/{name}.js": (f"{name}.js", "text/javascript; charset=utf-8") for name in _SCRIPTS} | {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
    "/vendor/sigma.min.js": ("vendor/sigma.min.js", "text/javascript; charset=utf-8"),
    "/vendor/graphology.umd.min.js": ("vendor/graphology.umd.min.js", "text/javascript; charset=utf-8"),
    "/vendor/LICENSES.txt": ("vendor/LICENSES.txt", "text/plain; charset=utf-8"),
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_REPLACED = "another run has replaced this result: stop edgemill explore and start it again"
_AT_ONCE = 4
"""Requests that read the result at the same time; others wait."""


class ExplorerServer(BoundedServer):
    """The server of a result's explorer. It listens at `address` from construction on; `serve_forever` answers.

    Port 0 selects a free port. Raises UsageError for a result without tables of dense groups, or if the port cannot be
    used.
    """

    def __init__(self, result: Result, port: int = 0) -> None:
        self.api = Api(result)
        self.readers = BoundedSemaphore(_AT_ONCE)
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            raise UsageError(
                f"port {port} cannot be bound ({error.strerror}): choose another, or leave out --port for a free one"
            ) from error

    @property
    def address(self) -> str:
        """The page's URL."""
        return f"http://{ADDRESS}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print an error, but not that of a browser that closed its connection."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: ExplorerServer
    server_version, sys_version = "edgemill", ""
    timeout = 30
    """Seconds for a browser to receive its answer."""

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.rfile = BufferedReader(BytesIO(self.server.taken(self.connection)))

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        hosts = {f"{name}:{self.server.server_port}" for name in (ADDRESS, "localhost")}
        if self.server.server_port == HTTP_PORT:
            hosts |= {ADDRESS, "localhost"}  # browsers leave out port 80
        if self.headers.get_all("Host", []) not in [[name] for name in hosts]:
            self._error(HTTPStatus.FORBIDDEN, f"this host is {self.server.address}")
        elif path in _FILES:
            name, kind = _FILES[path]
            self._send(HTTPStatus.OK, kind, (files(__package__) / "static").joinpath(name).read_bytes())
        elif self.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            self._error(HTTPStatus.FORBIDDEN, "only the explorer's own page may send requests")
        else:
            self._answer(path, query)

    def _refuse(self) -> None:
        self._error(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is allowed")

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = _refuse

    def _answer(self, path: str, query: str) -> None:
        if path not in self.server.api.by_path:
            return self._error(HTTPStatus.NOT_FOUND, "there is no such page")
        status, content = self._handle(*self.server.api.by_path[path], query)
        if status != HTTPStatus.BAD_REQUEST and self.server.api.replaced():
            return self._error(HTTPStatus.CONFLICT, _REPLACED)  # the answer may mix rows of both results
        if isinstance(content, File):
            disposition = {"Content-Disposition": f'attachment; filename="{content.name}"'}
            return self._send(status, content.media_type, content.content, disposition)
        return self._json(status, content)

    def _handle(self, handler: Handler, known: set[str], query: str) -> tuple[HTTPStatus, dict[str, Any] | File]:
        try:
            with self.server.readers:
                return HTTPStatus.OK, handler(parameters(query, known))
        except NotFound as missing:
            return HTTPStatus.NOT_FOUND, missing.args[0]
        except BadRequest as error:
            return HTTPStatus.BAD_REQUEST, {"error": str(error)}
        except Exception as error:
            print(f"Error: {message(error)}", file=sys.stderr)
            return HTTPStatus.INTERNAL_SERVER_ERROR, {"error": message(error)}

    def _error(self, status: HTTPStatus, error: str) -> None:
        self._json(status, {"error": error})

    def _json(self, status: HTTPStatus, content: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(content, separators=(",", ":")).encode())

    def _send(self, status: HTTPStatus, kind: str, content: bytes, more: Mapping[str, str] = {}) -> None:
        self.send_response(status)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in {**_HEADERS, **more}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Print no log of requests: the terminal shows the address and errors."""


def explore(result: Result, ready: Callable[[str], None], port: int = 0) -> None:
    """Serve the explorer of `result` on loopback until Ctrl-C. Calls `ready` with its URL once the server listens.

    Port 0 selects a free port. Raises UsageError for a result without tables of dense groups, or if the port is taken.
    """
    with ExplorerServer(result, port) as server:
        ready(server.address)
        try:
            server.serve_forever()
        except Terminated:
            raise
        except KeyboardInterrupt:
            return
