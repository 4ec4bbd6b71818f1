"""How a command ends: the exit code and the message of an exception, and SIGTERM as a Ctrl-C."""

from __future__ import annotations

import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ..tasks.errors import NO_SPACE, EdgemillError, OutOfRoom, StoreLost
from ..tasks.passwords import without_passwords
from ..tasks.stores import is_lost

__all__ = ["UNREAD", "Terminated", "exit_code", "message", "sigterm_interrupts"]

_LATER_SECONDS = 0.05
"""Until the finaliser that an interrupt struck is left."""
UNREAD = 128 + signal.SIGPIPE
"""Exit status where nobody reads what a command prints, as after `| head`."""


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived; unwinds the run the way Ctrl-C does."""


def exit_code(error: BaseException) -> int:
    """Exit status of a command that ends with `error` (128 + signal number for signals, as shells have it)."""
    match error:
        case EdgemillError():
            return error.exit_code
        case MemoryError():
            return OutOfRoom.exit_code
        case OSError() if error.errno in NO_SPACE:
            return OutOfRoom.exit_code
        case BrokenPipeError() if _output_is_unread():
            return UNREAD
        case Terminated():
            return 128 + signal.SIGTERM
        case KeyboardInterrupt():
            return 128 + signal.SIGINT
        case _:
            return StoreLost.exit_code if is_lost(error) else 1


def message(error: BaseException) -> str:
    """What to tell the user about `error`, in one line where the error allows it; passwords in URLs are left out."""
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
            return "nobody reads what it prints: the pipe was closed"
        case Terminated():
            return "terminated"
        case KeyboardInterrupt():
            return "interrupted"
        case _ if is_lost(error):
            return f"no answer from a store, or the cluster: {error or type(error).__name__}; run again"
        case _:
            return f"unexpected {type(error).__name__}: {error}"


def _output_is_unread() -> bool:
    """Whether stdout or stderr is a pipe, or a socket, without a reader: another connection may break, too."""
    outputs = select.poll()
    for number in (1, 2):
        outputs.register(number, 0)
    return any(found & (select.POLLERR | select.POLLHUP) for _, found in outputs.poll(0))


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Within the block the first SIGTERM raises Terminated in the main thread, and neither that nor a Ctrl-C gets lost.

    SIGTERMs that follow are ignored: `timeout` and batch systems send two, and the second could strike where the first
    is being handled and a lock is held, which nobody would ever release. In a thread other than the main one this does
    nothing.
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

    def strike_again(number: int) -> None:
        nonlocal terminated
        terminated = False
        signal.pthread_kill(main, number)

    def dropped(what: sys.UnraisableHookArgs) -> None:
        """Python drops what a finaliser raises, and an interrupt may strike in one, such as that of a Dask future."""
        if not isinstance(what.exc_value, KeyboardInterrupt):
            report(what)
            return
        number = signal.SIGTERM if isinstance(what.exc_value, Terminated) else signal.SIGINT
        later = threading.Timer(_LATER_SECONDS, strike_again, [number])
        later.daemon = True
        later.start()

    before = signal.signal(signal.SIGTERM, interrupt)
    report, sys.unraisablehook = sys.unraisablehook, dropped
    try:
        yield
    finally:
        sys.unraisablehook = report
        signal.signal(signal.SIGTERM, before)
