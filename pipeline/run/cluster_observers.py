"""What a run shows of its cluster: the address of Dask's dashboard, the workers' metrics, Dask's performance report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...tasks.errors import ClusterLost
from ..cluster.client import Client
from ..cluster.dashboard import PerformanceReport, dashboard_of, dashboard_started_here
from ..cluster.watchdog import workers_of
from ..events import Events
from ..messages.exits import message
from ..settings.models import Settings
from ..settings.sources import as_yaml
from .observers import report_file

if TYPE_CHECKING:
    from ..monitor.metrics import Metrics

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
