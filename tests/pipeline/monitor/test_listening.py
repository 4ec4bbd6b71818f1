"""A cluster that a run starts listens on this machine only, and has a dashboard only if it is set."""

from __future__ import annotations

import re
import urllib.request
from contextlib import closing
from socket import create_server
from typing import Any

import psutil
import pytest

from edgemill.pipeline import UsageError
from edgemill.pipeline.cluster.connecting.start import connect
from edgemill.pipeline.settings.models import ClusterSettings
from edgemill.pipeline.settings.sources import make_settings


def listening() -> set[tuple[str, int]]:
    """Addresses on which this process and those that it started take connections."""
    here = psutil.Process()
    return {
        (found.laddr.ip, found.laddr.port)
        for process in (here, *here.children(recursive=True))
        for found in process.net_connections("inet")
        if found.status == psutil.CONN_LISTEN
    }


@pytest.mark.parametrize("workers", [None, 2])
def test_on_this_machine_alone(workers: int | None) -> None:
    before = listening()
    with connect(ClusterSettings(device="cpu", workers=workers)) as client:
        opened = listening() - before
        assert client.run_on_scheduler(served) == ["127.0.0.1"]
    assert {ip for ip, _ in opened} == {"127.0.0.1"}
    assert 8787 not in {port for _, port in opened}


def served(dask_scheduler: Any) -> list[str]:
    """Where the scheduler's HTTP server listens."""
    return [socket.getsockname()[0] for socket in dask_scheduler.http_server._sockets.values()]


def test_a_dashboard_where_it_is_asked_for() -> None:
    with closing(create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    settings = ClusterSettings(device="cpu", dashboard_address=f"127.0.0.1:{port}")
    before = listening()
    with connect(settings):
        opened = listening() - before
        assert ("127.0.0.1", port) in opened
        assert {ip for ip, _ in opened} == {"127.0.0.1"}
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=30) as answer:
            assert answer.read() == b"ok"


@pytest.mark.parametrize(
    "address", ["8787", ":8787", "localhost", "http://localhost:8787", "127.0.0.1:65536", "a b:1", ""]
)
def test_an_address_says_who_may_look(address: str) -> None:
    with pytest.raises(UsageError, match=r"cluster\.dashboard_address.*127\.0\.0\.1:8787"):
        make_settings("edges", "out", cluster={"dashboard_address": address})


@pytest.mark.parametrize("address", ["192.0.2.1:8787", "no.such.host.invalid:0", "[2001:db8::1]:0"])
def test_an_address_that_is_not_ours(address: str) -> None:
    settings = ClusterSettings(device="cpu", dashboard_address=address)
    with pytest.raises(UsageError, match=f"dashboard_address {re.escape(address)}"), connect(settings):
        pass


def test_a_running_scheduler_has_its_own() -> None:
    with pytest.raises(UsageError, match=r"cluster\.dashboard_address.*started"):
        make_settings("edges", "out", cluster={"dashboard_address": "[::1]:1", "scheduler": "tcp://there:8786"})
