"""The explorer's server: a page and its answers, on loopback, for whoever runs it.

It is the standard library's threading server and not tornado, which distributed brings: every answer reads files, so
each needs a thread anyway, and what is asked is a handful of GETs.

The page is three files and two libraries, sent from the package. All else is JSON; ids of vertices and components are
strings in it, as JavaScript's numbers end at 2^53. An error is `{"error": sentence}` with the status 400 (a bad
question), 403, 404 (not in the result), 405, 409 (another run has replaced the result), or 500 (it cannot be read).

    GET /api/result                     counts of the result, its name, the type of its ids
    GET /api/hierarchy                  the graph's connected components, largest first, and what lies in them
        ?component=ID                   … or those in a component; `path` leads to it: see tree.branches
        &depth=1..24 &most=1..200       levels (default 1), children of each (default 100)
    GET /api/vertex?id=ID               a vertex and its groups, innermost first (1000; `larger`: how many more), or if
                                        there is none, `next`: ids after it
    GET /api/dn-graphs?by=&most=1..200  the largest by lambda, vertices, edges, density or triangles
    GET /api/drawing?dn_graph=ID        see drawing.draw

A node of the hierarchy is described in tree.tree.

Only 127.0.0.1 is listened at. A request is refused if its Host is another than the address printed (a name that an
attacker lets point here, DNS rebinding), or if a browser says that another site's page makes it. No path of a request
is a path of a file. Anyone with an account on this machine can ask, as with every server on loopback.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler
from importlib.resources import files
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import parse_qsl

from ...tasks.errors import EdgemillError, UsageError
from ...tasks.spelling import spelled
from ...tasks.stores import asked
from ..exits import message
from ..manifest import MANIFEST_NAME
from ..result import Result
from ..rows import DNGraph, whole
from .connections import BoundedServer
from .drawing import draw
from .queries import ORDERS, BadQuestion, Queries
from .tree import as_json, branches, tree

__all__ = ["ADDRESS", "ExplorerServer"]

ADDRESS = "127.0.0.1"

_SCRIPTS = ("explore", "icicle", "drawing", "palette", "page")
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
_MOST_DEPTH = 24
_MOST_ROWS = 200
_MOST_PATH = 1_000
_REPLACED = "another run has replaced this result: end edgemill explore, and start it again"
_AT_ONCE = 4
"""Questions that read the result at the same time; others wait."""


class NotFound(Exception):
    """What was asked for is not in the result; the answer is its argument."""


class ExplorerServer(BoundedServer):
    """Serves the explorer of a result at `address` from its construction on, once `serve_forever` runs.

    Port 0 is a free one. Raises UsageError for a result without tables of dense groups and a port that cannot be had.
    """

    def __init__(self, result: Result, port: int = 0) -> None:
        self.answers = _Answers(result)
        self.room = BoundedSemaphore(_AT_ONCE)
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            raise UsageError(
                f"port {port} cannot be had ({error.strerror}): choose another, or leave --port out for a free one"
            ) from error

    @property
    def address(self) -> str:
        """The page's URL."""
        return f"http://{ADDRESS}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that went away."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: ExplorerServer
    server_version, sys_version = "edgemill", ""
    timeout = 30
    """Seconds for a browser to take its answer."""

    def parse_request(self) -> bool:
        complete = super().parse_request()
        self.server.has_request(self.connection)
        return complete

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        ours = {f"{name}:{self.server.server_port}" for name in (ADDRESS, "localhost")}
        if self.server.server_port == HTTP_PORT:
            ours |= {ADDRESS, "localhost"}  # browsers leave it out
        if self.headers.get_all("Host", []) not in [[name] for name in ours]:
            self._error(HTTPStatus.FORBIDDEN, f"this is {self.server.address} and no other host")
        elif path in _FILES:
            name, kind = _FILES[path]
            self._send(HTTPStatus.OK, kind, (files(__package__) / "static").joinpath(name).read_bytes())
        elif self.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            self._error(HTTPStatus.FORBIDDEN, "only the explorer's own page may ask")
        else:
            self._answer(path, query)

    def _refuse(self) -> None:
        self._error(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is understood")

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = _refuse

    def _answer(self, path: str, query: str) -> None:
        if path not in self.server.answers.by_path:
            return self._error(HTTPStatus.NOT_FOUND, "there is no such page")
        status, content = self._said(*self.server.answers.by_path[path], query)
        if status != HTTPStatus.BAD_REQUEST and self.server.answers.replaced():
            return self._error(HTTPStatus.CONFLICT, _REPLACED)  # the answer may be of both
        return self._json(status, content)

    def _said(self, answer: Answer, known: set[str], query: str) -> tuple[HTTPStatus, dict[str, Any]]:
        try:
            with self.server.room:
                return HTTPStatus.OK, answer(_parameters(query, known))
        except NotFound as missing:
            return HTTPStatus.NOT_FOUND, missing.args[0]
        except BadQuestion as error:
            return HTTPStatus.BAD_REQUEST, {"error": str(error)}
        except Exception as error:
            print(f"error: {message(error)}", file=sys.stderr)
            return HTTPStatus.INTERNAL_SERVER_ERROR, {"error": message(error)}

    def _error(self, status: HTTPStatus, error: str) -> None:
        self._json(status, {"error": error})

    def _json(self, status: HTTPStatus, content: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(content, separators=(",", ":")).encode())

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the terminal for the address and for errors."""


Parameters = dict[str, str]
"""Those of a question, by name."""
Answer = Callable[[Parameters], dict[str, Any]]


def _parameters(query: str, known: set[str]) -> Parameters:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=10)
    except ValueError:  # UnicodeDecodeError too
        raise BadQuestion("the parameters are not UTF-8, or too many") from None
    if len(dict(pairs)) < len(pairs):
        raise BadQuestion("a parameter is given twice")
    for unknown in dict(pairs).keys() - known:
        raise BadQuestion(f"there is no parameter {unknown[:80]!r}")
    return dict(pairs)


class _Answers:
    """What is said to each question: parameters in, JSON out."""

    def __init__(self, result: Result) -> None:
        self._queries = Queries(result)
        self._result = result
        self._manifest = self._manifest_now()
        self.by_path: dict[str, tuple[Answer, set[str]]] = {
            "/api/result": (self._of_result, set()),
            "/api/hierarchy": (self._of_hierarchy, {"component", "depth", "most"}),
            "/api/vertex": (self._of_vertex, {"id"}),
            "/api/dn-graphs": (self._of_dn_graphs, {"by", "most"}),
            "/api/drawing": (self._of_drawing, {"dn_graph"}),
        }
        """Each with the names of its parameters."""

    def replaced(self) -> bool:
        """Whether the folder holds the result of another run by now, whose files are not those that were opened."""
        try:
            return self._manifest_now() != self._manifest
        except EdgemillError:  # of a store, which the answer tells if it had to ask there
            return False

    def _manifest_now(self) -> str | None:
        place = self._result.place
        place.files.invalidate_cache()
        try:
            if place.is_local:  # without owner, mode and number of links, which a backup changes
                found = os.stat(place.path(MANIFEST_NAME))
                return f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns}"
            with asked("look at", str(place)):
                return str(place.files.ukey(place.path(MANIFEST_NAME)))
        except OSError:
            return None

    def _of_result(self, asked: Parameters) -> dict[str, Any]:
        manifest = self._result.manifest
        assert manifest.dense is not None  # Queries has seen to it
        return {
            "name": self._result.place.whole.rpartition("/")[2],
            "run": manifest.run,
            "finished": manifest.finished.isoformat(),
            "id_type": str(self._queries.id_type),
            "lambda": manifest.lam.max,
            "edges": manifest.counts.edges,
            "vertices": manifest.counts.vertices,
            "triangles": manifest.counts.triangles,
            **manifest.dense.model_dump(),
        }

    def _of_hierarchy(self, asked: Parameters) -> dict[str, Any]:
        depth, most = _number(asked, "depth", 1, _MOST_DEPTH), _number(asked, "most", 100, _MOST_ROWS)
        if "component" not in asked:
            return {"path": [], "node": tree(self._queries, None, depth, most)}
        path = self._queries.path(_id(asked, "component"))
        if not path:
            raise NotFound({"error": "there is no such component"})
        above = [as_json(component) for component in branches(self._queries, path)]
        return {"path": above[-_MOST_PATH:], "node": tree(self._queries, path[0], depth, most)}

    def _of_vertex(self, asked: Parameters) -> dict[str, Any]:
        id = self._queries.parse_vertex(_text(asked, "id"))
        vertex = self._queries.vertex(id)
        if vertex is None:
            following = [str(other) for other in self._queries.next_vertices(id, 5)]
            raise NotFound({"error": f"there is no vertex {spelled(id.as_py())}", "next": following})
        groups = [] if vertex.component is None else self._queries.path(vertex.component)
        inner = self._queries.dn_graph(vertex.component) if vertex.component is not None else None
        return {
            "id": str(vertex.id),
            "degree": vertex.degree,
            "triangles": vertex.triangles,
            "lambda": vertex.lam,
            "dn_graph": _dn_graph(inner) if inner else None,
            "groups": [as_json(group) for group in groups[:_MOST_PATH]],
            "larger": max(0, len(groups) - _MOST_PATH),
        }

    def _of_dn_graphs(self, asked: Parameters) -> dict[str, Any]:
        by, most = asked.get("by", ORDERS[0]), _number(asked, "most", 50, _MOST_ROWS)
        if by not in ORDERS:
            raise BadQuestion(f"by is one of {', '.join(ORDERS)}")
        assert self._result.manifest.dense is not None
        largest = [_dn_graph(group) for group in self._queries.largest_dn_graphs(by, most)]
        return {"count": self._result.manifest.dense.dn_graphs, "largest": largest}

    def _of_drawing(self, asked: Parameters) -> dict[str, Any]:
        group = self._queries.dn_graph(_id(asked, "dn_graph"))
        if group is None:
            raise NotFound({"error": "there is no such DN-graph"})
        return {"dn_graph": _dn_graph(group), **draw(self._queries, group)}


def _dn_graph(group: DNGraph) -> dict[str, Any]:
    return {
        "id": str(group.id),
        "lambda": group.lam,
        "vertices": group.vertices,
        "edges": group.edges,
        "density": group.density,
        "triangles": group.triangles,
        "parent": None if group.parent is None else str(group.parent),
    }


def _text(asked: Parameters, name: str) -> str:
    if name not in asked:
        raise BadQuestion(f"the parameter {name} is missing")
    return asked[name]


def _id(asked: Parameters, name: str) -> int:
    try:
        return whole(_text(asked, name))
    except ValueError as error:
        raise BadQuestion(f"{name}: {error}") from None


def _number(asked: Parameters, name: str, otherwise: int, most: int) -> int:
    text = asked.get(name, str(otherwise))
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= most):
        raise BadQuestion(f"{name} is a whole number from 1 to {most}")
    return int(text)
