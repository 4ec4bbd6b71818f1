"""Pages that Dask offers about a cluster: the address of its dashboard, and the performance report of a block."""

from __future__ import annotations

import re
import socket
from collections.abc import Awaitable, Callable
from html import escape
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import distributed
from distributed import Client
from distributed.comm.addressing import unparse_host_port
from distributed.comm.utils import get_tcp_server_address
from distributed.utils import format_dashboard_link

from ...tasks.errors import ClusterLost

_ICON_LINK = re.compile(rb"<link\b[^>]*\bicon\b[^>]*>")
"""Dask's icon, the only part of the report that a browser would fetch from the network."""
_REPORT_SECONDS = 120
"""How long the scheduler may take for a performance report. A page of many thousand tasks takes some seconds."""


def dashboard_of(client: Client) -> str | None:
    """Address of the dashboard of a scheduler that ran before this run; None if it has none.

    Dask's own link has the scheduler's address, on which its dashboard need not listen.
    """
    try:
        found = client.run_on_scheduler(_listening_address)
        if found is None:
            return None
        if client.cluster is None and not ip_address(found[0]).is_unspecified:
            return _link(*found)
        link: str | None = client.dashboard_link  # a cluster's link may go through a proxy
    except Exception:  # the scheduler refuses the call, or is lost, which the first task reports
        return None
    return link


def dashboard_started_here(client: Client, address: str | None) -> str | None:
    """Address of the dashboard of a scheduler in this process; `address` is `cluster.dashboard_address`.

    Dask's own link would name a host on which that scheduler does not listen.
    """
    if address is None:
        return None
    host, _, _ = address.rpartition(":")
    port = client.scheduler_info(n_workers=0)["services"]["dashboard"]  # another port, if that was in use
    return _link(socket.gethostname() if host in ("0.0.0.0", "[::]") else host, port)


def _listening_address(dask_scheduler: Any) -> tuple[str, int] | None:
    """Address and port of a scheduler's dashboard; None if its HTTP server has no such page."""
    host, port = get_tcp_server_address(dask_scheduler.http_server)[:2]
    return (host, port) if dask_scheduler.http_application.applications else None


def _link(host: str, port: int) -> str:
    return str(format_dashboard_link(unparse_host_port(host), port))


class PerformanceReport:
    """Dask's performance report of what the cluster of `client` does between `start` and `page`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._report: Any = distributed.performance_report(mode="inline")  # a page that needs no network

    def start(self) -> None:
        """Start recording. Raises ClusterLost if the scheduler does not answer."""
        self._sync(self._report.__aenter__)

    def page(self, file: Path, text: str) -> bytes:
        """Stop recording; returns the HTML page. It shows `text` in place of the source code of the caller, which may
        contain secrets. Dask writes the page to `file`, which is removed. Raises ClusterLost.
        """
        self._report.filename = str(file)
        try:
            self._sync(self._report.__aexit__, None, None, None, code=escape(text))
            return _ICON_LINK.sub(b"", file.read_bytes())
        finally:
            file.unlink(missing_ok=True)

    def _sync(self, function: Callable[..., Awaitable[None]], *arguments: Any, **options: Any) -> None:
        try:
            with self._client.as_current():
                self._client.sync(function, *arguments, callback_timeout=_REPORT_SECONDS, **options)
        except TimeoutError as error:
            raise ClusterLost(f"the Dask scheduler did not answer within {_REPORT_SECONDS} s") from error
