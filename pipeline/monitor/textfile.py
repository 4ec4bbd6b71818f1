"""The outcome of runs in a file for the textfile collector of node_exporter, so that the metrics outlive the run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...tasks.errors import EdgemillError, NotConverged, UsageError
from ...tasks.storage.folders import folder_at
from ..events import Events
from ..messages.exits import exit_code, message
from ..messages.wording import one_line
from ..settings.models import Settings

if TYPE_CHECKING:
    from ..results.result import Result

_SUCCESS = "edgemill_last_success_time_seconds"
METRICS = {
    "edgemill_last_run_exit_code": "Exit code of the last run.",
    "edgemill_last_run_start_time_seconds": "Unix time of the start of the last run.",
    "edgemill_last_run_end_time_seconds": "Unix time of the end of the last run.",
    _SUCCESS: "Unix time of the last end of a run with exit code 0.",
}
"""Name → help of each metric, a gauge with the label `output`."""
FAILURE = "edgemill_last_failure_info"
_FAILURE_LABELS = ("output", "exit_code", "error", "log")
_FAILURE_HELP = "1 if the last run ended with another exit code than 0: with its message, and the path of its log."
_MOST_CHARACTERS = 500
"""Longest message in a label."""


@dataclass
class RunOutcome:
    """The outcome of a run, which the run fills in."""

    result: Result | None = None


@contextmanager
def reporting_to_textfile(settings: Settings, events: Events) -> Iterator[RunOutcome]:
    """Write the outcome of the block to the file `monitoring.textfile`, if it is set.

    Raises UsageError before the block if the file cannot be written. A failure after the block is the event
    `textfile_failed` and changes neither the result nor the exit code.
    """
    outcome, file = RunOutcome(), settings.monitoring.textfile
    if file is None:
        yield outcome
        return
    path = Path(os.path.realpath(os.path.expanduser(file)))
    _check(path)
    code, why = 0, ""
    try:
        yield outcome
        if outcome.result is not None and not outcome.result.converged:
            code, why = NotConverged.exit_code, "; ".join(outcome.result.manifest.unfinished)
    except BaseException as error:
        code, why = exit_code(error), message(error)
        raise
    finally:
        series = folder_at(settings.nightly.series or settings.output.path)
        try:
            failure = None if code == 0 else (str(code), one_line(why)[:_MOST_CHARACTERS], _log(settings, events))
            _write(path, series.absolute, events.started.timestamp(), code, failure)
        except Exception as error:
            events.emit("textfile_failed", reason=f"{path}: {error}")


def _log(settings: Settings, events: Events) -> str:
    """The path of the log of this run, which has ended; empty if it left none, or a store does not tell."""
    from .status import status_of

    with suppress(EdgemillError):
        status = status_of(settings.output.path, settings.output.storage_options)
        if status.log is not None and status.log.run == events.run_id:
            return str(status.log_place)
    return ""


def _check(path: Path) -> None:
    try:
        import prometheus_client  # noqa: F401
    except ImportError as error:
        raise UsageError(f"monitoring.textfile needs prometheus-client ({error}): install edgemill[metrics]") from error
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(f"monitoring.textfile {path}: {path.parent} is not a writable folder")
    if path.exists() and not path.is_file():
        raise UsageError(f"monitoring.textfile {path} exists and is not a file: choose another")


def _write(path: Path, output: str, started: float, code: int, failure: tuple[str, str, str] | None) -> None:
    """Replace the file. If this run failed, the time of the last success stays.

    `failure` is the exit code, the message and the log of a run that failed.
    """
    from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

    ended = time.time()
    success = ended if code == 0 else _last_success(path, output)
    values = dict(zip(METRICS, (code, started, ended, success), strict=True))
    registry = CollectorRegistry()
    for name, value in values.items():
        if value is not None:
            Gauge(name, METRICS[name], ["output"], registry=registry).labels(output).set(value)
    if failure is not None:
        Gauge(FAILURE, _FAILURE_HELP, _FAILURE_LABELS, registry=registry).labels(output, *failure).set(1)
    write_to_textfile(str(path), registry)
    path.chmod(0o644)  # node_exporter runs as another user


def _last_success(path: Path, output: str) -> float | None:
    """The time of the last success of that output in the file; None if there is none."""
    from prometheus_client.parser import text_string_to_metric_families

    try:
        families = list(text_string_to_metric_families(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
    samples = (sample for family in families for sample in family.samples)
    return next((s.value for s in samples if s.name == _SUCCESS and s.labels.get("output") == output), None)
