"""The explorer of a result, served for the length of a block, and requests to it."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from edgemill.pipeline import Result
from edgemill.pipeline.explorer.server import ADDRESS, ExplorerServer

Answer = tuple[int, dict[str, Any]]


@contextmanager
def serving(result: Result) -> Iterator[ExplorerServer]:
    """A server that answers within the block, and whose port is free after it."""
    with ExplorerServer(result) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        try:
            yield served
        finally:
            served.shutdown()
            thread.join()
    with socket.socket() as taken:
        assert taken.connect_ex((ADDRESS, served.server_port)) != 0


def get(served: ExplorerServer, path: str, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    return send(served, "GET", path, {name.replace("_", "-"): value for name, value in headers.items()})


def send(
    served: ExplorerServer, method: str, path: str, headers: dict[str, str]
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(ADDRESS, served.server_port)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def ask(served: ExplorerServer, question: str, **parameters: Any) -> Answer:
    response, content = get(served, f"/api/{question}?{urlencode(parameters)}")
    assert response.headers["Content-Type"] == "application/json"
    return response.status, json.loads(content)


def answer(served: ExplorerServer, question: str, **parameters: Any) -> dict[str, Any]:
    status, content = ask(served, question, **parameters)
    assert status == 200, content
    return content
