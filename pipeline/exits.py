"""How a command ends: the exit code and the message of an exception, and SIGTERM as a Ctrl-C."""

from __future__ import annotations

import errno
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from ..tasks.errors import EdgemillError, OutOfRoom
from ..tasks.passwords import without_passwords

__all__ = ["UNREAD", "Terminated", "exit_code", "message", "sigterm_interrupts"]

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
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
            return 1


def message(error: BaseException) -> str:
    """What to tell the user about `error`, in one line where the error allows it; passwords in URLs are left out."""
    return without_passwords(_message(error))


def _message(error: BaseException) -> str:
    match error:
        case EdgemillError():
            return str(error)
        case MemoryError():
            return "out of memory: use more partitions or a machine with more memory"
        case OSError() if error.errno in NO_SPACE:
            return f"no room left on the disk: {error.filename or error.strerror}"
        case BrokenPipeError() if _output_is_unread():
            return "nobody reads what it prints: the pipe was closed"
        case Terminated():
            return "terminated"
        case KeyboardInterrupt():
            return "interrupted"
        case _:
            return f"unexpected {type(error).__name__}: {error}"


def _output_is_unread() -> bool:
    """Whether stdout or stderr is a pipe without a reader: a connection may break, too, which is another matter."""
    outputs = select.poll()
    for number in (1, 2):
        outputs.register(number, 0)
    return any(found & select.POLLERR for _, found in outputs.poll(0))


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Within the block the first SIGTERM raises Terminated in the main thread; elsewhere this does nothing.

    Those that follow are ignored: `timeout` and batch systems send two, and the second could strike where the first is
    being handled and a lock is held, which nobody would ever release.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
