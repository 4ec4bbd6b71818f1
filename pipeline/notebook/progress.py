"""The progress of a run in a notebook: one output that is updated through IPython's display.

rich and tqdm would need ipywidgets and a notebook extension for that.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from ..messages.html import framed, shown, table
from ..monitor.display import stage_text
from ..monitor.progress import Progress

INTERVAL_SECONDS = 0.5
"""Least time between two updates."""


class NotebookDisplay:
    """Shows finished stages with their seconds and running stages with their state; one line when the run ends.

    A thread updates the output, so that the clock advances without events and the run does not wait for the page.
    """

    def __init__(self) -> None:
        self._progress = Progress()
        self._start = time.monotonic()
        self._ending: str | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._handle: Any = None
        self._thread: threading.Thread | None = None

    def show(self, event: Mapping[str, Any]) -> None:
        """Update the state; the page follows at the next interval."""
        with self._lock:
            self._progress.update(event)
            match event["event"]:
                case "run_finished":
                    found = "found λ of" if "lambda_max" in event else "ran its programs on"
                    self._ending = f"edgemill {found} {event['edges']:,} edges in {event['seconds']:.1f} s"
                case "run_failed":
                    self._ending = "edgemill: the run failed"
                case "nothing_to_do":
                    self._ending = "edgemill: the result is up to date"
        if event["event"] == "stage_started" and self._thread is None:
            self._begin()

    def close(self) -> None:
        """Show the outcome and stop the updates."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._update()

    def html(self) -> str:
        """The current output."""
        with self._lock:
            rows = [[shown(stage), f"{seconds:.2f} s", ""] for stage, seconds in self._progress.finished.items()]
            if self._ending is not None:
                stages = f"<details><summary>stages</summary>{table([], rows, 0)}</details>"
                return framed(f"<p>{shown(self._ending, 200)}</p>{stages if rows else ''}")
            for stage in self._progress.active:
                state = self._progress.stages[stage]
                bar = f'<progress value="{state.done}" max="{state.tasks}"></progress> ' if state.tasks else ""
                text = stage_text(self._progress, stage).replace("  ", ", ")
                rows.append([f"<b>{shown(stage)}</b>", "", bar + shown(text)])
        elapsed = int(time.monotonic() - self._start)
        return framed(f"<p>edgemill, {elapsed // 60}:{elapsed % 60:02d}</p>", table([], rows, 0))

    def _begin(self) -> None:
        ipython: Any = import_module("IPython.display")  # untyped
        self._handle = ipython.display(ipython.HTML(self.html()), display_id=True)
        # The kernel finds the cell of the output in the context.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._follow,), daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._over.wait(INTERVAL_SECONDS):
            self._update()

    def _update(self) -> None:
        ipython: Any = import_module("IPython.display")
        with suppress(Exception):  # a closed page must not end the run
            self._handle.update(ipython.HTML(self.html()))
