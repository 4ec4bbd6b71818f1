"""Ctrl-C and SIGTERM during a run: announce the stop at once, and exit at a second Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..monitor.events import Events


AGAIN_SECONDS = 0.5
"""A second Ctrl-C within this time counts as the first: `timeout`, for one, sends each signal twice."""
_SHOW_CURSOR = b"\x1b[?25h\n"


@contextmanager
def announcing_stops(events: Events) -> Iterator[None]:
    """Within the block, emit the event `stopping` as soon as the first Ctrl-C or SIGTERM arrives.

    The signal also raises its exception in the main thread, which ends the run: it closes workers and removes its
    files, which takes a while; checkpoints stay. A second Ctrl-C exits this process at once, as if it were killed. The
    next run with the same output removes the remaining files and resumes from the checkpoint.

    A listener thread reads signals from a pipe (`signal.set_wakeup_fd`), so that it responds while the main thread
    compiles or waits. Outside the main thread the block does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    interrupt = signal.getsignal(signal.SIGINT)  # a background job of a shell ignores it
    if callable(interrupt):
        signal.signal(signal.SIGINT, _once(interrupt))
    listener = threading.Thread(target=_listen, args=(reader, events), name="edgemill-stopping", daemon=True)
    listener.start()
    try:
        yield
    finally:
        if callable(interrupt):
            signal.signal(signal.SIGINT, interrupt)
        signal.set_wakeup_fd(before)
        os.close(writer)  # ends the thread
        listener.join()
        os.close(reader)


def _once(interrupt: Callable[[int, FrameType | None], Any]) -> Callable[[int, FrameType | None], None]:
    """A handler that calls another at the first Ctrl-C alone: a second must not break the clean-up."""
    came = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal came
        if not came:
            came = True
            interrupt(number, frame)

    return handle


def _listen(reader: int, events: Events) -> None:
    first: float | None = None
    while number := os.read(reader, 1):
        now = time.monotonic()
        if first is None and number[0] in (signal.SIGINT, signal.SIGTERM):
            first = now
            events.emit("stopping", signal=signal.Signals(number[0]).name)
        elif first is not None and number[0] == signal.SIGINT and now - first >= AGAIN_SECONDS:
            if os.isatty(2):
                os.write(2, _SHOW_CURSOR)  # the progress display hides it
            sys.stdout.flush()
            os._exit(128 + signal.SIGINT)
