"""Errors for users, each with one clear message. The exit code tells a scheduler whether to retry."""

from __future__ import annotations

import errno
import traceback
from typing import ClassVar

from .storage.passwords import without_passwords

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of file systems that become OutOfRoom."""
MOST_SHOWN = 60
"""Most characters of a value, a word or a line of the user that a message shows."""


def clipped(text: str) -> str:
    """A text of the user for a message, cut after MOST_SHOWN characters."""
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


class EdgemillError(Exception):
    """Base of all errors that edgemill raises on purpose. Passwords are removed from URLs in the message."""

    exit_code: ClassVar[int] = 1
    """Exit status of a command that ends with this error."""

    def __init__(self, message: str) -> None:
        super().__init__(without_passwords(message))

    def _render_traceback_(self) -> list[str]:
        """The lines that IPython shows: the user's own calls and the message, without edgemill's own frames."""
        calls = []
        for frame, line in traceback.walk_tb(self.__traceback__):
            module = str(frame.f_globals.get("__name__", ""))
            if module.partition(".")[0] == "edgemill":
                break
            if module.partition(".")[0] not in ("IPython", "ipykernel"):
                calls.append((frame, line))
        shown = [one.rstrip("\n") for one in traceback.StackSummary.extract(iter(calls)).format()]
        return [*shown, f"{type(self).__name__}: {self}", *getattr(self, "__notes__", [])]


class UsageError(EdgemillError):
    """A setting, an argument or the output path is wrong. The user must change it and run again."""

    exit_code = 2


class KeywordError(UsageError, TypeError):
    """A function has no such keyword."""


class InputError(EdgemillError):
    """The input has content that cannot be read or is not allowed. A retry does not help."""

    exit_code = 3


class InputAbsent(InputError):
    """The input has no files."""


class OtherType(InputError):
    """A row of a text file has a value that is not of the type that the first rows have. The file may be read again
    with a type that holds both.
    """

    def __init__(self, message: str, column: str = "", value: str = "") -> None:
        super().__init__(message)
        self.column, self.value = column, value


class InputIncomplete(InputError):
    """The input is not complete yet, by the settings that define completeness. A later retry may succeed."""

    exit_code = 8


class ClusterLost(EdgemillError):
    """Workers or the scheduler died or are unreachable. A retry may succeed."""

    exit_code = 4


class StateLost(ClusterLost):
    """A worker died with unsaved bounding state. The run resumes from the last checkpoint."""


class StoreLost(EdgemillError):
    """An object store still does not answer, or is overloaded, after the client's retries. A later retry may
    succeed.
    """

    exit_code = 4


class NotConverged(EdgemillError):
    """A limit of exchanges, supersteps or time ended the run. Edges have intervals instead of λ, or programs the values
    of then.
    """

    exit_code = 5


class OutputLocked(EdgemillError):
    """Another run is writing to the same output."""

    exit_code = 6


class OutOfRoom(EdgemillError):
    """Memory or disk space was not sufficient."""

    exit_code = 7


class ProgramError(EdgemillError):
    """A vertex program failed or does not keep to the interface. Its author must change it."""

    exit_code = 9


class InternalError(EdgemillError):
    """An internal invariant was violated, such as rows lost in an exchange. A bug: please report it."""

    def _render_traceback_(self) -> list[str]:
        """The whole traceback, for the bug report."""
        return [line.rstrip("\n") for line in traceback.format_exception(self)]
