"""What happens in a run, as events: one JSON line each in the log, and told to who listens."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Protocol, Self, TextIO

from ..tasks.own_files import open_own
from .escaping import in_json
from .exits import exit_code, message
from .manifest import ExchangeRecord, StageRecord

__all__ = ["STAGES", "Events", "Listener", "Stage", "as_line"]

STAGES = ("read", "number", "partition", "triangulate", "bound", "extract", "publish")
"""Stages in order; "compile" comes before the one that had to compile kernels, "programs" after "bound" if there are
any. Nights have "follow" within "publish", and "compare" last.
"""


class Listener(Protocol):
    """Takes in events, for a person or a program; called under a lock, one event at a time."""

    def show(self, event: Mapping[str, Any]) -> None:
        """Take in one event: its name under "event", beside its fields."""

    def close(self) -> None:
        """Give back what it holds: the terminal, as it should stay, or a port."""


class Stage:
    """Tasks of a running stage, counted."""

    def __init__(self, events: Events, name: str, tasks: int) -> None:
        self.name, self.tasks, self.done = name, tasks, 0
        self._events = events

    def task_done(self, count: int = 1) -> None:
        """Tell that `count` more tasks are done."""
        self.done += count
        self._events.emit("task_done", stage=self.name, done=self.done, tasks=self.tasks)


class Events:
    """Events of one run: emitted from any thread, kept in the log while `recording`, told to all listeners.

    Stages and exchanges are also kept as records, for the manifest.
    """

    def __init__(self, listener: Listener | None = None, run_id: str | None = None) -> None:
        self.started = datetime.now(UTC)
        self.run_id = run_id or f"{self.started:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
        self.stages: list[StageRecord] = []
        self.exchanges: list[ExchangeRecord] = []
        self.reached: Mapping[str, object] = {}
        """The last level or exchange of the search for λ that was told of, by its name."""
        self.report_failed: str | None = None
        """Why there is no report, though there was to be one."""
        self.removed: list[str] = []
        """Results of earlier nights that made room."""
        self.not_removed: dict[str, str] = {}
        """What was to go, and why it is still there."""
        self._listeners = [] if listener is None else [listener]
        self._log: TextIO | None = None
        self._staged = 0.0
        """Seconds in stages that have ended, each second once."""
        self._lock = RLock()  # a library may log while an event is told, which tells another

    def add(self, listener: Listener) -> None:
        """Tell another listener too, from now on; it is closed with the others."""
        with self._lock:
            self._listeners.append(listener)

    def emit(self, event: str, /, **fields: object) -> None:
        """Append an event to the log and tell it to all. Fields are JSON values or NumPy scalars."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"time": now, "run": self.run_id, "event": event, **fields}
        with self._lock:
            match event:
                case "level" | "exchange":
                    self.reached = {event: fields[event]}
                case "report_failed":
                    self.report_failed = str(fields["reason"])
                case "removed":
                    self.removed.append(str(fields["place"]))
                case "not_removed":
                    self.not_removed[str(fields["place"])] = str(fields["reason"])
            if self._log is not None:
                self._log.write(as_line(line))
                self._log.flush()
            for listener in self._listeners:
                listener.show(line)

    @contextmanager
    def recording(self, log: Path, settings: Mapping[str, object]) -> Iterator[None]:
        """Keep the events of the block in the file `log`: run_started first, run_failed last if it raises."""
        with open(open_own(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, own=2), "a", encoding="utf-8") as file:
            self._log = file
            try:
                self.emit("run_started", settings=settings)
                yield
            except BaseException as error:
                self.emit("run_failed", error=message(error), exit_code=exit_code(error))
                raise
            finally:
                self._log = None

    @contextmanager
    def stage(self, name: str, tasks: int) -> Iterator[Stage]:
        """A stage of `tasks` tasks; timed when the block ends without an exception, less the stages within it."""
        self.emit("stage_started", stage=name, tasks=tasks)
        start, before = time.perf_counter(), self._staged
        yield Stage(self, name, tasks)
        elapsed, within = time.perf_counter() - start, self._staged - before
        self._staged = before + elapsed
        record = StageRecord(stage=name, seconds=round(elapsed - within, 6))
        self.stages.append(record)
        self.emit("stage_finished", **record.model_dump())

    def exchange(self, record: ExchangeRecord) -> None:
        """Keep and emit one exchange."""
        self.exchanges.append(record)
        self.emit("exchange", **asdict(record))

    def close(self) -> None:
        """Close all listeners, in the order in which they came."""
        with ExitStack() as stack:
            for listener in reversed(self._listeners):
                stack.callback(listener.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def as_line(event: Mapping[str, Any]) -> str:
    """An event as a line of JSON."""
    return in_json(json.dumps(event, default=_scalar, ensure_ascii=False)) + "\n"


def _scalar(value: Any) -> object:
    return value.item() if hasattr(value, "item") else str(value)
