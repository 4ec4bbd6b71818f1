"""A folder for a result that is to be kept no longer than what reads it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path

from ...tasks.errors import UsageError

__all__ = ["TemporaryFolder"]


class TemporaryFolder:
    """A new folder among the temporary files (`TMPDIR`). It is removed with this object, and when Python ends.

    Raises UsageError if none can be made.
    """

    def __init__(self) -> None:
        try:
            self._path = tempfile.mkdtemp(prefix="edgemill-")
        except OSError as error:
            raise UsageError(
                f"there is no room for a temporary result in {tempfile.gettempdir()}: {error.strerror}; "
                "name an output, or another folder in the environment variable TMPDIR"
            ) from error
        self._end = weakref.finalize(self, _remove, self._path, os.getpid())

    @property
    def result(self) -> Path:
        """Where the result is, or will be."""
        return Path(self._path, "result")

    @property
    def is_removed(self) -> bool:
        """Whether it is gone."""
        return not self._end.alive

    def remove(self) -> None:
        """Remove it now, with all that is in it. Nothing happens if it is gone."""
        self._end()


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:  # a process that was forked from it ends, too
        shutil.rmtree(path, ignore_errors=True)
