"""What a run shows of its events on stderr: live on a terminal, a line per stage, little, or all of them as JSON."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .escaping import escaped, one_line
from .telemetry import Listener, as_line
from .terminal import console_on

__all__ = ["JsonDisplay", "LineDisplay", "LiveDisplay", "Stages", "display_for", "state"]

_ALIKE = ("read", "publish")
"""Stages whose tasks are of about one size."""
_LEAST_DONE = 4
"""Tasks of them that must be done before a time left is told."""


def display_for(stream: TextIO, verbose: bool = False, as_json: bool = False) -> Listener:
    """Live on a terminal; in a pipe what must be told, and a line per stage if `verbose`; JSON if asked for."""
    if as_json:
        return JsonDisplay(stream)
    console = console_on(stream)
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveDisplay(console)
    return LineDisplay(stream, verbose)


def _asked_for(event: Mapping[str, Any]) -> str | None:
    """What to tell in any case."""
    match event["event"]:
        case "serving":
            return f"{event['what']}: {event['address']}"
        case "performance_report_failed":
            return f"Warning: no performance report: {event['reason']}"
        case "textfile_failed":
            return f"Warning: monitoring.textfile could not be written: {event['reason']}"
        case "stopping":
            again = "; Ctrl-C again ends it at once, and the next run clears up" if event["signal"] == "SIGINT" else ""
            return f"stopping{again}"
        case "attributes_joined" if event["unknown"] or event["missing"]:
            return (
                f"attributes: {event['unknown']:,} of {event['rows']:,} rows of --vertices have ids that are not in "
                f"the graph; {event['missing']:,} vertices of the graph have no row"
            )
        case "note":
            return f"note: {event['text']}"
        case "weak_lock":
            return f"Warning: two runs at once are not kept apart: {event['reason']}"
    return None


def _notice(event: Mapping[str, Any]) -> str | None:
    """What to tell whoever looks on, in a line of its own."""
    match event["event"]:
        case "checkpoint_refused":
            return f"starting anew: {event['reason']}"
        case "lock_taken_over":
            return f"the lock of a dead run is taken over: {event['left_by']}"
    return _asked_for(event)


class JsonDisplay:
    """Each event as it is in the log, for collectors of logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show(self, event: Mapping[str, Any]) -> None:
        """Print the event as a line of JSON."""
        self._stream.write(as_line(event))
        self._stream.flush()

    def close(self) -> None:
        """Nothing stays open."""


class Stages:
    """Stages under way, the outermost first, with the tasks that are done and all of them; how far the search is."""

    def __init__(self) -> None:
        self.running: dict[str, tuple[int, int]] = {}
        self.search: Mapping[str, Any] | None = None
        """Last exchange or level of the outermost stage."""
        self._began: dict[str, float] = {}
        self._most_seconds: float | None = None
        """How long the search may take."""

    def take_in(self, event: Mapping[str, Any]) -> None:
        """Follow one event."""
        match event["event"]:
            case "run_started":
                self._most_seconds = event.get("settings", {}).get("bounding", {}).get("max_seconds")
            case "stage_started":
                if event["stage"] in self.running:
                    self.running.clear()  # begun again, as a worker was lost
                if not self.running:
                    self.search = None
                self.running[event["stage"]] = (0, event["tasks"])
                self._began[event["stage"]] = time.monotonic()
            case "task_done":
                self.running[event["stage"]] = (event["done"], event["tasks"])
            case "exchange" | "level":
                self.search = event
            case "stage_finished":
                self.running.pop(event["stage"], None)

    def left(self, stage: str) -> str:
        """How long a stage that runs will take yet, where that is known; else empty.

        Tasks that read and write are alike, so those that are done say how long the others take. How fast edges are
        settled says nothing of the others: only a limit that was set says when the search ends.
        """
        seconds = time.monotonic() - self._began.get(stage, time.monotonic())
        done, tasks = self.running.get(stage, (0, 0))
        if stage in _ALIKE and done >= _LEAST_DONE and done < tasks:
            return f"about {_clock(seconds * (tasks - done) / done)} left"
        if stage == "bound" and self._most_seconds is not None:
            return f"at most {_clock(max(0.0, self._most_seconds - seconds))} left"
        return ""


