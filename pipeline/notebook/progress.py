"""How far a run is, in a notebook: one output that is updated, by IPython's display alone.

rich and tqdm need ipywidgets for that, and an extension that the notebook's page has loaded.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from ..display import Stages, state
from .styled import framed, shown, table

__all__ = ["NotebookDisplay"]

INTERVAL_SECONDS = 0.5
"""Between two updates, at least."""


class NotebookDisplay:
    """Finished stages and their seconds, the running ones with tasks and edges that are unsettled; in the end a line.

    A thread updates it, so that the time goes on where nothing is told, and a run does not wait for the page.
    """

    def __init__(self) -> None:
        self._stages = Stages()
        self._finished: dict[str, float] = {}
        self._start = time.monotonic()
        self._ending: str | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._handle: Any = None
        self._thread: threading.Thread | None = None

    def show(self, event: Mapping[str, Any]) -> None:
        """Take in the event; the page follows at its own pace."""
        with self._lock:
            self._stages.take_in(event)
            match event["event"]:
                case "stage_finished":
                    self._finished[event["stage"]] = self._finished.get(event["stage"], 0) + event["seconds"]
                case "run_finished":
                    self._ending = f"edgemill found λ of {event['edges']:,} edges in {event['seconds']:.1f} s"
                case "run_failed":
                    self._ending = "edgemill: the run failed"
                case "nothing_to_do":
                    self._ending = "edgemill: the result is there already"
        if event["event"] == "stage_started" and self._thread is None:
            self._begin()

    def close(self) -> None:
        """Show how it ended, and update no more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._update()

    def html(self) -> str:
        """What is shown now."""
        with self._lock:
            rows = [[shown(stage), f"{seconds:.2f} s", ""] for stage, seconds in self._finished.items()]
            if self._ending is not None:
                stages = f"<details><summary>stages</summary>{table([], rows, 0)}</details>"
                return framed(f"<p>{shown(self._ending, 200)}</p>{stages if rows else ''}")
            search = self._stages.search
            for stage, (done, tasks) in self._stages.running.items():
                bar = f'<progress value="{done}" max="{tasks}"></progress> ' if tasks else ""
                rows.append([f"<b>{shown(stage)}</b>", "", bar + shown(state(done, tasks, search).replace("  ", ", "))])
                search = None  # of the outermost
        elapsed = int(time.monotonic() - self._start)
        return framed(f"<p>edgemill, {elapsed // 60}:{elapsed % 60:02d}</p>", table([], rows, 0))

    def _begin(self) -> None:
        ipython: Any = import_module("IPython.display")  # which has no types
        self._handle = ipython.display(ipython.HTML(self.html()), display_id=True)
        # The kernel tells from the context which cell the output belongs to.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._follow,), daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._over.wait(INTERVAL_SECONDS):
            self._update()

    def _update(self) -> None:
        ipython: Any = import_module("IPython.display")
        with suppress(Exception):  # a page that is closed is no reason to end a run
            self._handle.update(ipython.HTML(self.html()))
