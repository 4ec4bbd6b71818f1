"""What a run offers to who looks on, beside its events: metrics, the dashboard's address, Dask's performance report."""

from __future__ import annotations

import re
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from html import escape
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import distributed
from distributed import Client
from distributed.comm.addressing import unparse_host_port
from distributed.comm.utils import get_tcp_server_address
from distributed.utils import format_dashboard_link

from ..tasks.errors import ClusterLost, UsageError
from ..tasks.places import place_of
from .config import as_yaml
from .exits import message
from .new_place import new_file
from .settings import MonitoringSettings, Settings
from .telemetry import Events

if TYPE_CHECKING:
    from .metrics import Metrics

__all__ = ["check_performance_report", "monitored", "serve_metrics"]

_REPORT = "performance-report.html"
_LINK = re.compile(rb"<link\b[^>]*\bicon\b[^>]*>")
"""The one thing that a browser would fetch: Dask's icon, from its site."""
_REPORT_SECONDS = 120
"""How long the scheduler may take for a performance report; a page of many thousand tasks takes some seconds."""


def serve_metrics(settings: MonitoringSettings, output: str, events: Events) -> Metrics | None:
    """Have the events answer Prometheus on `metrics_port`, until they are closed; None if there is no such setting.

    Raises UsageError if the port cannot be had.
    """
    port, host = settings.metrics_port, settings.metrics_host
    if port is None:
        return None
    try:
        from .metrics import Metrics
    except ImportError as error:
        raise UsageError(
            f"monitoring.metrics_port needs prometheus-client ({error}): install edgemill[metrics]"
        ) from error
    metrics = Metrics(events.run_id, events.started, output)
    try:
        address = metrics.serve(host, port)
    except OSError as error:
        raise UsageError(
            f"monitoring.metrics_port {port} cannot be had on {host} (monitoring.metrics_host): {error.strerror}; "
            "choose another, or 0 for a free one"
        ) from error
    events.add(metrics)
    events.emit("serving", what="metrics", address=address)
    return metrics


@contextmanager
def monitored(
    client: Client, settings: Settings, own: bool, events: Events, metrics: Metrics | None, scratch: Path
) -> Iterator[None]:
    """Within it the cluster of `client` is looked at; `own` if it was started here, by these settings.

    Tells where its dashboard is, has scrapes ask for its workers, and leaves a performance report at the end, which is
    made in the run's folder `scratch`: what a killed run leaves there, the next one clears.
    """
    link = _own_dashboard(client, settings.cluster.dashboard_address) if own else _dashboard(client)
    if link:
        events.emit("serving", what="dashboard", address=link)
    if metrics is not None:
        metrics.client = client
    try:
        with _performance_report(client, settings, events, scratch):
            yield
    finally:
        if metrics is not None:
            metrics.client = None


def _dashboard(client: Client) -> str | None:
    """Where the dashboard is of a scheduler that was there; None if it has none.

    Dask's link has the scheduler's own address, where its dashboard need not listen.
    """
    try:
        found = client.run_on_scheduler(_listens)
        if found is None:
            return None
        if client.cluster is None and not ip_address(found[0]).is_unspecified:
            return _link(*found)
        link: str | None = client.dashboard_link  # of a cluster's, which may go by way of a proxy
    except Exception:  # it may not be asked, or has gone just now, which the first task tells
        return None
    return link


def _listens(dask_scheduler: Any) -> tuple[str, int] | None:
    """Address and port of a scheduler's dashboard; None if what listens there has no such page."""
    host, port = get_tcp_server_address(dask_scheduler.http_server)[:2]
    return (host, port) if dask_scheduler.http_application.applications else None


def _own_dashboard(client: Client, asked_for: str | None) -> str | None:
    """Dask's link would name the host that a scheduler in this process does not listen on."""
    if asked_for is None:
        return None
    host, _, _ = asked_for.rpartition(":")
    port = client.scheduler_info(n_workers=0)["services"]["dashboard"]  # another, if that was taken
    return _link(socket.gethostname() if host in ("0.0.0.0", "[::]") else host, port)


def _link(host: str, port: int) -> str:
    return str(format_dashboard_link(unparse_host_port(host), port))


class _NotYet(Exception):
    """Raised where a file shall not be written yet."""


def check_performance_report(settings: Settings) -> None:
    """Raises UsageError if the file of `monitoring.performance_report` could not be written."""
    file = settings.monitoring.performance_report
    if file is not None:
        _refuse_others(Path(file).expanduser())
        with suppress(_NotYet), _report_file(settings):
            raise _NotYet


def _refuse_others(file: Path) -> None:
    """A mistaken path may be that of edges, or of a result's table."""
    if not file.is_file():
        return
    with suppress(OSError), file.open("rb") as there:
        if not there.read(64).lstrip().lower().startswith((b"<!doctype html", b"<html")):
            raise UsageError(f"monitoring.performance_report: {file} is there and is no HTML page: name another file")


@contextmanager
def _report_file(settings: Settings) -> Iterator[BinaryIO]:
    out = place_of(settings.output.path, settings.output.storage_options)
    try:
        with new_file(settings.monitoring.performance_report or "", overwrite=True, apart_from=[out]) as file:
            yield file
    except UsageError as error:
        raise UsageError(f"monitoring.performance_report: {error}") from error


@contextmanager
def _performance_report(client: Client, settings: Settings, events: Events, scratch: Path) -> Iterator[None]:
    """Write Dask's performance report of the block, if one is asked for and unless the cluster is lost.

    What goes wrong is told as the event `performance_report_failed`: a result is worth more than a page about it.
    """
    if settings.monitoring.performance_report is None:
        yield
        return
    report = distributed.performance_report(mode="inline")  # a page that needs no network
    began = _attempt(partial(_sync, client, report.__aenter__), events)
    try:
        yield
    except Exception as error:
        if began and not isinstance(error, ClusterLost):
            _attempt(partial(_write, client, report, settings, scratch / _REPORT), events)
        raise
    if began:
        _attempt(partial(_write, client, report, settings, scratch / _REPORT), events)


def _attempt(work: Callable[[], None], events: Events) -> bool:
    try:
        work()
    except Exception as error:
        events.emit("performance_report_failed", reason=message(error))
        return False
    return True


def _write(client: Client, report: Any, settings: Settings, made: Path) -> None:
    report.filename = str(made)
    try:
        # In place of the code that called, which may be a user's own, with secrets in it.
        _sync(client, report.__aexit__, None, None, None, code=escape(as_yaml(settings)))
        page = _LINK.sub(b"", made.read_bytes())
        with _report_file(settings) as file:
            file.write(page)
    finally:
        made.unlink(missing_ok=True)  # the folder becomes the result


def _sync(client: Client, function: Callable[..., Awaitable[None]], *arguments: Any, **options: Any) -> None:
    try:
        with client.as_current():
            client.sync(function, *arguments, callback_timeout=_REPORT_SECONDS, **options)
    except TimeoutError as error:
        raise ClusterLost(f"the Dask scheduler has not made it in {_REPORT_SECONDS} s") from error