class LineDisplay:
    """Addresses and warnings; if `verbose`, one line for each stage that has ended, too."""

    def __init__(self, stream: TextIO, verbose: bool = True) -> None:
        self._stream = stream
        self._verbose = verbose
        self._stages = Stages()

    def show(self, event: Mapping[str, Any]) -> None:
        """Print a line if the event is worth one."""
        told = _notice(event) if self._verbose else _asked_for(event)
        if told is not None:
            print(one_line(told), file=self._stream, flush=True)
        if self._verbose and event["event"] == "stage_finished":
            self._show_stage(event)
        self._stages.take_in(event)

    def _show_stage(self, event: Mapping[str, Any]) -> None:
        parts = [f"{event['seconds']:.2f} s"]
        _, tasks = self._stages.running.get(event["stage"], (0, 0))
        if tasks:
            parts.append("1 task" if tasks == 1 else f"{tasks} tasks")
        search = self._stages.search
        if search is not None and "exchange" in search and len(self._stages.running) == 1:
            parts += [f"{search['step']} steps", f"{search['exchange']} exchanges"]
        print(escaped(f"{event['stage']}: {', '.join(parts)}"), file=self._stream, flush=True)

    def close(self) -> None:
        """Nothing stays open."""


class LiveDisplay:
    """Finished stages and their seconds; below, the running ones: elapsed, tasks, edges settled, step, exchange."""

    def __init__(self, console: Console) -> None:
        self._finished: dict[str, float] = {}
        self._stages = Stages()
        self._start = time.monotonic()
        self._live = Live(self, console=console, refresh_per_second=8, redirect_stdout=False)

    def show(self, event: Mapping[str, Any]) -> None:
        """Take in the event; the screen follows at its own pace."""
        if (told := _notice(event)) is not None:
            self._live.console.print(one_line(told), markup=False, highlight=False, soft_wrap=True)
        self._stages.take_in(event)
        match event["event"]:
            case "stage_started":
                self._live.start()  # at the first stage; no-op after that
            case "stage_finished":
                self._finished[event["stage"]] = self._finished.get(event["stage"], 0) + event["seconds"]
            case "run_finished" | "run_failed":
                self.close()

    def close(self) -> None:
        """Draw the last state and give the terminal back."""
        self._live.stop()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table.grid(padding=(0, 2))
        table.add_column(min_width=12, no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column()  # what may wrap in a narrow terminal
        for stage, seconds in list(self._finished.items()):
            table.add_row(Text(stage, "dim"), Text(f"{seconds:.2f} s", "dim"))
        search, roomy = self._stages.search, options.max_width >= 80
        for stage, (done, tasks) in list(self._stages.running.items()):
            full, filled = (tasks, done) if search is None else (_edges(search), _settled(search))
            bar = ProgressBar(total=full or None, completed=filled, width=20) if roomy else ""
            shown = "  ".join(filter(None, [state(done, tasks, search), self._stages.left(stage)]))
            table.add_row(Text(stage, "bold"), self._elapsed(), bar, shown)
            search = None  # of the outermost
        yield table

    def _elapsed(self) -> str:
        return _clock(time.monotonic() - self._start)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def state(done: int, tasks: int, search: Mapping[str, Any] | None) -> str:
    """How far a running stage is: tasks done of all, and the last exchange or level of the search for λ."""
    parts = [f"{done}/{tasks}"] if tasks else []
    if search is not None:
        parts.append(f"{_settled(search):,} of {_edges(search):,} edges settled")
        parts += [f"{name} {search[name]}" for name in ("level", "step", "exchange") if name in search]
    return "  ".join(parts)


def _edges(search: Mapping[str, Any]) -> int:
    """All edges, as an exchange or a level tells of them."""
    return int(search["edges"] if "edges" in search else search["settled"] + search["unsettled"])


def _settled(search: Mapping[str, Any]) -> int:
    return max(0, _edges(search) - int(search["unsettled"]))
