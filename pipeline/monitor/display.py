"""Displays of a run's events on stderr: live on a terminal, lines in a pipe, or JSON lines.

`RunSummary` keeps what the end of a run reports beside its result: changes since the previous night, `latest`, and
optional steps that failed.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..events import Listener, as_line
from ..messages.terminal import console_on
from ..messages.wording import escaped, one_line
from .progress import Progress

_EVENTS = (
    "followed",
    "tracks_new",
    "compared",
    "comparison_failed",
    "latest_moved",
    "latest_kept",
    "next_outdated",
    "outdated",
    "delta_published",
    "report_failed",
)
_GROUPS = ("born", "died", "merged", "split", "grown", "shrunk")
_EDGES = {
    "appeared": "edges added",
    "vanished": "removed",
    "rose": "now of higher lambda",
    "fell": "now of lower lambda",
}


class RunSummary:
    """Listens to the events of a run and keeps those that its end reports."""

    def __init__(self) -> None:
        self._events: dict[str, Mapping[str, Any]] = {}
        self.removed: list[str] = []
        """Results of earlier nights that were removed."""
        self.not_removed: dict[str, str] = {}
        """Path → why it could not be removed."""

    def show(self, event: Mapping[str, Any]) -> None:
        """Keep the event if the end of the run reports it."""
        match event["event"]:
            case "removed":
                self.removed.append(str(event["place"]))
            case "not_removed":
                self.not_removed[str(event["place"])] = str(event["reason"])
            case "followed" if "program" in event:
                pass  # the report and the log tell of groups of programs
            case name if name in _EVENTS:
                self._events[name] = event

    def close(self) -> None: ...

    def night(self) -> dict[str, Any]:
        """Changes since the previous night as JSON values, each None if it does not apply or is not known.

        since: the day compared with; groups and edges: counts of changes; latest: the day that it points to now;
        latest_kept: the day that it stays at, and why, if that is not this night; delta: the location of Delta tables
        with a new version.
        """
        tracks, kept = self._events.get("followed", {}), self._events.get("latest_kept")
        return {
            "since": tracks.get("since") or None,
            "groups": tracks.get("groups"),
            "edges": self._events.get("compared", {}).get("edges"),
            "latest": self._events.get("latest_moved", {}).get("day"),
            "latest_kept": None if kept is None else {"day": kept["day"], "reason": kept["reason"]},
            "delta": self._events.get("delta_published", {}).get("place"),
        }

    def lines(self) -> list[str]:
        """Lines to print after the counts of the result: a name, padded, and its value."""
        night, rows = self.night(), []
        if (since := night["since"] or self._events.get("followed", {}).get("before")) is not None:
            rows.append(("since", str(since)))
        if night["groups"] is not None:
            rows.append(("groups", ", ".join(f"{night['groups'][name]:,} {name}" for name in _GROUPS)))
        if night["edges"] is not None:
            rows.append(("changes", ", ".join(f"{night['edges'][name]:,} {text}" for name, text in _EDGES.items())))
        if night["latest"] is not None:
            rows.append(("latest", f"-> {night['latest']}"))
        if night["latest_kept"] is not None:
            rows.append(("latest", "stays at {day}, {reason}".format_map(night["latest_kept"])))
        if night["delta"] is not None:
            version = max(self._events["delta_published"]["versions"].values())
            rows.append(("delta", f"{night['delta']}, version {version}"))
        rows += [("removed", place) for place in self.removed]
        return [f"{name:<11} {value}" for name, value in rows]

    def warnings(self) -> list[str]:
        """Failures and gaps that left the result complete."""
        warnings = []
        if (event := self._events.get("tracks_new")) is not None:
            groups = f"groups of {event['program']}" if "program" in event else "DN-graphs"
            warnings.append(
                f"all {groups} get new tracks, since those of {event['before']} cannot be continued: {event['reason']}"
            )
        if (event := self._events.get("outdated")) is not None:
            warnings.append(f"the result is kept, but {event['reason']}: to make it again, run with --overwrite")
        if (event := self._events.get("next_outdated")) is not None:
            warnings.append(
                f"tracks and changes of {event['day']} do not follow this result: run that night again, "
                f"with --date {event['day']}"
            )
        if (event := self._events.get("comparison_failed")) is not None:
            warnings.append(f"the comparison with the previous night failed: {event['reason']}")
        if left_out := self._events.get("delta_published", {}).get("left_out"):
            warnings.append(f"the Delta tables lack columns of types that Delta does not have: {', '.join(left_out)}")
        warnings += [f"not removed: {place}: {reason}" for place, reason in self.not_removed.items()]
        if (event := self._events.get("report_failed")) is not None:
            warnings.append(f"the result is complete, but its report could not be written: {event['reason']}")
        return warnings


_live_display = threading.Lock()
"""Held by the live display of this process, which takes the place of `sys.stderr` until it is closed."""


def display_for(stream: TextIO, verbose: bool = False, as_json: bool = False) -> Listener:
    """A JSON display if asked for; a live display on a terminal; else a line display, with stages if `verbose`.

    A terminal has one live display at a time: those of other threads would draw over it.
    """
    if as_json:
        return JsonDisplay(stream)
    console = console_on(stream)
    if console.is_terminal and not console.is_dumb_terminal and _live_display.acquire(blocking=False):
        return LiveDisplay(console, _live_display.release)
    return LineDisplay(stream, verbose)


def _important_message(event: Mapping[str, Any]) -> str | None:
    """The message of an event that every display but JSON shows: addresses, warnings and notes."""
    match event["event"]:
        case "serving":
            return f"{event['what']}: {event['address']}"
        case "performance_report_failed":
            return f"Warning: the performance report could not be written: {event['reason']}"
        case "textfile_failed":
            return f"Warning: monitoring.textfile could not be written: {event['reason']}"
        case "stopping":
            again = "; press Ctrl-C again to exit at once" if event["signal"] == "SIGINT" else ""
            return f"stopping{again}"
        case "attributes_joined" if event["unknown"] or event["missing"]:
            return (
                f"attributes: {event['unknown']:,} of {event['rows']:,} rows of --vertices have ids that are not in "
                f"the graph; {event['missing']:,} vertices of the graph have no row"
            )
        case "checkpoints_rarer":
            return (
                f"checkpoints are made less often than every {event['every_seconds']:g} s (checkpoint.every_seconds): "
                f"one takes about {event['takes']:.1f} s, and all may take {event['share']:.0%} of the time"
            )
        case "waiting":
            return f"waiting {event['reason']}"
        case "note":
            return f"note: {event['text']}"
        case "weak_lock":
            return f"Warning: concurrent runs with this output are not excluded: {event['reason']}"
    return None


def _message(event: Mapping[str, Any]) -> str | None:
    """The message of an event that live and verbose displays show on a line of its own."""
    match event["event"]:
        case "checkpoint_refused":
            return f"starting over: {event['reason']}"
        case "lock_taken_over":
            return f"took over the lock of a dead run: {event['left_by']}"
    return _important_message(event)


class JsonDisplay:
    """Prints each event as a line of JSON, as in the log, for log collectors."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show(self, event: Mapping[str, Any]) -> None:
        """Print the event as a line of JSON."""
        self._stream.write(as_line(event))
        self._stream.flush()

    def close(self) -> None: ...


