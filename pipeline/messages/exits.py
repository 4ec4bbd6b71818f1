"""The exit code and the message of an exception, and signals as exceptions."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Self

from ...tasks.errors import NO_SPACE, EdgemillError, OutOfRoom, StoreLost, UsageError
from ...tasks.storage.passwords import without_passwords
from ...tasks.storage.stores import is_store_lost

_REPEAT_SECONDS = 0.05
"""Delay before an exception is raised again; by then the finaliser that it interrupted has returned."""
_MOST_SECONDS = 10.0
"""Time that an import may take before it is interrupted after all."""
_AGAIN = signal.SIGURG
"""Signal for the second try. Nothing else uses it, and a process that does not ask for it ignores it."""
_IMPORTLIB = "<frozen importlib._bootstrap>"
_TRY, _END = b"1", b"0"
BROKEN_PIPE = 128 + signal.SIGPIPE
"""Exit status of a command whose output has no reader, as after `| head`."""


class Terminated(KeyboardInterrupt):
    """Raised by SIGTERM. It ends a run as Ctrl-C does."""


def exit_code(error: BaseException) -> int:
    """Exit status of a command that ends with `error`; 128 + the number of a signal, as in shells."""
    match error:
        case EdgemillError():
            return error.exit_code
        case MemoryError():
            return OutOfRoom.exit_code
        case OSError() if error.errno in NO_SPACE:
            return OutOfRoom.exit_code
        case BrokenPipeError() if _output_is_unread():
            return BROKEN_PIPE
        case ValueError() if _is_dask_configuration(error):
            return UsageError.exit_code
        case Terminated():
            return 128 + signal.SIGTERM
        case KeyboardInterrupt():
            return 128 + signal.SIGINT
        case _:
            return StoreLost.exit_code if is_store_lost(error) else 1


def message(error: BaseException) -> str:
    """The message for `error`, on one line if the error permits it, without passwords in URLs."""
    return without_passwords(_message(error))


def _message(error: BaseException) -> str:
    match error:
        case EdgemillError():
            return str(error)
        case MemoryError():
            return "out of memory: start workers on more machines, or use a machine with more memory"
        case OSError() if error.errno in NO_SPACE:
            return f"no room left on the disk: {error.filename or error.strerror}"
        case BrokenPipeError() if _output_is_unread():
            return "the reader of the output closed the pipe"
        case ValueError() if _is_dask_configuration(error):
            return " ".join(str(error).split())
        case Terminated():
            return "terminated"
        case KeyboardInterrupt():
            return "interrupted"
        case _ if is_store_lost(error):
            return f"no answer from an object store or the cluster: {error or type(error).__name__}; run again"
        case _:
            return f"unexpected {type(error).__name__}: {error}"


def _is_dask_configuration(error: ValueError) -> bool:
    """Whether a file of Dask's own configuration cannot be read, which Dask says when it is imported."""
    return str(error).startswith("A dask config file")


def _output_is_unread() -> bool:
    """Whether stdout or stderr is a pipe or socket without a reader. A BrokenPipeError may also be of another
    connection.
    """
    outputs = select.poll()
    for number in (1, 2):
        outputs.register(number, 0)
    return any(found & (select.POLLERR | select.POLLHUP) for _, found in outputs.poll(0))


@contextmanager
def interrupts() -> Iterator[None]:
    """Within the block, the first SIGTERM raises Terminated in the main thread, Ctrl-C raises KeyboardInterrupt, and
    neither is lost.

    Later SIGTERMs are ignored. `timeout` and batch systems send two; the second could interrupt the handling of the
    first while a lock is held, which would then never be released. Python drops exceptions that are raised in
    finalisers, and some packages replace those that are raised while a class of theirs is made, as when their module is
    imported. So an exception that is dropped is raised again, and none is raised while a module is imported: it follows
    when the import has ended, or has taken 10 seconds. Outside the main thread the block does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with _Later() as later:
        terminated = False

        def terminate(number: int, frame: FrameType | None) -> None:
            nonlocal terminated
            if not terminated:
                terminated = True
                later.throw(Terminated, frame)

        def interrupt(number: int, frame: FrameType | None) -> None:
            later.throw(KeyboardInterrupt, frame)

        def on_unraisable(dropped: sys.UnraisableHookArgs) -> None:
            if isinstance(dropped.exc_value, KeyboardInterrupt):
                later.postpone(type(dropped.exc_value))
            else:
                report(dropped)

        before = {signal.SIGTERM: signal.signal(signal.SIGTERM, terminate)}
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a background job of a shell ignores SIGINT
            before[signal.SIGINT] = signal.signal(signal.SIGINT, interrupt)
        report, sys.unraisablehook = sys.unraisablehook, on_unraisable
        try:
            yield
        finally:
            sys.unraisablehook = report
            for number, handler in before.items():
                signal.signal(number, handler)


class _Later:
    """Exceptions that signals raise in the main thread, now or later.

    A thread sends a signal for the second try. It waits from the start, since a handler may have interrupted the main
    thread while that held the lock of `threading` under which threads start.
    """

    def __enter__(self) -> Self:
        self._waiting: list[type[KeyboardInterrupt]] = []
        self._since = 0.0
        self._outside = _imports(sys._getframe())
        """Modules whose import had begun before: of a program that starts a command while it is imported."""
        self._main = threading.get_ident()
        self._asked, self._ask = os.pipe()
        self._before = signal.signal(_AGAIN, self._again)
        self._thread = threading.Thread(target=self._repeat, name="edgemill-signals", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(_AGAIN, signal.SIG_IGN)
        os.write(self._ask, _END)
        self._thread.join()
        os.close(self._ask)
        os.close(self._asked)
        signal.signal(_AGAIN, self._before)

    def throw(self, kind: type[KeyboardInterrupt], frame: FrameType | None) -> None:
        """Raise an exception, or postpone it while the `frame` that a signal interrupted is within an import."""
        self._since = time.monotonic()
        self._throw(kind, frame)

    def postpone(self, kind: type[KeyboardInterrupt]) -> None:
        """Raise the exception after a while."""
        self._waiting.append(kind)
        os.write(self._ask, _TRY)

    def _throw(self, kind: type[KeyboardInterrupt], frame: FrameType | None) -> None:
        if _imports(frame) > self._outside and time.monotonic() - self._since < _MOST_SECONDS:
            self.postpone(kind)
        else:
            raise kind

    def _again(self, number: int, frame: FrameType | None) -> None:
        if self._waiting:
            self._throw(self._waiting.pop(), frame)

    def _repeat(self) -> None:
        while os.read(self._asked, 1) == _TRY:
            time.sleep(_REPEAT_SECONDS)
            signal.pthread_kill(self._main, _AGAIN)


def _imports(frame: FrameType | None) -> int:
    """The frames that import a module or name an attribute of a new class, among a frame and those that called it."""
    count = 0
    while frame is not None:
        count += frame.f_code.co_filename == _IMPORTLIB or frame.f_code.co_name == "__set_name__"
        frame = frame.f_back
    return count
