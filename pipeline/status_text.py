"""The status of an output as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from .escaping import one_line
from .run_log import RunLog
from .status import Kept, Status
from .summary.ending import summary_lines

__all__ = ["describe"]

_STATES = {
    "none": "no run has been here",
    "running": "running",
    "unknown": "running, unless it is dead: it runs on another host, or in another container, which cannot be asked",
    "dead": "dead: its process is gone, and the next run takes its lock over",
    "failed": "failed",
    "finished": "finished",
}


def describe(status: Status, now: datetime) -> str:
    """Lines of a name and what it is."""
    return "\n".join(f"{name:<11} {one_line(value)}".rstrip() for name, value in _rows(status, now))


def _rows(status: Status, now: datetime) -> Iterator[tuple[str, str]]:
    log, result = status.log, status.result
    state = _STATES[status.state]
    if status.state == "finished" and result is not None and not result.converged:
        state += f", not converged: {result.unsettled:,} edges have an interval in place of lambda"
    yield "state", state
    if status.holder is not None:
        yield "run", str(status.holder).removeprefix("run ")
    if log is not None and status.state != "finished":
        if status.holder is None:
            yield "run", str(log.run)
        yield from _progress(log, now if status.state in ("running", "unknown") else None)
        if status.state in ("running", "unknown"):
            yield from log.serving.items()
    if log is not None and log.last_time is not None:
        yield "last event", f"{log.last}, {_ago(now - log.last_time)} ({_at(log.last_time)})"
    if log is not None and status.state == "failed":
        yield "error", str(log.error)
        yield "exit code", str(log.exit_code)
    if status.log_place is not None:
        yield "log", status.log_place
    ended = log if status.state in ("dead", "failed") else None
    follows = ended is not None and result is not None and result.run in (ended.run, ended.left)
    if not follows and (status.state in ("dead", "failed") or status.kept is not None):
        yield "checkpoint", _kept(status.kept)
    if result is None:
        if status.state == "none":
            yield "output", status.output
        return
    if follows:  # it has failed, or was killed, after its result
        yield "result", "complete; what follows it may not be: the same run again does that"
    elif status.state != "finished":
        yield "result", f"of an earlier run, {result.run}, until another takes its place:"
    else:
        yield "run", result.run
    yield "finished", _at(result.finished)
    for line in summary_lines(result, status.output):
        name, value = line[:11].strip(), line[12:]
        yield name, value


def _progress(log: RunLog, now: datetime | None) -> Iterator[tuple[str, str]]:
    if log.running:
        since = f", for {timedelta(seconds=int((now - log.since).total_seconds()))}" if now and log.since else ""
        yield "stage", " > ".join(log.running) + since
    else:
        yield "stage", f"after {log.finished}" if log.finished else "before the first"
    parts = [] if log.done is None else [f"{log.done:,}/{log.tasks:,} tasks"]
    parts += [f"{name} {log.figures[name]:,}" for name in ("level", "step", "exchange") if name in log.figures]
    if "unsettled" in log.figures:
        parts.append(f"{log.figures['unsettled']:,} edges unsettled")
    if parts:
        yield "progress", "  ".join(parts)


def _kept(kept: Kept | None) -> str:
    if kept is None:
        return "nothing: the next run starts anew"
    if kept.what == "damaged":
        return f"{kept.place}, damaged: the next run starts anew"
    if kept.what == "unknown":
        return f"in {kept.place}, which cannot be looked at from here"
    when = f", {_at(kept.time)}" if kept.time else ""
    what = "edges" if kept.what == "edges" else "edges and triangles"
    if kept.what == "search":
        parts = [("level", kept.level), ("exchange", kept.exchange)]
        how_far = ", ".join(f"{name} {number:,}" for name, number in parts if number is not None)
        how_far = how_far and f" up to {how_far}"
        unsettled = "" if kept.unsettled is None else f" ({kept.unsettled:,} edges unsettled)"
        what += f", and the search for lambda{how_far}{unsettled}"
    return f"{what}{when}: the same run goes on from there; in {kept.place}"


def _at(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


def _ago(passed: timedelta) -> str:
    seconds = max(0, int(passed.total_seconds()))
    return f"{seconds} s ago" if seconds < 120 else f"{timedelta(seconds=seconds)} ago"