class LineDisplay:
    """Prints messages; if `verbose`, also one line per finished stage."""

    def __init__(self, stream: TextIO, verbose: bool = True) -> None:
        self._stream = stream
        self._verbose = verbose
        self._progress = Progress()

    def show(self, event: Mapping[str, Any]) -> None:
        """Print the message of the event, if it has one."""
        message = _message(event) if self._verbose else _important_message(event)
        if message is not None:
            print(one_line(message), file=self._stream, flush=True)
        if self._verbose and event["event"] == "stage_finished":
            self._print_stage(event)
        self._progress.update(event)

    def _print_stage(self, event: Mapping[str, Any]) -> None:
        progress = self._progress
        parts = [f"{event['seconds']:.2f} s"]
        tasks = progress.stages[event["stage"]].tasks if event["stage"] in progress.active else 0
        if tasks:
            parts.append("1 task" if tasks == 1 else f"{tasks} tasks")
        search = progress.search
        if search is not None and "exchange" in search and len(progress.active) == 1:
            parts += [f"{search['step']} steps", f"{search['exchange']} exchanges"]
        print(escaped(f"{event['stage']}: {', '.join(parts)}"), file=self._stream, flush=True)

    def close(self) -> None: ...


class LiveDisplay:
    """Shows finished stages with their seconds, and running stages with elapsed time, tasks and settled edges."""

    def __init__(self, console: Console, ended: Callable[[], None] = lambda: None) -> None:
        """`ended` is called once, when the display is closed or forgotten."""
        self._progress = Progress()
        self._start = time.monotonic()
        self._live = Live(self, console=console, refresh_per_second=8, redirect_stdout=False)
        self._ended = weakref.finalize(self, ended)

    def show(self, event: Mapping[str, Any]) -> None:
        """Update the state and print the message of the event; the screen refreshes at its own rate."""
        if (message := _message(event)) is not None:
            self._live.console.print(one_line(message), markup=False, highlight=False, soft_wrap=True)
        self._progress.update(event)
        match event["event"]:
            case "stage_started":
                self._live.start()  # has no effect after the first stage
            case "run_finished" | "run_failed":
                self.close()

    def close(self) -> None:
        """Draw the last state and restore the terminal."""
        self._live.stop()
        self._ended()  # once, also if it is closed again

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table.grid(padding=(0, 2))
        table.add_column(min_width=12, no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column()  # may wrap in a narrow terminal
        progress, now = self._progress, datetime.now(UTC)
        for stage, seconds in list(progress.finished.items()):
            table.add_row(Text(stage, "dim"), Text(f"{seconds:.2f} s", "dim"))
        for depth, stage in enumerate(list(progress.active)):
            state = progress.stages[stage]
            searching = depth == 0 and progress.search is not None
            total, done = (progress.total_edges, progress.settled_edges) if searching else (state.tasks, state.done)
            bar = ProgressBar(total=total or None, completed=done, width=20) if options.max_width >= 80 else ""
            parts = [stage_text(progress, stage), _remaining_text(progress, stage, now)]
            table.add_row(Text(stage, "bold"), self._elapsed(), bar, "  ".join(filter(None, parts)))
        yield table

    def _elapsed(self) -> str:
        return _clock(time.monotonic() - self._start)


def stage_text(progress: Progress, stage: str) -> str:
    """The state of a running stage: finished tasks, and for the outermost stage the state of the search for λ."""
    state, search = progress.stages[stage], progress.search
    parts = [f"{state.done}/{state.tasks}"] if state.tasks else []
    if stage == "programs" and progress.batch is not None:
        parts.append("{program} batch {done:,}/{batches:,}".format_map(progress.batch))
    if search is not None and stage == progress.active[0]:
        parts.append(f"{progress.settled_edges:,} of {progress.total_edges:,} edges settled")
        parts += [f"{name} {search[name]}" for name in ("level", "step", "exchange") if name in search]
    return "  ".join(parts)


def _remaining_text(progress: Progress, stage: str, now: datetime) -> str:
    remaining = progress.remaining_seconds(stage, now)
    return "" if remaining is None else f"{remaining[0]} {_clock(remaining[1])} left"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
