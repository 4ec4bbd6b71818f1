"""The status of an output as text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from ..messages.setting_names import with_flags
from ..messages.wording import one_line
from ..results.summary.run_end import summary_lines
from .progress import Progress
from .status import CheckpointStatus, Status

_STATES = {
    "none": "no run has used this output",
    "running": "running",
    "unknown": "running or dead: its process is on another host or in another container and cannot be checked",
    "dead": "dead: its process is gone; the next run takes over its lock",
    "failed": "failed",
    "finished": "finished",
}


def describe(status: Status, now: datetime) -> str:
    """One line per fact: a name, padded, and its value."""
    return "\n".join(f"{name:<11} {one_line(value)}".rstrip() for name, value in _rows(status, now))


def _rows(status: Status, now: datetime) -> Iterator[tuple[str, str]]:
    log, result = status.log, status.result
    state = _STATES[status.state]
    if status.state == "finished" and result is not None and not result.converged:
        state += f", not converged: {'; '.join(result.unfinished)}"
    yield "state", state
    if status.owner is not None:
        yield "run", str(status.owner).removeprefix("run ")
    if log is not None and status.state != "finished":
        if status.owner is None:
            yield "run", str(log.run)
        yield from _progress(log, now if status.state in ("running", "unknown") else None)
        if status.state in ("running", "unknown"):
            if log.waiting is not None:
                yield "waiting", log.waiting
            yield from log.serving.items()
    if log is not None and log.last_time is not None:
        yield "last event", f"{log.last_event}, {_ago(now - log.last_time)} ({_at(log.last_time)})"
    if log is not None and status.state == "failed":
        yield "error", with_flags(str(log.error))
        yield "exit code", str(log.exit_code)
    if status.log_place is not None:
        yield "log", status.log_place
    ended = log if status.state in ("dead", "failed") else None
    follows = ended is not None and result is not None and result.run in (ended.run, ended.existing_run)
    if not follows and (status.state in ("dead", "failed") or status.checkpoint is not None):
        yield "checkpoint", _checkpoint(status.checkpoint)
    if result is None:
        if status.state == "none":
            yield "output", status.output
        return
    if follows:  # the run failed or was killed after it published
        yield "result", "complete; later steps may be missing: run the same command again"
    elif status.state != "finished":
        yield "result", f"of an earlier run, {result.run}, until the next result replaces it:"
    else:
        yield "run", result.run
    yield "finished", _at(result.finished)
    for line in summary_lines(result, status.output):
        name, value = line[:11].strip(), line[12:]
        yield name, value


def _progress(log: Progress, now: datetime | None) -> Iterator[tuple[str, str]]:
    stage = None if log.innermost is None else log.stages[log.innermost]
    if stage is not None:
        passed = f", for {_duration(now - stage.started)}" if now and stage.started else ""
        yield "stage", " > ".join(log.active) + passed
    else:
        yield "stage", f"after {log.last_finished}" if log.last_finished else "before the first"
    parts = [f"{stage.done:,}/{stage.tasks:,} tasks"] if stage is not None and stage.tasks else []
    parts += [f"{name} {log.figures[name]:,}" for name in ("level", "step", "exchange") if name in log.figures]
    if log.batch is not None:
        parts.append("{program} batch {done:,}/{batches:,}".format_map(log.batch))
        remaining = None if now is None else log.remaining_seconds("programs", now)
        if remaining is not None:
            parts.append(f"{remaining[0]} {timedelta(seconds=int(remaining[1]))} left of this program")
    if "unsettled" in log.figures:
        parts.append(f"{log.figures['unsettled']:,} edges unsettled")
    if parts:
        yield "progress", "  ".join(parts)


def _checkpoint(checkpoint: CheckpointStatus | None) -> str:
    if checkpoint is None:
        return "none: the next run starts over"
    if checkpoint.what == "damaged":
        return f"{checkpoint.place}, damaged: the next run starts over"
    if checkpoint.what == "unknown":
        return f"in {checkpoint.place}, which cannot be read from here"
    when = f", {_at(checkpoint.time)}" if checkpoint.time else ""
    what = {"edges": "edges", "lambda": "lambda of every edge"}.get(checkpoint.what, "edges and triangles")
    if checkpoint.what == "search":
        parts = [("level", checkpoint.level), ("exchange", checkpoint.exchange)]
        how_far = ", ".join(f"{name} {number:,}" for name, number in parts if number is not None)
        how_far = how_far and f" up to {how_far}"
        unsettled = "" if checkpoint.unsettled is None else f" ({checkpoint.unsettled:,} edges unsettled)"
        what += f", and the search for lambda{how_far}{unsettled}"
    return f"{what}{when}: the same command resumes from it; in {checkpoint.place}"


def _at(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


def _ago(passed: timedelta) -> str:
    seconds = max(0, int(passed.total_seconds()))
    return f"{seconds} s ago" if seconds < 120 else f"{timedelta(seconds=seconds)} ago"


def _duration(passed: timedelta) -> timedelta:
    return timedelta(seconds=int(passed.total_seconds()))
