"""What a run answers to Ctrl-C: at once that it stops, and to a second one that it has ended."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..telemetry import Events

__all__ = ["told_when_stopping"]

AGAIN_SECONDS = 0.5
"""A second Ctrl-C within this time is taken for the first: `timeout`, for one, sends each signal twice."""
_SHOW_CURSOR = b"\x1b[?25h\n"


@contextmanager
def told_when_stopping(events: Events) -> Iterator[None]:
    """Within it, in the main thread, the first Ctrl-C or SIGTERM is told at once, as the event `stopping`.

    It ends the run as the exception that Python raises for it: the run lets workers go and clears up, which takes a
    while, and what was kept stays. A second Ctrl-C ends this process at once, as if it were killed: the next run with
    the same output clears up what is left, and goes on from what was kept.

    A thread is told of signals by Python's own handler (`signal.set_wakeup_fd`), so that it answers while the main
    thread compiles, or waits.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard, told = os.pipe()
    os.set_blocking(told, False)
    before = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a shell's background job ignores it
    if is_default:
        signal.signal(signal.SIGINT, _interrupting_once())
    listener = threading.Thread(target=_listen, args=(heard, events), name="edgemill-stopping", daemon=True)
    listener.start()
    try:
        yield
    finally:
        if is_default:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.set_wakeup_fd(before)
        os.close(told)  # which ends the thread
        listener.join()
        os.close(heard)


def _interrupting_once() -> Callable[[int, FrameType | None], None]:
    """A handler that raises KeyboardInterrupt at the first Ctrl-C: a second one shall not strike what clears up."""
    first: float | None = None

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal first
        now = time.monotonic()
        first = now if first is None else first
        if now - first <= AGAIN_SECONDS:  # `sigterm_interrupts` repeats one that a finaliser has swallowed
            raise KeyboardInterrupt

    return interrupt


def _listen(heard: int, events: Events) -> None:
    first: float | None = None
    while number := os.read(heard, 1):
        now = time.monotonic()
        if first is None and number[0] in (signal.SIGINT, signal.SIGTERM):
            first = now
            events.emit("stopping", signal=signal.Signals(number[0]).name)
        elif first is not None and number[0] == signal.SIGINT and now - first >= AGAIN_SECONDS:
            if os.isatty(2):
                os.write(2, _SHOW_CURSOR)  # progress hides it
            sys.stdout.flush()
            os._exit(128 + signal.SIGINT)
