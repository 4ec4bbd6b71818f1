"""Where a run is observed: the port of its metrics, and the file of Dask's performance report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ...tasks.errors import UsageError
from ...tasks.storage.folders import folder_at
from ..events import Events
from ..output.new_path import new_file
from ..settings.models import MonitoringSettings, Settings

if TYPE_CHECKING:
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
