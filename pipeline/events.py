"""The events of a run: written to the log as JSON lines and passed to listeners.

`logs_as_events` turns log messages and warnings of libraries into events, so that stderr holds only JSON lines.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Protocol, Self, TextIO

from ..tasks.storage.own_files import open_own
from ..tasks.storage.passwords import without_passwords
from .messages.exits import exit_code, message
from .messages.wording import in_json
from .output.manifest import ExchangeRecord, StageRecord

STAGES = ("read", "number", "partition", "triangulate", "bound", "extract", "publish")
"""Stages in order. There may also be "compile", before a stage that compiles kernels; "programs", after "bound";
"follow", within "publish", in a nightly series; and "compare", the last, in a nightly series.
"""


class Listener(Protocol):
    """Receives the events of a run, one at a time, under a lock."""

    def show(self, event: Mapping[str, Any]) -> None:
        """Receive one event: a mapping with its name under "event" and its fields."""

    def close(self) -> None:
        """Release resources such as the terminal or a port."""


class Stage:
    """Counts the finished tasks of a running stage."""

    def __init__(self, events: Events, name: str, tasks: int) -> None:
        self.name, self.tasks, self.done = name, tasks, 0
        self._events = events

    def task_done(self, count: int = 1) -> None:
        """Emit that `count` more tasks are done."""
        self.done += count
        self._events.emit("task_done", stage=self.name, done=self.done, tasks=self.tasks)


class Events:
    """Emits the events of one run, from any thread, to the log while `recording` and to all listeners.

    Stages and exchanges are also kept as records for the manifest.
    """

    def __init__(self, listener: Listener | None = None, run_id: str | None = None) -> None:
        self.started = datetime.now(UTC)
        self.run_id = run_id or f"{self.started:%Y%m%dT%H%M%S}-{os.urandom(3).hex()}"
        self.stages: list[StageRecord] = []
        self.exchanges: list[ExchangeRecord] = []
        self.reached: Mapping[str, object] = {}
        """The last level or exchange of the search for λ: its number under its name."""
        self._listeners = [] if listener is None else [listener]
        self.has_recorded = False
        """Whether a log of the run was begun."""
        self._log: TextIO | None = None
        self._waits = ""
        self._staged = 0.0
        """Seconds in finished stages; nested stages count once."""
        self._lock = RLock()  # a library may log while a listener runs, and the log message is an event

    def add(self, listener: Listener) -> None:
        """Add a listener. It is closed with the others."""
        with self._lock:
            self._listeners.append(listener)

    def emit(self, event: str, /, **fields: object) -> None:
        """Write an event to the log and pass it to all listeners. Fields are JSON values or NumPy scalars."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"time": now, "run": self.run_id, "event": event, **fields}
        with self._lock:
            if event in ("level", "exchange"):
                self.reached = {event: fields[event]}
            if self._log is not None:
                self._log.write(as_line(line))
                self._log.flush()
            for listener in self._listeners:
                listener.show(line)

    def waits(self, reason: str) -> None:
        """Emit what the run waits for, which begins with "for" or "at most"; with "" that it goes on."""
        with self._lock:
            if reason != self._waits:
                self._waits = reason
                self.emit("waiting", reason=reason) if reason else self.emit("waited")

    @contextmanager
    def recording(self, log: Path, settings: Mapping[str, object]) -> Iterator[None]:
        """Write the events of the block to the file `log`: run_started first, and run_failed last if it raises."""
        with open(open_own(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, own=2), "a", encoding="utf-8") as file:
            self._log, self.has_recorded = file, True
            try:
                self.emit("run_started", settings=settings)
                yield
            except BaseException as error:
                with suppress(OSError):  # a full disk does not hide the error
                    self.emit("run_failed", **_told(error))
                raise
            finally:
                self._log = None

    def log_of_failure(self, error: BaseException, settings: Mapping[str, object]) -> bytes:
        """The log of a run that failed before its log was begun: its start and its failure."""
        lines: list[tuple[datetime, dict[str, object]]] = [
            (self.started, {"event": "run_started", "settings": settings}),
            (datetime.now(UTC), {"event": "run_failed", **_told(error)}),
        ]
        return "".join(
            as_line({"time": time.isoformat(timespec="milliseconds"), "run": self.run_id, **line})
            for time, line in lines
        ).encode()

    @contextmanager
    def stage(self, name: str, tasks: int) -> Iterator[Stage]:
        """A stage of `tasks` tasks. If the block raises nothing, its seconds, without nested stages, are recorded."""
        self.emit("stage_started", stage=name, tasks=tasks)
        start, before = time.perf_counter(), self._staged
        yield Stage(self, name, tasks)
        elapsed, within = time.perf_counter() - start, self._staged - before
        self._staged = before + elapsed
        record = StageRecord(stage=name, seconds=round(elapsed - within, 6))
        self.stages.append(record)
        self.emit("stage_finished", **record.model_dump())

    def exchange(self, record: ExchangeRecord) -> None:
        """Record and emit one exchange."""
        self.exchanges.append(record)
        self.emit("exchange", **asdict(record))

    def close(self) -> None:
        """Close all listeners, in the order in which they were added."""
        with ExitStack() as stack:
            for listener in reversed(self._listeners):
                stack.callback(listener.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _told(error: BaseException) -> dict[str, object]:
    return {"error": message(error), "exit_code": exit_code(error)}


def as_line(event: Mapping[str, Any]) -> str:
    """An event as a line of JSON."""
    return in_json(json.dumps(event, default=_scalar, ensure_ascii=False)) + "\n"


def _scalar(value: Any) -> object:
    return value.item() if hasattr(value, "item") else str(value)


class _Handler(logging.StreamHandler[TextIO]):
    """A StreamHandler, so that Dask silences it with its other stream handlers."""

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        """Emit the record as the event `log`."""
        try:
            text = without_passwords(record.getMessage())
            self._events.emit("log", logger=record.name, level=record.levelname, message=text)
        except Exception:
            self.handleError(record)


@contextmanager
def logs_as_events(events: Events) -> Iterator[None]:
    """Within the block, loggers and warnings of this process emit events and write nowhere else.

    Each logger keeps its level. Other processes are not affected.
    """
    known = logging.root.manager.loggerDict.values()
    loggers = [logging.root, *(logger for logger in known if isinstance(logger, logging.Logger) and logger.handlers)]
    before = [(logger, logger.handlers) for logger in loggers]
    for logger in loggers:
        logger.handlers = [_Handler(events)]
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        for logger, handlers in before:
            logger.handlers = handlers
