"""The explorer's HTTP server: the page and its data, on loopback.

It is the standard library's threading server. An asynchronous server such as tornado would gain nothing: every answer
reads files and needs a thread, and there are few requests.

The package holds the page's files and its two libraries. Other answers are JSON. Ids of vertices and components are
strings in it, since JavaScript's integers end at 2^53. An error is `{"error": sentence}` with the status 400 (bad
request), 403, 404 (not in the result), 405, 409 (another run has replaced the result) or 500 (the result cannot be
read).

    GET /api/result                     counts of the result, its name, the type of its ids
    GET /api/hierarchy                  the connected components of the graph, largest first, and their descendants
        ?component=ID                   … or those of a component, with the `path` to it: see tree.branches
        &depth=1..24 &most=1..200       levels (default 1), children of each node (default 100)
    GET /api/vertex?id=ID               a vertex and its groups, innermost first (at most 1000; `larger` counts the
                                        rest). If the vertex does not exist, `next` lists ids that follow
    GET /api/search?text=TEXT           vertices with TEXT in their id or label, see search.search; `next` as above
    GET /api/dn-graphs?by=&most=1..200  the largest by lambda, vertices, edges, density or triangles, with some members
    GET /api/drawing?dn_graph=ID        see drawing.draw
    GET /api/members?dn_graph=ID        the ids and labels of all members
    GET /members.csv?dn_graph=ID        the members as a file, with all attributes

tree.tree describes the nodes of the hierarchy.

The server listens on 127.0.0.1 only. It refuses a request whose Host is not the printed address, which prevents DNS
rebinding, and a request that a browser marks as coming from another site's page. No part of a request is used as a file
path. Anyone with an account on this machine can send requests, as to every server on loopback.
"""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler
from importlib.resources import files
from io import BufferedReader, BytesIO
from threading import BoundedSemaphore
from typing import Any

from ....tasks.errors import UsageError
from ...messages.exits import message
from ..result import Result
from .api import Api, File, Handler, NotFound, parameters
from .connections import BoundedServer
from .queries import BadRequest

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
