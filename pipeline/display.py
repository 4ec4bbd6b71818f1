"""The displays of a run's events: live on a terminal, a line per stage, or nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .telemetry import Display

__all__ = ["LineDisplay", "LiveDisplay", "display_for"]


def display_for(stream: TextIO, verbose: bool) -> Display | None:
    """Live on a terminal; in a pipe nothing, or a line per stage if `verbose`."""
    console = Console(file=stream)
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveDisplay(console)
    return LineDisplay(stream) if verbose else None


class LineDisplay:
    """One line for each stage that has ended."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._tasks = 0
        self._last_exchange: Mapping[str, Any] | None = None

    def show(self, event: Mapping[str, Any]) -> None:
        """Print a line if the event ends a stage."""
        match event["event"]:
            case "stage_started":
                self._tasks, self._last_exchange = event["tasks"], None
            case "exchange":
                self._last_exchange = event
            case "checkpoint_refused":
                print(f"starting anew: {event['reason']}", file=self._stream, flush=True)
            case "lock_taken_over":
                print(f"the lock of a dead run is taken over: {event['left_by']}", file=self._stream, flush=True)
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
        match event["event"]:
            case "stage_started":
                self._running, self._done, self._exchange = event, 0, None
                self._live.start()  # at the first stage; no-op after that
            case "task_done":
                self._done = event["done"]
            case "exchange" | "level":
                self._exchange = event
            case "checkpoint_refused":
                self._live.console.print(f"starting anew: {event['reason']}", markup=False, highlight=False)
            case "lock_taken_over":
                note = f"the lock of a dead run is taken over: {event['left_by']}"
                self._live.console.print(note, markup=False, highlight=False)
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
