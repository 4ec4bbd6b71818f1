"""The explorer's server with many clients, with idle clients, and while it closes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import combinations
from typing import Any

import pytest

from edgemill.pipeline import Result
from edgemill.pipeline.explorer import server
from edgemill.pipeline.explorer.api import File
from edgemill.pipeline.explorer.server import ADDRESS, ExplorerServer
from made import made
from serving import serving

PATIENCE_SECONDS = 20


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return made(tmp_path_factory.mktemp("made") / "out", dict.fromkeys(combinations(range(5), 2), 3))


def connected(served: ExplorerServer) -> socket.socket:
    return socket.create_connection((ADDRESS, served.server_port), timeout=PATIENCE_SECONDS)


def asked(served: ExplorerServer, connection: socket.socket, path: str = "/api/result") -> None:
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {ADDRESS}:{served.server_port}\r\n\r\n".encode())


def answered(connection: socket.socket) -> bool:
    """Whether a whole answer with status 200 arrives."""
    said = b""
    while piece := connection.recv(65536):
        said += piece
    head, _, body = said.partition(b"\r\n\r\n")
    lengths = [line for line in head.split(b"\r\n") if line.startswith(b"Content-Length: ")]
    return b" 200 OK\r\n" in head and lengths == [b"Content-Length: %d" % len(body)]


@contextmanager
def threads(served: ExplorerServer) -> Iterator[list[int]]:
    """The largest number of connections that had a thread at the same time."""
    most, now, lock = [0], 0, threading.Lock()
    handle = served.process_request_thread

    def counted(request: Any, client_address: Any) -> None:
        nonlocal now
        with lock:
            now += 1
            most[0] = max(most[0], now)
        try:
            handle(request, client_address)
        finally:
            with lock:
                now -= 1

    served.process_request_thread = counted  # type: ignore[method-assign]
    yield most


def test_two_hundred_clients_wait_until_the_server_takes_them(result: Result) -> None:
    """The server accepts no connection before all clients have sent their requests."""
    with ExplorerServer(result) as served, ExitStack() as open_ones:
        clients = [open_ones.enter_context(connected(served)) for _ in range(200)]
        for client in clients:
            asked(served, client)
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        try:
            assert sum(map(answered, clients)) == 200
        finally:
            served.shutdown()
            thread.join()


@pytest.mark.slow
def test_a_thousand_requests_of_two_hundred_clients(result: Result) -> None:
    def ask(_: int) -> bool:
        with connected(served) as client:
            asked(served, client)
            return answered(client)

    with serving(result) as served, threads(served) as most, ThreadPoolExecutor(200) as clients:
        assert sum(clients.map(ask, range(1000))) == 1000
    assert 1 < most[0] <= server._THREADS


@pytest.mark.parametrize("half", [b"", b"GET /api/re", b"GET /api/result HTTP/1.1\r\nHost: x\r\n"])
def test_four_hundred_incomplete_requests_hold_no_thread(
    result: Result, monkeypatch: pytest.MonkeyPatch, half: bytes
) -> None:
    """Other clients are answered although no time limit ends."""
    monkeypatch.setattr(server, "_IDLE_SECONDS", 1e6)
    monkeypatch.setattr(server, "_HEAD_SECONDS", 1e6)
    with serving(result) as served, threads(served) as most, ExitStack() as open_ones:
        silent = [open_ones.enter_context(connected(served)) for _ in range(400)]
        for client in silent:
            client.sendall(half)
        for _ in range(3):
            with connected(served) as client:
                asked(served, client)
                assert answered(client)
        assert most[0] <= 3
        silent[0].sendall(
            f"GET /api/result HTTP/1.1\r\nHost: {ADDRESS}:{served.server_port}\r\n\r\n".encode()[len(half) :]
            if not half.endswith(b"x\r\n")
            else b"\r\n"
        )
        assert silent[0].recv(5) == b"HTTP/"


def test_the_oldest_incomplete_request_makes_room(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_WAITING", 8)
    with serving(result) as served, ExitStack() as open_ones:
        silent = [open_ones.enter_context(connected(served)) for _ in range(9)]
        assert silent[0].recv(1) == b""
        with connected(served) as client:
            asked(served, client)
            assert answered(client)
        assert silent[1].recv(1) == b""
        asked(served, silent[-1])
        assert answered(silent[-1])


@pytest.mark.parametrize(("limit", "sent"), [("_IDLE_SECONDS", b""), ("_HEAD_SECONDS", b"GET / HTTP/1.1\r\n")])
def test_an_incomplete_request_is_closed(
    result: Result, monkeypatch: pytest.MonkeyPatch, limit: str, sent: bytes
) -> None:
    monkeypatch.setattr(server, limit, 0.1)
    with serving(result) as served, connected(served) as client:
        client.sendall(sent)
        assert client.recv(1) == b""


def test_a_request_that_comes_byte_by_byte(result: Result) -> None:
    with serving(result) as served, connected(served) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in f"GET /api/result HTTP/1.1\r\nHost: {ADDRESS}:{served.server_port}\r\n\r\n".encode():
            client.sendall(bytes([byte]))
        assert answered(client)


def test_a_request_that_does_not_end_is_refused(result: Result) -> None:
    with serving(result) as served, connected(served) as client:
        client.sendall(b"GET /" + b"a" * (server._HEAD_BYTES + 4096))
        assert client.recv(12) in (b"HTTP/1.1 414", b"HTTP/1.0 414")


@contextmanager
def answering_slowly(
    result: Result,
) -> Iterator[tuple[ExplorerServer, threading.Thread, threading.Event, threading.Event]]:
    """A server with its thread. An answer on the result sets the first event, and waits for the second."""
    begun, go_on = threading.Event(), threading.Event()
    with ExplorerServer(result) as served:
        answer, known = served.api.by_path["/api/result"]

        def slow(parameters: dict[str, str]) -> dict[str, object] | File:
            begun.set()
            assert go_on.wait(PATIENCE_SECONDS)
            return answer(parameters)

        served.api.by_path["/api/result"] = slow, known
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield served, thread, begun, go_on


def test_closing_waits_for_answers_and_not_for_idle_clients(result: Result) -> None:
    with (
        answering_slowly(result) as (served, thread, begun, go_on),
        connected(served) as silent,
        connected(served) as client,
    ):
        asked(served, client)
        assert begun.wait(PATIENCE_SECONDS)
        served.shutdown()
        thread.join()
        closing = threading.Thread(target=served.server_close)
        closing.start()
        assert silent.recv(1) == b""  # it is closed while the answer runs
        assert closing.is_alive()
        go_on.set()
        assert answered(client)
        closing.join(PATIENCE_SECONDS)
        assert not closing.is_alive()


def test_the_server_ends_while_all_threads_are_taken(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_THREADS", 1)
    with (
        answering_slowly(result) as (served, thread, begun, go_on),
        connected(served) as taking,
        connected(served) as waiting,
    ):
        asked(served, taking)
        assert begun.wait(PATIENCE_SECONDS)
        asked(served, waiting)
        served.shutdown()
        thread.join()
        assert waiting.recv(1) == b""
        go_on.set()
        assert answered(taking)
