"""Errors a user meets. One clear message each; the exit code tells a scheduler whether to retry."""

from __future__ import annotations

import errno
import traceback
from typing import ClassVar

from .passwords import without_passwords

__all__ = [
    "NO_SPACE",
    "ClusterLost",
    "EdgemillError",
    "InputAbsent",
    "InputError",
    "InputIncomplete",
    "InternalError",
    "NotConverged",
    "OutOfRoom",
    "OutputLocked",
    "StateLost",
    "StoreLost",
    "UsageError",
]


NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
"""Errors of a file system that end as OutOfRoom."""


class EdgemillError(Exception):
    """Base of every error this project raises on purpose. URLs in its message show no password."""

    exit_code: ClassVar[int] = 1
    """Exit status of the command that ends with this error."""

    def __init__(self, message: str) -> None:
        super().__init__(without_passwords(message))

    def _render_traceback_(self) -> list[str]:
        """The lines that IPython shows: the user's own calls, and the message; nothing of what lies below them."""
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
    """A setting, an argument or the output path is wrong. Change it and run again."""

    exit_code = 2


class InputError(EdgemillError):
    """The input holds something that cannot be read or is not allowed. A retry will not help."""

    exit_code = 3


class InputAbsent(InputError):
    """No file is there to read."""


class InputIncomplete(InputError):
    """The input is not whole yet, as the settings tell that. A later retry may succeed."""

    exit_code = 8


class ClusterLost(EdgemillError):
    """Workers or the scheduler went away. A retry may succeed."""

    exit_code = 4


class StateLost(ClusterLost):
    """A worker went away with what it held of the search for λ, which starts again from what was kept last."""


class StoreLost(EdgemillError):
    """An object store does not answer, or not now, after its client has tried for a while. A retry may succeed."""

    exit_code = 4


class NotConverged(EdgemillError):
    """A cap on exchanges or time ended the run; every edge has an interval instead of λ."""

    exit_code = 5


class OutputLocked(EdgemillError):
    """Another run is writing the same output."""

    exit_code = 6


class OutOfRoom(EdgemillError):
    """Memory or disk did not suffice."""

    exit_code = 7


class InternalError(EdgemillError):
    """A promise inside this project was broken, such as rows lost in an exchange. A bug: please report it."""

    def _render_traceback_(self) -> list[str]:
        """The whole traceback, for the report."""
        return [line.rstrip("\n") for line in traceback.format_exception(self)]
