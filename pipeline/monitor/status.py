"""The status of an output: whether its run is running, dead, failed or finished. Reads only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ...tasks.errors import EdgemillError, InputError, StoreLost, UsageError
from ...tasks.storage.folders import Folder, folder_at
from ...tasks.storage.pointer import follow_pointer, pointer_target
from ..output.checkpoint_files import INDEXES, checkpoint_place, opened
from ..output.lock import LOCK_NAME, LockOwner, inspect_lock, inspect_store_lock
from ..output.manifest import Manifest, read_manifest
from ..output.staging import CHECKPOINT, FAILED_LOG, LOG_NAME, RUN
from ..results.series import PreviousResult, Series
from .progress import Progress, read_log

State: TypeAlias = Literal["none", "running", "unknown", "dead", "failed", "finished"]
"""`unknown`: the run is on another host or in another container, where its process cannot be checked."""

_ATTEMPTS = 3
"""Attempts to read a log that a run may be moving."""


@dataclass(frozen=True)
class CheckpointStatus:
    """A checkpoint from which the next run can resume."""

    place: str
    what: Literal["edges", "graph", "search", "lambda", "damaged", "unknown"]
    """Its content: edges; edges and triangles (graph); these and the state of the search for λ; λ of an update; nothing
    usable; or not accessible."""
    time: datetime | None
    """When it was written, if the storage says so."""
    exchange: int | None = None
    """The last exchange of the search; None if it has none, as when one partition is peeled."""
    unsettled: int | None = None
    level: int | None = None
    """The next level to peel."""


@dataclass(frozen=True)
class Status:
    """The status of an output."""

    output: str
    state: State
    owner: LockOwner | None = None
    """The lock owner of a running or dead run."""
    log_place: str | None = None
    log: Progress | None = None
    """The log of that run or of the failed run; of a result, with all that was appended to it."""
    checkpoint: CheckpointStatus | None = None
    result: Manifest | None = None
    """The existing result, perhaps of an earlier run."""

    @property
    def exit_code(self) -> int:
        """Exit code of `edgemill status`: 0 for a running run and a finished result, 1 for a dead or failed run, 2 if
        there is none.
        """
        return {"none": 2, "dead": 1, "failed": 1}.get(self.state, 0)

    def as_json(self, now: datetime) -> dict[str, Any]:
        """JSON values by name; unknown values are absent."""
        log, owner, result, found = self.log, self.owner, self.result, _WithoutNone()
        found["output"], found["state"] = self.output, self.state
        if owner is not None:
            found["holder"] = owner.model_dump(mode="json", include={"run", "user", "host", "pid", "since"})
        if log is not None:
            found["run"] = log.run
            if self.state != "finished":
                found["stage"], found["after_stage"] = log.innermost, None if log.active else log.last_finished
                if log.innermost is not None:
                    stage = log.stages[log.innermost]
                    found["stage_since"] = _text(stage.started)
                    if stage.tasks:
                        found["tasks_done"], found["tasks"] = stage.done, stage.tasks
                found |= log.figures
                if log.batch is not None:
                    found |= {"program": log.batch["program"], "batch": log.batch["done"]}
                    found["batches"] = log.batch["batches"]
                    found["predicted_seconds"] = log.batch["predicted_seconds"]
                found["waiting"] = log.waiting if self.state in ("running", "unknown") else None
                found["serving"] = log.serving if self.state in ("running", "unknown") else None
                found["error"], found["exit_code"] = log.error, log.exit_code
            found["last_event"], found["last_event_time"] = log.last_event, _text(log.last_time)
            if log.last_time is not None:
                found["last_event_seconds_ago"] = round((now - log.last_time).total_seconds(), 3)
        found["log"] = self.log_place
        if self.checkpoint is not None:
            found["checkpoint"] = _WithoutNone()
            for name in ("place", "what", "level", "exchange", "unsettled"):
                found["checkpoint"][name] = getattr(self.checkpoint, name)
            found["checkpoint"]["time"] = _text(self.checkpoint.time)
        if result is not None:
            found["result"] = {
                "run": result.run,
                "finished": _text(result.finished),
                "seconds": result.seconds,
                "converged": result.converged,
                "unsettled": result.unsettled,
                "edges": result.counts.edges,
                "vertices": result.counts.vertices,
                "triangles": result.counts.triangles,
                "butterflies": result.counts.butterflies,
                "lambda_max": result.lam.max if result.has_lambda else None,
            }
        return found


class _WithoutNone(dict[str, Any]):
    """Ignores assignments of None."""

    def __setitem__(self, name: str, value: Any) -> None:
        if value is not None:
            super().__setitem__(name, value)


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def status_of(out: Folder | str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> Status:
    """The status of the folder or URL `out`; `options` are fsspec options.

    Raises UsageError if it cannot be read, and InputError if it holds something else or a damaged result.
    """
    place = folder_at(out, options)
    if place.is_local:
        place = Folder(os.path.realpath(os.path.expanduser(place.url)))
    place = follow_pointer(place)
    try:
        return _read_status(_Local(place) if place.is_local else _Stored(place))
    except OSError as error:
        raise UsageError(f"cannot read {place}: {error.strerror or error}") from error


class _Local:
    """Locations of the lock and logs of an output on a disk."""

    def __init__(self, out: Folder) -> None:
        self.out = out
        path = Path(out.url)
        self.beside, self.name = Folder(str(path.parent)), path.name
        self.failed_log = self.beside, f"{path.name}.failed.{LOG_NAME}"

    def lock(self) -> tuple[LockOwner | None, bool | None] | None:
        """The lock owner, and whether it is alive; None if there is no lock."""
        return inspect_lock(Path(self.beside.url, f".{self.name}.edgemill.lock"))

    def scratch_log(self, owner: LockOwner) -> tuple[Folder, str] | None:
        """Folder and name of the log of the lock owner; None if it is not accessible."""
        return self.beside.subfolder(f".{self.name}.edgemill-{owner.run}"), LOG_NAME

    def result_log(self, result: Manifest) -> tuple[Folder, str]:
        """Folder and name of the log of a result."""
        return self.out, LOG_NAME


class _Stored:
    """Locations of the lock and logs of an output in an object store."""

    def __init__(self, out: Folder) -> None:
        self.out = out
        self.failed_log = out, FAILED_LOG

    def lock(self) -> tuple[LockOwner | None, bool | None] | None:
        """The lock owner, and whether it is alive; None if there is no lock."""
        return inspect_store_lock(self.out)

    def scratch_log(self, owner: LockOwner) -> tuple[Folder, str] | None:
        """Folder and name of the log of the lock owner, on the disk of its host; None if it is not accessible."""
        path = Path(owner.log or "")
        ours = path.name == LOG_NAME and path.parent.name.startswith(RUN)  # a forged lock cannot name another file
        return (Folder(str(path.parent)), path.name) if ours and owner.is_on_this_machine else None

    def result_log(self, result: Manifest) -> tuple[Folder, str]:
        """Folder and name of the log of a result."""
        return self.out.subfolder(f"{RUN}{result.run}"), LOG_NAME


@dataclass(frozen=True)
class _Holder:
    """A run that holds the lock of an output."""

    owner: LockOwner | None
    """None if the lock does not tell."""
    lives: bool | None
    log_location: tuple[Folder, str] | None
    """None if its log is not accessible."""
    log: Progress | None


def _read_status(at: _Local | _Stored) -> Status:
    holder, result, error = _holder_and_result(at)
    if holder is not None and (status := _status_of_holder(at, holder, result)) is not None:
        return status
    if (status := _status_of_ended(at, result)) is not None:
        return status
    if error is not None:
        raise error
    return Status(str(at.out), "none", checkpoint=_checkpoint_status(at.out, None))


def _holder_and_result(at: _Local | _Stored) -> tuple[_Holder | None, Manifest | None, EdgemillError | None]:
    """The holder of the lock, if there is one, and the result as `_result` gives it.

    A run that publishes meanwhile moves its log into the result, so both are read again.
    """
    holder, (result, error) = None, _result(at.out)
    for _ in range(_ATTEMPTS):
        lock = at.lock()
        if lock is None:
            return None, result, error
        owner, lives = lock
        location = None if owner is None else at.scratch_log(owner)
        holder = _Holder(owner, lives, location, None if location is None else read_log(*location))
        if holder.log is not None or location is None:
            break
        result, error = _result(at.out)
    return holder, result, error


def _status_of_holder(at: _Local | _Stored, holder: _Holder, result: Manifest | None) -> Status | None:
    """The status if the holder has not published its result, or was killed after that; None if it did all its work, or
    still runs.
    """
    owner, lives, log = holder.owner, holder.lives, holder.log
    if owner is not None and result is not None and result.run == owner.run:
        if lives is not False:
            return None
        place = at.result_log(result)
        return Status(str(at.out), "dead", owner, _log_path(place), read_log(*place), result=result)
    state: State = "running" if lives else "dead" if lives is False else "unknown"
    status = Status(str(at.out), state, owner, _log_path(holder.log_location) if log else None, log, result=result)
    return replace(status, checkpoint=_checkpoint_status(at.out, log))


def _status_of_ended(at: _Local | _Stored, result: Manifest | None) -> Status | None:
    """The status of the last run, which holds no lock; None if it left neither a result nor a log of its failure."""
    failed = read_log(*at.failed_log)
    log = None if result is None else read_log(*at.result_log(result))
    if failed is not None and failed.error is not None and _is_newer(failed, result, log):
        status = Status(str(at.out), "failed", None, _log_path(at.failed_log), failed, result=result)
        return replace(status, checkpoint=_checkpoint_status(at.out, failed))
    if result is None:
        return None
    state: State = "finished" if log is None or log.error is None else "failed"
    return Status(str(at.out), state, None, _log_path(at.result_log(result)), log, result=result)


def _result(out: Folder) -> tuple[Manifest | None, EdgemillError | None]:
    """The result, or the error of a damaged one or of another file."""
    try:
        return read_manifest(out), None
    except InputError as error:
        of_runs = () if out.is_local else (RUN, LOCK_NAME, FAILED_LOG, CHECKPOINT)
        unfinished = all(name.startswith(of_runs) for name in out.names())
        return None, None if unfinished else error
    except UsageError:
        return None, None


def _is_newer(failed: Progress, result: Manifest | None, log: Progress | None) -> bool:
    """Whether the failure is newer than the result, and than the last run that found the result up to date."""
    if result is None or failed.last_time is None:
        return True
    last = result.finished if log is None or log.last_time is None else max(result.finished, log.last_time)
    return failed.last_time > last


def _log_path(place: tuple[Folder, str] | None) -> str | None:
    return None if place is None else f"{place[0]}/{place[1]}"


def _checkpoint_status(out: Folder, log: Progress | None) -> CheckpointStatus | None:
    """The checkpoint at the path in the settings of that run; None if there is none."""
    path = (log.settings.get("checkpoint") or {}).get("path") if log else None
    place = folder_at(checkpoint_place(out, path), out.options if path is None else None)
    damaged = None
    try:
        for name in INDEXES:
            content = place.read(name)
            if content is None:
                continue
            time = place.modified(name)
            try:
                index = opened(content)
            except ValueError:
                damaged = damaged or CheckpointStatus(str(place), "damaged", time)
                continue
            if name == "update.json":
                return CheckpointStatus(str(place), "lambda", time)
            if not name.startswith("progress."):
                return CheckpointStatus(str(place), "graph" if name == "graph.json" else "edges", time)
            reached, last = index.get("reached") or {}, (index.get("exchanges") or [{}])[-1]
            unsettled = reached.get("unsettled", last.get("unsettled"))
            return CheckpointStatus(
                str(place), "search", time, reached.get("exchange"), unsettled, reached.get("level")
            )
    except (OSError, UsageError, StoreLost):  # a store with other credentials
        return CheckpointStatus(str(place), "unknown", None)
    if path is not None and place.is_local and not os.path.isabs(os.path.expanduser(path)):
        return CheckpointStatus(str(place), "unknown", None)  # a path relative to the working directory of the run
    return damaged


def later_failures(out: Folder) -> list[tuple[str, Status]]:
    """Days after the one that the pointer `out` points to, whose last run failed or died, with the status of each, the
    oldest first. Empty if `out` is no pointer of a series. Raises as `status_of` does.
    """
    target = pointer_target(out)
    manifest = None if target is None else PreviousResult("", target).manifest()
    known = {} if manifest is None else manifest.settings.get("nightly", {})
    day, name = str(known.get("date") or ""), str(known.get("series") or "")
    series = Series.around(target, name, day) if target is not None and day and name else None
    if series is None:
        return []
    newer = [(own, status_of(series.at(own))) for own in reversed(series.days()) if own > day]
    return [(own, status) for own, status in newer if status.state in ("failed", "dead")]
