"""The progress of a run, folded from its events. Displays, metrics, the notebook and `status` are views of it.

`read_log` folds the log of a run on disk: it reads both ends only, and the last line may be incomplete.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from ...tasks.storage.checksums import json_object
from ...tasks.storage.folders import Folder
from ...tasks.storage.own_files import open_own

_LATEST = ("partitions", "exchange", "step", "level", "open_bands", "settled", "unsettled")
"""Fields of the events `planned`, `exchange` and `level` whose last values are kept."""
_SUMMED = ("messages", "bytes", "evaluations", "seconds")
"""Fields of the event `exchange` that are summed."""
_IN_STAGE = ("level", "step", "exchange", "unsettled")
"""Fields of `exchange` and `level` whose last values are kept until the outermost stage ends."""
_OF_BATCH = ("program", "done", "batches", "seconds", "predicted_seconds")
"""Fields of the event `batch` that are kept."""
_UNIFORM_STAGES = ("read", "publish")
"""Stages whose tasks are of about equal size, so that finished tasks predict the remaining time."""
_LEAST_DONE = 4
"""Finished tasks of these stages from which a remaining time is estimated."""


@dataclass
class StageProgress:
    """A stage that has started."""

    tasks: int
    """Number of tasks; 0 if they are not counted."""
    started: datetime | None
    """When it started last; None if that is not known from the events."""
    done: int = 0
    """Tasks that are done."""


@dataclass
class Progress:
    """The state of a run after the events that `update` was given, in order."""

    partial: bool = False
    """Whether the events may begin in the middle of a run, as the end of a log does."""
    run: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    serving: dict[str, str] = field(default_factory=dict)
    """Addresses of the metrics and the dashboard, by name."""
    stages: dict[str, StageProgress] = field(default_factory=dict)
    """All stages that have started."""
    active: list[str] = field(default_factory=list)
    """Stages that are running, the outermost first."""
    finished: dict[str, float] = field(default_factory=dict)
    """Seconds of stages that have finished, summed over repetitions, in the order in which they first finished."""
    last_finished: str | None = None
    """The stage that finished last."""
    search: Mapping[str, Any] | None = None
    """The last `exchange` or `level` event of the outermost stage."""
    figures: dict[str, int] = field(default_factory=dict)
    """Last values of the fields _IN_STAGE in the outermost stage."""
    latest: dict[str, float] = field(default_factory=dict)
    """Last values of the fields _LATEST in the run."""
    totals: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_SUMMED, 0.0))
    """Sums of the fields _SUMMED over all exchanges."""
    batch: Mapping[str, Any] | None = None
    """The last `batch` event of a running program that searches from many sources."""
    waiting: str | None = None
    """What the run waits for, if it waits."""
    checkpoints: int = 0
    """Checkpoints of the search for λ that were written."""
    outcome: Literal["running", "finished", "failed"] = "running"
    ended: datetime | None = None
    """When the run finished or failed."""
    existing_run: str | None = None
    """The run whose result was found up to date, so that nothing was done."""
    error: str | None = None
    exit_code: int | None = None
    """Message and exit code of a failed run."""
    last_event: str | None = None
    last_time: datetime | None = None

    @property
    def innermost(self) -> str | None:
        """The innermost stage that is running."""
        return self.active[-1] if self.active else None

    @property
    def total_edges(self) -> int:
        """Edges of the graph, as `search` has it; 0 without `search`."""
        if self.search is None:
            return 0
        return int(
            self.search["edges"] if "edges" in self.search else self.search["settled"] + self.search["unsettled"]
        )

    @property
    def settled_edges(self) -> int:
        """Edges whose λ is known, as `search` has it; 0 without `search`."""
        return 0 if self.search is None else max(0, self.total_edges - int(self.search["unsettled"]))

    def update(self, event: Mapping[str, Any]) -> None:
        """Fold one event into the state.

        Raises LookupError, TypeError or ValueError for an event of another format; the state stays consistent.
        """
        time = datetime.fromisoformat(event["time"]) if "time" in event else datetime.now(UTC)
        self.run, self.last_event, self.last_time = event.get("run", self.run), event["event"], time
        match event["event"]:
            case "run_started" | "serving" | "nothing_to_do" | "run_finished" | "run_failed":
                self._update_run(event, time)
            case "stage_started" | "task_done" | "stage_finished":
                self._update_stage(event, time)
            case "planned" | "level" | "exchange" | "kept":
                self._update_search(event)
            case "batch":
                self.batch = {name: event[name] for name in _OF_BATCH} | {"time": time}
            case "program":
                self.batch = None
            case "waiting":
                self.waiting = event["reason"]
            case "waited":
                self.waiting = None

    def _update_run(self, event: Mapping[str, Any], time: datetime) -> None:
        match event["event"]:
            case "run_started":
                settings = event.get("settings")
                self.settings = settings if isinstance(settings, Mapping) else {}
                self.active, self.figures, self.search, self.waiting = [], {}, None, None
                self.outcome, self.ended, self.error, self.exit_code = "running", None, None, None
            case "serving":
                self.serving[str(event["what"])] = str(event["address"])
            case "nothing_to_do":
                self.existing_run = event["result"]
            case "run_finished":
                self.outcome, self.ended = "finished", time
            case "run_failed":
                self.outcome, self.ended = "failed", time
                self.error, self.exit_code = event["error"], event["exit_code"]

    def _update_stage(self, event: Mapping[str, Any], time: datetime) -> None:
        name = event["stage"]
        match event["event"]:
            case "stage_started":
                self._start(name, time, event["tasks"])
            case "task_done":
                done, tasks = event["done"], event["tasks"]
                if name not in self.active:
                    self._start(name, None, tasks)
                stage = self.stages[name]
                stage.done, stage.tasks = done, tasks
            case "stage_finished":
                self.finished[name] = self.finished.get(name, 0) + event["seconds"]
                self.last_finished = name
                if name in self.active:
                    self.active.remove(name)

    def _update_search(self, event: Mapping[str, Any]) -> None:
        """Fold an event of the search for λ, or of its plan, into the state."""
        if event["event"] == "kept":
            self.checkpoints += 1
            return
        if event["event"] != "planned":
            if self.partial and not self.active:
                self._start("bound", None, 0)
            self.search = event
            self.figures |= {field: event[field] for field in _IN_STAGE if field in event}
        self.latest |= {field: event[field] for field in _LATEST if field in event}
        if event["event"] == "exchange":
            for total in _SUMMED:
                self.totals[total] += event.get(total, 0)

    def remaining_seconds(self, stage: str, now: datetime) -> tuple[Literal["about", "at most"], float] | None:
        """The estimated or largest remaining time of an active stage; None if it cannot be told.

        Finished tasks predict a stage of uniform tasks, and the first batches a program that searches from many
        sources; other programs may follow. Nothing predicts the search for λ, but `max_seconds` limits it.
        """
        state = self.stages.get(stage)
        if state is None or state.started is None:
            return None
        elapsed = (now - state.started).total_seconds()
        if stage in _UNIFORM_STAGES and _LEAST_DONE <= state.done < state.tasks:
            return "about", elapsed * (state.tasks - state.done) / state.done
        if stage == "programs" and self.batch is not None and self.batch["predicted_seconds"] is not None:
            passed = self.batch["seconds"] + (now - self.batch["time"]).total_seconds()
            return "about", max(0.0, self.batch["predicted_seconds"] - passed)
        limit = (self.settings.get("bounding") or {}).get("max_seconds")
        if stage == "bound" and limit is not None:
            return "at most", max(0.0, limit - elapsed)
        return None

    def _start(self, stage: str, time: datetime | None, tasks: int) -> None:
        if stage in self.active:  # repeated because a worker was lost
            self.active = []
        if not self.active:
            self.search, self.figures, self.batch = None, {}, None
        self.active.append(stage)
        self.stages[stage] = StageProgress(tasks, time)


_MOST_BYTES = 256 * 1024
"""Most bytes to read of each end; an event has about 200."""


def read_log(folder: Folder, name: str) -> Progress | None:
    """The progress according to the log `name` in `folder`; None if it is absent or belongs to another user.

    Raises UsageError if the store refuses access, and OSError.
    """
    try:
        ends = _own_ends(Path(folder.url, name)) if folder.is_local else folder.read_ends(name, _MOST_BYTES)
    except PermissionError:  # only its user may read the log of a running run
        return None
    if ends is None:
        return None
    first, last = ends
    head, progress = Progress(), Progress(partial=True)
    for event in _events(first):
        if event["event"] in ("run_started", "serving"):
            _update(head, event)
    for event in _events(last if last == first else last.partition(b"\n")[2]):
        _update(progress, event)
    progress.settings, progress.serving = head.settings, head.serving
    return progress


def _own_ends(log: Path) -> tuple[bytes, bytes] | None:
    """The first and the last bytes of a log on a disk; None without a log. A link that stands there is not followed,
    and a pipe is not waited for.
    """
    try:
        with open(open_own(log, os.O_RDONLY), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            first = file.read(_MOST_BYTES)
            if size <= _MOST_BYTES:
                return first, first
            file.seek(size - _MOST_BYTES)
            return first, file.read(_MOST_BYTES)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO):
            return None
        raise


def _update(progress: Progress, event: Mapping[str, Any]) -> None:
    with suppress(LookupError, TypeError, ValueError):  # other releases may write other fields
        progress.update(event)


def _events(text: bytes) -> Iterator[Mapping[str, Any]]:
    """The events in complete lines."""
    for line in text.split(b"\n")[:-1]:
        try:
            event = json_object(line)
        except ValueError:
            continue
        if {"time", "run", "event"} <= event.keys():
            yield event
