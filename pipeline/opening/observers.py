"""Where a run is observed: its metrics, Dask's dashboard, and Dask's performance report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ...tasks.errors import ClusterLost, UsageError
from ...tasks.storage.folders import folder_at
from ..events import Events
from ..messages.exits import message
from ..output.new_path import new_file
from ..settings.models import MonitoringSettings, Settings
from ..settings.sources import as_yaml

if TYPE_CHECKING:
    from ..cluster.client import Client
    from ..cluster.dashboard import PerformanceReport
    from ..monitor.metrics import Metrics


def serve_metrics(settings: MonitoringSettings, output: str, events: Events) -> Metrics | None:
    """Serve metrics of the events to Prometheus on `metrics_port` until the events are closed.

    Returns None without this setting. Raises UsageError if the port cannot be opened.
    """
    port, host = settings.metrics_port, settings.metrics_host
    if port is None:
        return None
    try:
        from ..monitor.metrics import Metrics
    except ImportError as error:
        raise UsageError(
            f"monitoring.metrics_port needs prometheus-client ({error}): install edgemill[metrics]"
        ) from error
    metrics = Metrics(events.run_id, events.started, output)
    try:
        address = metrics.serve(host, port)
    except OSError as error:
        raise UsageError(
            f"monitoring.metrics_port {port} cannot be bound on {host} (monitoring.metrics_host): {error.strerror}; "
            "choose another, or 0 for a free one"
        ) from error
    events.add(metrics)
    events.emit("serving", what="metrics", address=address)
    return metrics


class _NotYet(Exception):
    """Raised to leave a new file unwritten."""


def check_performance_report(settings: Settings) -> None:
    """Raises UsageError if the file of `monitoring.performance_report` could not be written."""
    file = settings.monitoring.performance_report
    if file is not None:
        _refuse_others(Path(file).expanduser())
        with suppress(_NotYet), report_file(settings):
            raise _NotYet


def _refuse_others(file: Path) -> None:
    """Raises UsageError if the file is not an HTML page. A mistaken path may be a file of edges or of a table."""
    if not file.is_file():
        return
    with suppress(OSError), file.open("rb") as there:
        if not there.read(64).lstrip().lower().startswith((b"<!doctype html", b"<html")):
            raise UsageError(f"monitoring.performance_report: {file} exists and is not an HTML page: name another file")


@contextmanager
def report_file(settings: Settings) -> Iterator[BinaryIO]:
    """The new file of `monitoring.performance_report`, which must be set. Raises UsageError."""
    out = folder_at(settings.output.path, settings.output.storage_options)
    try:
        with new_file(settings.monitoring.performance_report or "", overwrite=True, apart_from=[out]) as file:
            yield file
    except UsageError as error:
        raise UsageError(f"monitoring.performance_report: {error}") from error


_REPORT = "performance-report.html"
_PATIENCE_SECONDS = 3
"""Seconds that a scrape waits for the scheduler. Prometheus stops waiting after 10 seconds."""


@contextmanager
def monitored(
    client: Client, settings: Settings, own: bool, events: Events, metrics: Metrics | None, scratch: Path
) -> Iterator[None]:
    """Context in which the cluster of `client` is monitored. `own`: these settings started the cluster here.

    Reports the address of the dashboard, lets scrapes query the workers, and writes a performance report at the end.
    The report is first written to the run's folder `scratch`. The next run removes files that a killed run left there.
    """
    from ..cluster.dashboard import dashboard_of, dashboard_started_here  # loads Dask
    from ..cluster.watchdog import workers_of

    address = settings.cluster.dashboard_address
    link = dashboard_started_here(client, address) if own else dashboard_of(client)
    if link:
        events.emit("serving", what="dashboard", address=link)
    if metrics is not None:
        metrics.workers = partial(workers_of, client, _PATIENCE_SECONDS)
    try:
        with _performance_report(client, settings, events, scratch):
            yield
    finally:
        if metrics is not None:
            metrics.workers = None


@contextmanager
def _performance_report(client: Client, settings: Settings, events: Events, scratch: Path) -> Iterator[None]:
    """Write Dask's performance report of the block, if it is requested and the cluster is not lost.

    A failure is the event `performance_report_failed` and does not end the run.
    """
    if settings.monitoring.performance_report is None:
        yield
        return
    from ..cluster.dashboard import PerformanceReport

    report = PerformanceReport(client)
    began = _attempt(report.start, events)
    try:
        yield
    except Exception as error:
        if began and not isinstance(error, ClusterLost):
            _attempt(partial(_write, report, settings, scratch / _REPORT), events)
        raise
    if began:
        _attempt(partial(_write, report, settings, scratch / _REPORT), events)


def _attempt(work: Callable[[], None], events: Events) -> bool:
    try:
        work()
    except Exception as error:
        events.emit("performance_report_failed", reason=message(error))
        return False
    return True


def _write(report: PerformanceReport, settings: Settings, made: Path) -> None:
    page = report.page(made, as_yaml(settings))
    with report_file(settings) as file:
        file.write(page)
