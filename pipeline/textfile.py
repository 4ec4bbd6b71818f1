"""How runs end, in a file for the textfile collector of Prometheus' node_exporter: a metric that outlives the run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..tasks.errors import NotConverged, UsageError
from ..tasks.places import place_of
from .exits import exit_code
from .settings import Settings
from .telemetry import Events

if TYPE_CHECKING:
    from .result import Result

__all__ = ["METRICS", "Ending", "told_in_textfile"]

_SUCCESS = "edgemill_last_success_time_seconds"
METRICS = {
    "edgemill_last_run_exit_code": "Exit code of the last run.",
    "edgemill_last_run_start_time_seconds": "When the last run began, Unix time.",
    "edgemill_last_run_end_time_seconds": "When the last run ended, Unix time.",
    _SUCCESS: "When a run with exit code 0 ended last, Unix time.",
}
"""Name → what it is; each a gauge with the label `output`."""


@dataclass
class Ending:
    """What a run comes to, filled in by it."""

    result: Result | None = None


@contextmanager
def told_in_textfile(settings: Settings, events: Events) -> Iterator[Ending]:
    """Write how the block ends to the file of `monitoring.textfile`, if there is one.

    Raises UsageError before the block if the file could not be written. What fails after it is the event
    `textfile_failed`: it changes neither result nor exit code.
    """
    ending, file = Ending(), settings.monitoring.textfile
    if file is None:
        yield ending
        return
    path = Path(os.path.realpath(os.path.expanduser(file)))
    _check(path)
    code: int | None = None
    try:
        yield ending
    except BaseException as error:
        code = exit_code(error)
        raise
    finally:
        if code is None:
            code = 0 if ending.result is None or ending.result.converged else NotConverged.exit_code
        series = place_of(settings.nightly.series or settings.output.path)
        try:
            _write(path, series.whole, events.started.timestamp(), code)
        except Exception as error:
            events.emit("textfile_failed", reason=f"{path}: {error}")


def _check(path: Path) -> None:
    try:
        import prometheus_client  # noqa: F401
    except ImportError as error:
        raise UsageError(f"monitoring.textfile needs prometheus-client ({error}): install edgemill[metrics]") from error
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(f"monitoring.textfile {path}: {path.parent} is no folder that can be written")
    if path.exists() and not path.is_file():
        raise UsageError(f"monitoring.textfile {path} exists and is no file: choose another")


def _write(path: Path, output: str, started: float, code: int) -> None:
    """Replace the file. The time of the last success stays where this run is none."""
    from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

    ended = time.time()
    success = ended if code == 0 else _last_success(path, output)
    values = dict(zip(METRICS, (code, started, ended, success), strict=True))
    registry = CollectorRegistry()
    for name, value in values.items():
        if value is not None:
            Gauge(name, METRICS[name], ["output"], registry=registry).labels(output).set(value)
    write_to_textfile(str(path), registry)
    path.chmod(0o644)  # node_exporter is another user


def _last_success(path: Path, output: str) -> float | None:
    """What the file says of that output; None if it says nothing."""
    from prometheus_client.parser import text_string_to_metric_families

    try:
        families = list(text_string_to_metric_families(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
    samples = (sample for family in families for sample in family.samples)
    return next((s.value for s in samples if s.name == _SUCCESS and s.labels.get("output") == output), None)
