"""How far a run has come, by the two ends of its log: the middle may be long, and the last line half written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..tasks.places import Place

__all__ = ["RunLog", "read_log"]

_MOST_BYTES = 256 * 1024
"""Read of each end; an event takes some 200."""
_FIGURES = ("level", "step", "exchange", "unsettled")


@dataclass
class RunLog:
    """What the log of a run says."""

    run: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    serving: dict[str, str] = field(default_factory=dict)
    """Address of its metrics and dashboard."""
    running: dict[str, datetime | None] = field(default_factory=dict)
    """Stages under way, the innermost last, and when each began, if the log's end reaches back so far."""
    finished: str | None = None
    """The stage that has ended last."""
    done: int | None = None
    tasks: int | None = None
    """Tasks of the innermost stage; None where they are not counted."""
    figures: dict[str, int] = field(default_factory=dict)
    """Level, step, exchange and unsettled edges, as far as they were told in the outermost stage."""
    last: str | None = None
    last_time: datetime | None = None
    """The last event, and when it was."""
    left: str | None = None
    """The run whose result it found to be what was asked for, and left there."""
    error: str | None = None
    exit_code: int | None = None
    """How it failed, if it did."""

    @property
    def stage(self) -> str | None:
        """The innermost stage that runs."""
        return next(reversed(self.running), None)

    @property
    def since(self) -> datetime | None:
        """When that began."""
        return None if self.stage is None else self.running[self.stage]

    def take_in(self, event: Mapping[str, Any]) -> None:
        """Follow one event of the log's end."""
        time = datetime.fromisoformat(event["time"])
        self.run, self.last, self.last_time = event["run"], event["event"], time
        match event["event"]:
            case "run_started":
                self.running, self.figures = {}, {}
                self.error = self.exit_code = None
            case "stage_started":
                self._enter(event["stage"], time, event["tasks"])
            case "task_done":
                if event["stage"] != self.stage:
                    self._enter(event["stage"], None, event["tasks"])
                self.done, self.tasks = event["done"], event["tasks"]
            case "exchange" | "level":
                if not self.running:  # it began before the end of the log that is read
                    self._enter("bound", None, 0)
                self.figures |= {name: event[name] for name in _FIGURES if name in event}
            case "stage_finished":
                self.running.pop(event["stage"], None)
                self.finished, self.done, self.tasks = event["stage"], None, None
            case "nothing_to_do":
                self.left = event["result"]
            case "run_failed":
                self.error, self.exit_code = event["error"], event["exit_code"]

    def _enter(self, stage: str, since: datetime | None, tasks: int) -> None:
        if stage in self.running:  # begun again, as a worker was lost
            self.running = {}
        if not self.running:
            self.figures = {}
        self.running[stage] = since
        self.done, self.tasks = 0 if tasks else None, tasks or None


def read_log(place: Place, name: str) -> RunLog | None:
    """What the log `name` in `place` says; None if it is not there, or another user's. Raises UsageError for a
    store, OSError.
    """
    try:
        ends = place.ends(name, _MOST_BYTES)
    except PermissionError:  # while a run makes it, its log is its user's alone
        return None
    if ends is None:
        return None
    first, last = ends
    log = RunLog()
    for event in _events(first):
        match event:
            case {"event": "run_started", "settings": dict(settings)}:
                log.settings = settings
            case {"event": "serving", "what": str(what), "address": str(address)}:
                log.serving[what] = address
    for event in _events(last if last == first else last.partition(b"\n")[2]):
        with suppress(LookupError, TypeError, ValueError):  # of a release that writes others
            log.take_in(event)
    return log


def _events(text: bytes) -> Iterator[Mapping[str, Any]]:
    """The events in whole lines."""
    for line in text.split(b"\n")[:-1]:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and {"time", "run", "event"} <= event.keys():
            yield event
