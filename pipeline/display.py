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

from .telemetry import Listener, as_line

__all__ = ["JsonDisplay", "LineDisplay", "LiveDisplay", "display_for"]


def display_for(stream: TextIO, verbose: bool = False, as_json: bool = False) -> Listener:
    """Live on a terminal; in a pipe what must be told, and a line per stage if `verbose`; JSON if asked for."""
    if as_json:
        return JsonDisplay(stream)
    console = Console(file=stream)
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveDisplay(console)
    return LineDisplay(stream, verbose)


def _asked_for(event: Mapping[str, Any]) -> str | None:
    """What to tell in any case."""
    match event["event"]:
        case "serving":
            return f"{event['what']}: {event['address']}"
        case "performance_report_failed":
            return f"warning: no performance report: {event['reason']}"
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


class LineDisplay:
    """Addresses and warnings; if `verbose`, one line for each stage that has ended, too."""

    def __init__(self, stream: TextIO, verbose: bool = True) -> None:
        self._stream = stream
        self._verbose = verbose
        self._tasks = 0
        self._last_exchange: Mapping[str, Any] | None = None

    def show(self, event: Mapping[str, Any]) -> None:
        """Print a line if the event is worth one."""
        told = _notice(event) if self._verbose else _asked_for(event)
        if told is not None:
            print(told, file=self._stream, flush=True)
        if self._verbose:
            self._show_stage(event)

    def _show_stage(self, event: Mapping[str, Any]) -> None:
        match event["event"]:
            case "stage_started":
                self._tasks, self._last_exchange = event["tasks"], None
            case "exchange":
                self._last_exchange = event
            case "stage_finished":
                parts = [f"{event['seconds']:.2f} s"]
                if self._tasks:
                    parts.append(f"{self._tasks} tasks")
                if (last := self._last_exchange) is not None:
                    parts += [f"{last['step']} steps", f"{last['exchange']} exchanges"]
                print(f"{event['stage']}: {', '.join(parts)}", file=self._stream, flush=True)

    def close(self) -> None:
        """Nothing stays open."""


class LiveDisplay:
    """Finished stages and their seconds; below, the running one: elapsed, tasks, step, exchange, edges unsettled."""

    def __init__(self, console: Console) -> None:
        self._finished: list[tuple[str, float]] = []
        self._running: Mapping[str, Any] | None = None
        self._done = 0
        self._exchange: Mapping[str, Any] | None = None
        self._start = time.monotonic()
        self._live = Live(self, console=console, refresh_per_second=8, redirect_stdout=False)

    def show(self, event: Mapping[str, Any]) -> None:
        """Take in the event; the screen follows at its own pace."""
        if (told := _notice(event)) is not None:
            self._live.console.print(told, markup=False, highlight=False, soft_wrap=True)
        match event["event"]:
            case "stage_started":
                self._running, self._done, self._exchange = event, 0, None
                self._live.start()  # at the first stage; no-op after that
            case "task_done":
                self._done = event["done"]
            case "exchange" | "level":
                self._exchange = event
            case "stage_finished":
                self._finished.append((event["stage"], event["seconds"]))
                self._running = None
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
        for stage, seconds in self._finished:
            table.add_row(Text(stage, "dim"), Text(f"{seconds:.2f} s", "dim"))
        if self._running is not None:
            tasks, roomy = self._running["tasks"], options.max_width >= 80
            bar = ProgressBar(total=tasks or None, completed=self._done, width=20) if roomy else ""
            table.add_row(Text(self._running["stage"], "bold"), self._elapsed(), bar, self._state(tasks))
        yield table

    def _elapsed(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._start), 60)
        return f"{minutes}:{seconds:02d}"

    def _state(self, tasks: int) -> str:
        state = [f"{self._done}/{tasks}"] if tasks else []
        if (last := self._exchange) is not None:
            state += [f"{name} {last[name]}" for name in ("level", "step", "exchange") if name in last]
            state.append(f"{last['unsettled']:,} edges unsettled")
        return "  ".join(state)
