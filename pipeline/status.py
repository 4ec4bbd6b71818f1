"""How the run into an output stands: one that runs, is dead, has failed or is finished. Nothing is changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ..tasks.errors import EdgemillError, InputError, StoreLost, UsageError
from ..tasks.places import Place, place_of
from ..tasks.pointer import follow
from .checkpoint_index import INDEXES, checkpoint_place, opened
from .holder import Holder
from .lock import look_at_lock
from .manifest import Manifest, read_manifest
from .output import LOG_NAME
from .run_log import RunLog, read_log
from .store_lock import LOCK_NAME, look_at_store_lock
from .store_output import CHECKPOINT, FAILED_LOG, RUN

__all__ = ["Kept", "State", "Status", "status_of"]

State: TypeAlias = Literal["none", "running", "unknown", "dead", "failed", "finished"]
"""`unknown`: another host, or container, has the run, which cannot be asked whether it lives."""

_LOOKS = 3
"""Times to look for a log that a run may just have moved."""


@dataclass(frozen=True)
class Kept:
    """What a run has left for the one that follows."""

    place: str
    what: Literal["edges", "graph", "search", "damaged", "unknown"]
    """Edges; edges and triangles; those and how far the search for λ has come; nothing that can be used; or out of
    reach."""
    time: datetime | None
    """When that was, if the storage tells."""
    exchange: int | None = None
    """The last exchange of the search, or of groups of shards; None if it has none, as one partition that is peeled."""
    unsettled: int | None = None
    level: int | None = None
    """The next level, where edges are peeled."""


@dataclass(frozen=True)
class Status:
    """What there is to know of an output."""

    output: str
    state: State
    holder: Holder | None = None
    """Of the lock, while a run is under way or when it is dead."""
    log_place: str | None = None
    log: RunLog | None = None
    """Of that run, or of the one that failed; of a result, all that was added to it."""
    kept: Kept | None = None
    result: Manifest | None = None
    """The result that is there, perhaps of an earlier run."""

    @property
    def exit_code(self) -> int:
        """Of the command that tells of it: 0 while a run may live or a result is the last word, 1 for a dead or failed
        run, 2 where there was none.
        """
        return {"none": 2, "dead": 1, "failed": 1}.get(self.state, 0)

    def as_json(self, now: datetime) -> dict[str, Any]:
        """JSON values by name; what is not known is not there."""
        log, holder, result, found = self.log, self.holder, self.result, _Filled()
        found["output"], found["state"] = self.output, self.state
        if holder is not None:
            found["holder"] = holder.model_dump(mode="json", include={"run", "user", "host", "pid", "since"})
        if log is not None:
            found["run"] = log.run
            if self.state != "finished":
                found["stage"], found["after_stage"] = log.stage, None if log.stage else log.finished
                found["stage_since"], found["tasks_done"], found["tasks"] = _text(log.since), log.done, log.tasks
                found |= log.figures
                found["serving"] = log.serving if self.state in ("running", "unknown") else None
                found["error"], found["exit_code"] = log.error, log.exit_code
            found["last_event"], found["last_event_time"] = log.last, _text(log.last_time)
            if log.last_time is not None:
                found["last_event_seconds_ago"] = round((now - log.last_time).total_seconds(), 3)
        found["log"] = self.log_place
        if self.kept is not None:
            found["checkpoint"] = _Filled()
            for name in ("place", "what", "level", "exchange", "unsettled"):
                found["checkpoint"][name] = getattr(self.kept, name)
            found["checkpoint"]["time"] = _text(self.kept.time)
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
                "lambda_max": result.lam.max,
            }
        return found


class _Filled(dict[str, Any]):
    """Takes no None."""

    def __setitem__(self, name: str, value: Any) -> None:
        if value is not None:
            super().__setitem__(name, value)


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def status_of(out: Place | str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> Status:
    """How the run into the folder or URL `out` stands; `options` are fsspec's.

    Raises UsageError if it cannot be looked at, InputError if something else is there, or a damaged result.
    """
    place = place_of(out, options)
    if place.is_local:
        place = Place(os.path.realpath(os.path.expanduser(place.url)))
    place = follow(place)
    try:
        return _look(_Local(place) if place.is_local else _Stored(place))
    except OSError as error:
        raise UsageError(f"cannot look at {place}: {error.strerror or error}") from error


class _Local:
    """Where things are about an output on a disk."""

    def __init__(self, out: Place) -> None:
        self.out = out
        path = Path(out.url)
        self.beside, self.name = Place(str(path.parent)), path.name
        self.failed_log = self.beside, f"{path.name}.failed.{LOG_NAME}"

    def lock(self) -> tuple[Holder | None, bool | None] | None:
        """Who holds it, and whether that run lives."""
        return look_at_lock(Path(self.beside.url, f".{self.name}.edgemill.lock"))

    def scratch_log(self, holder: Holder) -> tuple[Place, str] | None:
        """The log of the run that holds the lock; None if it is out of reach."""
        return self.beside.within(f".{self.name}.edgemill-{holder.run}"), LOG_NAME

    def result_log(self, result: Manifest) -> tuple[Place, str]:
        """That of a result."""
        return self.out, LOG_NAME


class _Stored:
    """Where things are about an output in an object store."""

    def __init__(self, out: Place) -> None:
        self.out = out
        self.failed_log = out, FAILED_LOG

    def lock(self) -> tuple[Holder | None, bool | None] | None:
        """Who holds it, and whether that run lives."""
        return look_at_store_lock(self.out)

    def scratch_log(self, holder: Holder) -> tuple[Place, str] | None:
        """The log of the run that holds the lock, on the disk of its host; None if it is out of reach."""
        path = Path(holder.log or "")
        ours = path.name == LOG_NAME and path.parent.name.startswith(RUN)  # who may write the lock names no other file
        return (Place(str(path.parent)), path.name) if ours and holder.is_on_this_machine else None

    def result_log(self, result: Manifest) -> tuple[Place, str]:
        """That of a result."""
        return self.out.within(f"{RUN}{result.run}"), LOG_NAME


def _look(at: _Local | _Stored) -> Status:
    result, wrong = _result(at.out)
    log: RunLog | None
    for _ in range(_LOOKS):
        lock = at.lock()
        if lock is None:
            break
        holder, lives = lock
        place = None if holder is None else at.scratch_log(holder)
        log = None if place is None else read_log(*place)
        if log is not None or place is None:
            break
        result, wrong = _result(at.out)  # the log may have become the result's meanwhile
    published = lock is not None and holder is not None and result is not None and result.run == holder.run
    if published and result is not None and lives is False:
        own = at.result_log(result)
        return Status(str(at.out), "dead", holder, _named(own), read_log(*own), result=result)
    if lock is not None and not published:
        state: State = "running" if lives else "dead" if lives is False else "unknown"
        found = Status(str(at.out), state, holder, _named(place) if log else None, log, result=result)
        return replace(found, kept=_kept(at.out, log))
    failed = read_log(*at.failed_log)
    log = None if result is None else read_log(*at.result_log(result))
    if failed is not None and failed.error is not None and _later(failed, result, log):
        found = Status(str(at.out), "failed", None, _named(at.failed_log), failed, result=result)
        return replace(found, kept=_kept(at.out, failed))
    if result is not None:
        how: State = "finished" if log is None or log.error is None else "failed"
        return Status(str(at.out), how, None, _named(at.result_log(result)), log, result=result)
    if wrong is not None:
        raise wrong
    return Status(str(at.out), "none", kept=_kept(at.out, None))


def _result(out: Place) -> tuple[Manifest | None, EdgemillError | None]:
    """The result that is there, or what is wrong with it."""
    try:
        return read_manifest(out), None
    except InputError as error:
        of_runs = () if out.is_local else (RUN, LOCK_NAME, FAILED_LOG, CHECKPOINT)
        unfinished = all(name.startswith(of_runs) for name in out.names())
        return None, None if unfinished else error
    except UsageError:
        return None, None


def _later(failed: RunLog, result: Manifest | None, log: RunLog | None) -> bool:
    """Whether a failure came after the result, and after it was found to be what was asked for."""
    if result is None or failed.last_time is None:
        return True
    last = result.finished if log is None or log.last_time is None else max(result.finished, log.last_time)
    return failed.last_time > last


def _named(place: tuple[Place, str] | None) -> str | None:
    return None if place is None else f"{place[0]}/{place[1]}"


def _kept(out: Place, log: RunLog | None) -> Kept | None:
    """The checkpoint that the settings of that run name; None if there is none."""
    path = (log.settings.get("checkpoint") or {}).get("path") if log else None
    place = place_of(checkpoint_place(out, path), out.options if path is None else None)
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
                damaged = damaged or Kept(str(place), "damaged", time)
                continue
            if not name.startswith("progress."):
                return Kept(str(place), "graph" if name == "graph.json" else "edges", time)
            reached, last = index.get("reached") or {}, (index.get("exchanges") or [{}])[-1]
            unsettled = reached.get("unsettled", last.get("unsettled"))
            return Kept(str(place), "search", time, reached.get("exchange"), unsettled, reached.get("level"))
    except (OSError, UsageError, StoreLost):  # a store that the run had other keys for
        return Kept(str(place), "unknown", None)
    if path is not None and place.is_local and not os.path.isabs(os.path.expanduser(path)):
        return Kept(str(place), "unknown", None)  # it is relative to where the run was started
    return damaged
