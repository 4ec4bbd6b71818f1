"""The exit code and the message of an exception, and SIGTERM as an exception."""

from __future__ import annotations

import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ...tasks.errors import NO_SPACE, EdgemillError, OutOfRoom, StoreLost, UsageError
from ...tasks.storage.passwords import without_passwords
from ...tasks.storage.stores import is_store_lost

_REPEAT_SECONDS = 0.05
"""Delay before a signal is repeated; by then the finaliser that it interrupted has returned."""
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
def sigterm_interrupts() -> Iterator[None]:
    """Within the block, the first SIGTERM raises Terminated in the main thread, and no interrupt is lost.

    Later SIGTERMs are ignored. `timeout` and batch systems send two; the second could interrupt the handling of the
    first while a lock is held, which would then never be released. Python drops exceptions that are raised in
    finalisers; an interrupt that is dropped so is sent again. Outside the main thread the block does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    main, terminated = threading.get_ident(), False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal terminated
        if not terminated:
            terminated = True
            raise Terminated

    def repeat(number: int) -> None:
        nonlocal terminated
        terminated = False
        signal.pthread_kill(main, number)

    def on_unraisable(dropped: sys.UnraisableHookArgs) -> None:
        if not isinstance(dropped.exc_value, KeyboardInterrupt):
            report(dropped)
            return
        number = signal.SIGTERM if isinstance(dropped.exc_value, Terminated) else signal.SIGINT
        timer = threading.Timer(_REPEAT_SECONDS, repeat, [number])
        timer.daemon = True
        timer.start()

    before = signal.signal(signal.SIGTERM, interrupt)
    report, sys.unraisablehook = sys.unraisablehook, on_unraisable
    try:
        yield
    finally:
        sys.unraisablehook = report
        signal.signal(signal.SIGTERM, before)
